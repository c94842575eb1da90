-- `fenced resolve`: the recorded decision of an operator is the only way out of PARKED.

ALTER TABLE execution
  ADD COLUMN resolution jsonb,
  ADD CONSTRAINT execution_resolution CHECK (state <> 'PARKED' OR resolution IS NULL);

ALTER TABLE request
  DROP CONSTRAINT request_kind,
  ADD CONSTRAINT request_kind CHECK (kind IN ('reopen', 'resume', 'resolve')),
  ADD COLUMN execution_id text REFERENCES execution,
  ADD COLUMN paid_hash hash32,
  ADD CONSTRAINT request_resolves CHECK ((kind = 'resolve') = (execution_id IS NOT NULL) AND (paid_hash IS NULL OR kind = 'resolve'));

CREATE OR REPLACE FUNCTION execution_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  reserved integer;
  open_nonces integer;
  effective integer;
  foreign_nonces integer;
BEGIN
  IF (NEW.execution_id, NEW.strategy, NEW.slot, NEW.trigger_key, NEW.reissue_no, NEW.account_id, NEW.revision, NEW.input, NEW.payload_digest, NEW.created_at)
     IS DISTINCT FROM
     (OLD.execution_id, OLD.strategy, OLD.slot, OLD.trigger_key, OLD.reissue_no, OLD.account_id, OLD.revision, OLD.input, OLD.payload_digest, OLD.created_at)
     OR (OLD.steps IS NOT NULL AND (NEW.steps, NEW.plan_order) IS DISTINCT FROM (OLD.steps, OLD.plan_order)) THEN
    PERFORM refuse('execution_identity', format('what execution %s is never changes', OLD.execution_id));
  END IF;
  IF NEW.stopped_at IS DISTINCT FROM OLD.stopped_at AND (OLD.stopped_at IS NOT NULL OR OLD.state <> 'RUNNING') THEN
    PERFORM refuse('execution_stopped', format('execution %s: only a running execution is stopped, and for good', OLD.execution_id));
  END IF;
  IF NEW.resolution IS DISTINCT FROM OLD.resolution AND NOT (NEW.state <> OLD.state AND 'PARKED' IN (OLD.state, NEW.state)) THEN
    PERFORM refuse('execution_resolution', format('execution %s: a resolution is recorded when PARKED is left', OLD.execution_id));
  END IF;
  IF NEW.state = OLD.state THEN RETURN NEW; END IF;
  IF NOT (CASE OLD.state
      WHEN 'PENDING' THEN NEW.state IN ('PLANNED', 'SKIPPED', 'FAILED', 'CANCELLED', 'PARKED')
      WHEN 'PLANNED' THEN NEW.state IN ('RUNNING', 'SKIPPED', 'FAILED', 'CANCELLED', 'PARKED')
      WHEN 'RUNNING' THEN NEW.state IN ('SUCCEEDED', 'PARTIAL', 'REVERTED', 'CANCELLED', 'PARKED')
      WHEN 'PARKED' THEN NEW.state IN ('PENDING', 'PLANNED', 'SKIPPED', 'PARTIAL', 'REVERTED', 'CANCELLED')
      ELSE false END) THEN
    PERFORM refuse('execution_transition', format('execution %s cannot go from %s to %s', OLD.execution_id, OLD.state, NEW.state));
  END IF;
  IF OLD.state = 'PARKED' AND NEW.resolution IS NULL THEN
    PERFORM refuse('execution_resolution', format('execution %s is PARKED and left only by a recorded resolution', OLD.execution_id));
  END IF;
  IF NEW.state = 'RUNNING' THEN RETURN NEW; END IF;
  IF NEW.state = 'PLANNED' AND NEW.resolution IS NULL AND NEW.slot <= (SELECT reopened_at FROM account WHERE account_id = OLD.account_id) THEN
    PERFORM refuse('execution_due_before', format('execution %s was due before its account was reopened and is not released', OLD.execution_id));
  END IF;
  SELECT count(*), count(*) FILTER (WHERE state = 'OPEN'), count(*) FILTER (WHERE effect), count(*) FILTER (WHERE closed_as = 'foreign')
    INTO reserved, open_nonces, effective, foreign_nonces FROM nonce_reservation WHERE execution_id = OLD.execution_id;
  IF open_nonces > 0 THEN
    PERFORM refuse('execution_open_nonce', format('execution %s has %s open nonces and cannot become %s', OLD.execution_id, open_nonces, NEW.state));
  END IF;
  IF OLD.state = 'PARKED' AND (
       (reserved > 0 AND NEW.state IN ('PENDING', 'PLANNED', 'SKIPPED')) OR (reserved = 0 AND NEW.state IN ('PARTIAL', 'REVERTED'))
       OR (NEW.state = 'PENDING' AND NEW.steps IS NOT NULL) OR (NEW.state = 'PLANNED' AND NEW.steps IS NULL)) THEN
    PERFORM refuse('execution_released', format('execution %s with %s nonces cannot be released as %s', OLD.execution_id, reserved, NEW.state));
  END IF;
  IF OLD.state = 'RUNNING' AND (NEW.state = 'PARKED') <> (foreign_nonces > 0) THEN
    PERFORM refuse('execution_parked_foreign', format('execution %s: parked if and only if a nonce went to a foreign transaction', OLD.execution_id));
  END IF;
  IF OLD.state = 'RUNNING' OR (OLD.state = 'PARKED' AND reserved > 0) THEN
    IF NEW.state <> 'PARKED' AND NEW.steps_effective IS DISTINCT FROM effective THEN
      PERFORM refuse('execution_steps_effective', format('execution %s: %s steps took effect, not %s', OLD.execution_id, effective, NEW.steps_effective));
    END IF;
    IF NEW.state = 'SUCCEEDED' AND effective + (SELECT count(*) FROM already_paid WHERE execution_id = OLD.execution_id) <> OLD.steps THEN
      PERFORM refuse('execution_success', format('execution %s: %s of %s steps took effect', OLD.execution_id, effective, OLD.steps));
    END IF;
    IF NEW.state IN ('REVERTED', 'CANCELLED') AND effective > 0 THEN
      PERFORM refuse('execution_without_effect', format('execution %s: %s steps took effect', OLD.execution_id, effective));
    END IF;
    IF NEW.state = 'PARTIAL' AND (effective = 0
         OR effective + (SELECT count(*) FROM already_paid WHERE execution_id = OLD.execution_id) = OLD.steps) THEN
      PERFORM refuse('execution_partial', format('execution %s: %s of %s steps took effect', OLD.execution_id, effective, OLD.steps));
    END IF;
    IF NEW.state IN ('REVERTED', 'CANCELLED') AND (NEW.state = 'REVERTED') <> EXISTS (
         SELECT 1 FROM nonce_reservation r JOIN attempt a ON (a.account_id, a.nonce, a.seq) = (r.account_id, r.nonce, r.closed_seq)
          WHERE r.execution_id = OLD.execution_id AND NOT r.effect AND a.kind <> 'CANCEL') THEN
      PERFORM refuse('execution_reverted', format('execution %s: reverted if and only if a step failed on chain', OLD.execution_id));
    END IF;
  ELSIF OLD.state = 'PLANNED' AND reserved > 0 THEN
    PERFORM refuse('execution_open_nonce', format('execution %s owns a nonce and ends on chain only', OLD.execution_id));
  END IF;
  RETURN NEW;
END $$;
-- Not for what only counts or explains (planning_attempts, retry_at, reason): those statements name none of these columns.
DROP TRIGGER change ON execution;
CREATE TRIGGER change BEFORE UPDATE OF execution_id, strategy, slot, trigger_key, reissue_no, account_id, revision, input, payload_digest,
  created_at, state, plan_order, steps, steps_effective, stopped_at, resolution ON execution FOR EACH ROW EXECUTE FUNCTION execution_change();
ALTER TABLE execution ENABLE ALWAYS TRIGGER change;
