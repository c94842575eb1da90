-- The newest instant that any worker has seen on the database's clock, to notice a clock that steps.
CREATE TABLE clock_guard (
  singleton boolean PRIMARY KEY DEFAULT true CONSTRAINT clock_guard_singleton CHECK (singleton),
  max_seen timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO clock_guard DEFAULT VALUES;
