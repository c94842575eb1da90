-- What the workers know together about the database's clock, to notice one that steps: the newest instant that any of them
-- believed, and the last step that one of them saw. Settled: the clock ran evenly since, and max_seen is of after the step.
CREATE TABLE clock_guard (
  singleton boolean PRIMARY KEY DEFAULT true CONSTRAINT clock_guard_singleton CHECK (singleton),
  max_seen timestamptz NOT NULL DEFAULT clock_timestamp(),
  anomalies bigint NOT NULL DEFAULT 0,
  anomaly text,
  anomaly_at timestamptz,
  is_settled boolean NOT NULL DEFAULT true,
  CONSTRAINT clock_guard_told CHECK ((anomaly IS NULL) = (anomaly_at IS NULL) AND (anomaly IS NOT NULL OR is_settled))
) WITH (fillfactor = 50);
INSERT INTO clock_guard DEFAULT VALUES;

-- Where in the history a generation began, so that G6 can be proved without believing a clock. A takeover waits for the record
-- transactions of the generation before: what that one wrote has numbers up to this, what the new one writes has greater ones.
-- Generations from before this column have none and are judged by their instants.
ALTER TABLE lease_generation ADD COLUMN began_after bigint;
ALTER TABLE lease_generation ALTER COLUMN began_after SET DEFAULT coalesce(pg_sequence_last_value('history_history_id_seq'), 0);
