-- Nonces that the chain has used for good and the rows do not know, as an operator's reopening acknowledged them. They count
-- as present wherever reservations must have no holes; no execution owns one, and a nonce is never both.

CREATE TABLE acknowledged_nonce (
  account_id integer NOT NULL REFERENCES account,
  nonce bigint NOT NULL CONSTRAINT acknowledged_nonce_range CHECK (nonce >= 0 AND nonce < 9223372036854775807),
  hash hash32,
  -- What the signer's journal had bound it to, where the journal remembers more than the rows.
  execution_id text,
  step integer,
  witness_number bigint NOT NULL,
  witness_hash hash32 NOT NULL,
  witness_rule text NOT NULL,
  witness_endpoints text[] NOT NULL CONSTRAINT acknowledged_nonce_witness CHECK (cardinality(witness_endpoints) >= 1),
  request_id bigint NOT NULL REFERENCES request,
  token bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (account_id, nonce),
  CONSTRAINT acknowledged_nonce_generation FOREIGN KEY (account_id, token) REFERENCES lease_generation,
  CONSTRAINT acknowledged_nonce_step CHECK ((execution_id IS NULL) = (step IS NULL))
);
CREATE INDEX acknowledged_nonce_execution ON acknowledged_nonce (execution_id) WHERE execution_id IS NOT NULL;

CREATE FUNCTION acknowledged_nonce_born() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  bad record;
BEGIN
  SELECT n.account_id, n.nonce INTO bad FROM new_rows n JOIN nonce_reservation r USING (account_id, nonce) LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('acknowledged_nonce_reserved', format('nonce %s of account %s belongs to an execution', bad.nonce, bad.account_id));
  END IF;
  SELECT n.account_id, n.nonce INTO bad FROM new_rows n JOIN account a USING (account_id)
   WHERE a.first_nonce IS NULL OR n.nonce < a.first_nonce
      OR (n.nonce <> a.first_nonce
          AND NOT EXISTS (SELECT 1 FROM nonce_reservation p WHERE p.account_id = n.account_id AND p.nonce = n.nonce - 1)
          AND NOT EXISTS (SELECT 1 FROM acknowledged_nonce p WHERE p.account_id = n.account_id AND p.nonce = n.nonce - 1)) LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('acknowledged_nonce_contiguous', format('nonce %s of account %s would leave a hole', bad.nonce, bad.account_id));
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER guard_insert AFTER INSERT ON acknowledged_nonce REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION guard_insert();
CREATE TRIGGER born AFTER INSERT ON acknowledged_nonce REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION acknowledged_nonce_born();
CREATE TRIGGER immutable BEFORE UPDATE ON acknowledged_nonce FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER kept_delete BEFORE DELETE ON acknowledged_nonce FOR EACH STATEMENT EXECUTE FUNCTION refuse_removal();
CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON acknowledged_nonce FOR EACH STATEMENT EXECUTE FUNCTION refuse_removal();
ALTER TABLE acknowledged_nonce ENABLE ALWAYS TRIGGER guard_insert, ENABLE ALWAYS TRIGGER born, ENABLE ALWAYS TRIGGER immutable,
  ENABLE ALWAYS TRIGGER kept_delete, ENABLE ALWAYS TRIGGER kept_truncate;

-- Nonces are exactly first_nonce, first_nonce + 1, …, acknowledged ones among them; nothing is reserved while the account is not open (G7, P16).
CREATE OR REPLACE FUNCTION nonce_reservation_born() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  bad record;
BEGIN
  SELECT n.account_id, n.nonce, a.state, a.first_nonce INTO bad FROM new_rows n JOIN account a USING (account_id)
   WHERE a.state <> 'open' OR a.first_nonce IS NULL
      OR (n.nonce <> a.first_nonce AND NOT EXISTS (SELECT 1 FROM nonce_reservation p WHERE p.account_id = n.account_id AND p.nonce = n.nonce - 1)
          AND NOT EXISTS (SELECT 1 FROM acknowledged_nonce p WHERE p.account_id = n.account_id AND p.nonce = n.nonce - 1))
      OR n.nonce < a.first_nonce
   LIMIT 1;
  IF FOUND THEN
    IF bad.state <> 'open' THEN
      PERFORM refuse('account_open', format('account %s is %s: nothing is reserved', bad.account_id, bad.state));
    END IF;
    PERFORM refuse('nonce_reservation_contiguous', format('nonce %s of account %s would leave a hole', bad.nonce, bad.account_id));
  END IF;
  SELECT n.account_id, n.nonce INTO bad FROM new_rows n JOIN acknowledged_nonce k USING (account_id, nonce) LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('nonce_reservation_acknowledged', format('nonce %s of account %s was acknowledged as used', bad.nonce, bad.account_id));
  END IF;
  IF EXISTS (SELECT 1 FROM new_rows n JOIN execution e USING (execution_id) WHERE e.state NOT IN ('PLANNED', 'RUNNING')) THEN
    PERFORM refuse('nonce_reservation_planned', 'a nonce is reserved for a planned or running execution only');
  END IF;
  IF EXISTS (SELECT 1 FROM new_rows n JOIN execution e USING (execution_id) WHERE e.stopped_at IS NOT NULL) THEN
    PERFORM refuse('nonce_reservation_stopped', 'an execution that was under way before a rewind gets no further nonce');
  END IF;
  IF EXISTS (SELECT 1 FROM new_rows WHERE state <> 'OPEN') THEN
    PERFORM refuse('nonce_reservation_transition', 'a reservation is born OPEN');
  END IF;
  IF EXISTS (SELECT 1 FROM new_rows n JOIN intent i USING (execution_id, step) WHERE n.once IS DISTINCT FROM i.once) THEN
    PERFORM refuse('nonce_reservation_once_named', 'a reservation carries the `once` of its intent');
  END IF;
  IF EXISTS (SELECT 1 FROM new_rows JOIN already_paid USING (execution_id, step)) THEN
    PERFORM refuse('nonce_reservation_already_paid', 'a step that is already paid gets no nonce');
  END IF;
  RETURN NULL;
END $$;
