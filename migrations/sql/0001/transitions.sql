-- The arrows of P1 and what may never change in a row.

CREATE FUNCTION execution_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
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
  IF NEW.state = OLD.state THEN RETURN NEW; END IF;
  IF NOT (CASE OLD.state
      WHEN 'PENDING' THEN NEW.state IN ('PLANNED', 'SKIPPED', 'FAILED', 'CANCELLED', 'PARKED')
      WHEN 'PLANNED' THEN NEW.state IN ('RUNNING', 'SKIPPED', 'FAILED', 'CANCELLED', 'PARKED')
      WHEN 'RUNNING' THEN NEW.state IN ('SUCCEEDED', 'PARTIAL', 'REVERTED', 'CANCELLED', 'PARKED')
      ELSE false END) THEN
    PERFORM refuse('execution_transition', format('execution %s cannot go from %s to %s', OLD.execution_id, OLD.state, NEW.state));
  END IF;
  IF NEW.state = 'RUNNING' THEN RETURN NEW; END IF;
  SELECT count(*) FILTER (WHERE state = 'OPEN'), count(*) FILTER (WHERE effect), count(*) FILTER (WHERE closed_as = 'foreign')
    INTO open_nonces, effective, foreign_nonces FROM nonce_reservation WHERE execution_id = OLD.execution_id;
  IF open_nonces > 0 THEN
    PERFORM refuse('execution_open_nonce', format('execution %s has %s open nonces and cannot become %s', OLD.execution_id, open_nonces, NEW.state));
  END IF;
  IF OLD.state = 'RUNNING' THEN
    IF (NEW.state = 'PARKED') <> (foreign_nonces > 0) THEN
      PERFORM refuse('execution_parked_foreign', format('execution %s: parked if and only if a nonce went to a foreign transaction', OLD.execution_id));
    END IF;
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
  ELSIF OLD.state = 'PLANNED' AND NEW.state <> 'PARKED' AND EXISTS (SELECT 1 FROM nonce_reservation WHERE execution_id = OLD.execution_id) THEN
    PERFORM refuse('execution_open_nonce', format('execution %s owns a nonce and ends on chain only', OLD.execution_id));
  END IF;
  RETURN NEW;
END $$;
-- Not for what only counts or explains (planning_attempts, retry_at, reason): those statements name none of these columns.
CREATE TRIGGER change BEFORE UPDATE OF execution_id, strategy, slot, trigger_key, reissue_no, account_id, revision, input, payload_digest,
  created_at, state, plan_order, steps, steps_effective ON execution FOR EACH ROW EXECUTE FUNCTION execution_change();
ALTER TABLE execution ENABLE ALWAYS TRIGGER change;

-- P20: a slot that was pruned is refused by the insert itself, whoever inserts; revision and account are the strategy's.
CREATE FUNCTION execution_born() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  s strategy%ROWTYPE;
BEGIN
  SELECT * INTO s FROM strategy WHERE name = NEW.strategy;
  IF NEW.slot <= s.pruned_through THEN
    PERFORM refuse('execution_slot_pruned', format('slot %s of %s lies at or below the pruned range', NEW.slot, NEW.strategy));
  END IF;
  IF NEW.account_id <> s.account_id OR NEW.revision <> s.revision THEN
    PERFORM refuse('execution_revision', format('execution %s does not carry the account and revision of its strategy', NEW.execution_id));
  END IF;
  IF NEW.state NOT IN ('PENDING', 'SKIPPED') THEN
    PERFORM refuse('execution_transition', format('execution %s cannot be born %s', NEW.execution_id, NEW.state));
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER born BEFORE INSERT ON execution FOR EACH ROW EXECUTE FUNCTION execution_born();
ALTER TABLE execution ENABLE ALWAYS TRIGGER born;

CREATE FUNCTION intent_born() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM new_rows n JOIN account a USING (account_id) WHERE n.digest = a.cancel_digest) THEN
    PERFORM refuse('intent_reads_as_cancel', 'an intent of zero value and no data to the account itself reads as a cancel');
  END IF;
  IF EXISTS (SELECT 1 FROM new_rows n JOIN execution e USING (execution_id) WHERE e.state <> 'PENDING') THEN
    PERFORM refuse('intent_once_planned', 'the plan of an execution is recorded once, while it is PENDING');
  END IF;
  -- P4: a reissue repeats only steps without effect, of executions that are over. Asked in two steps: the first is cheap and mostly says no.
  IF EXISTS (SELECT 1 FROM new_rows n JOIN execution e USING (execution_id) WHERE e.reissue_no > 0) THEN
    IF EXISTS (SELECT 1 FROM new_rows n JOIN execution e USING (execution_id)
         JOIN execution o ON o.strategy = e.strategy AND o.reissue_no < e.reissue_no AND (o.slot = e.slot OR o.trigger_key = e.trigger_key)
         LEFT JOIN nonce_reservation r ON r.execution_id = o.execution_id
        WHERE e.reissue_no > 0 AND (o.state IN ('PENDING', 'PLANNED', 'RUNNING') OR r.state = 'OPEN' OR (r.step = n.step AND r.effect))) THEN
      PERFORM refuse('intent_reissued', 'a reissue repeats only steps without effect, of executions that are over');
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER born AFTER INSERT ON intent REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION intent_born();
ALTER TABLE intent ENABLE ALWAYS TRIGGER born;

CREATE FUNCTION nonce_reservation_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  final_kind text;
  final_status smallint;
BEGIN
  IF (NEW.account_id, NEW.nonce, NEW.execution_id, NEW.step, NEW.intent_digest, NEW.once, NEW.transaction_type, NEW.token, NEW.reserved_at)
     IS DISTINCT FROM
     (OLD.account_id, OLD.nonce, OLD.execution_id, OLD.step, OLD.intent_digest, OLD.once, OLD.transaction_type, OLD.token, OLD.reserved_at) THEN
    PERFORM refuse('nonce_reservation_identity', format('nonce %s of account %s is never re-pointed', OLD.nonce, OLD.account_id));
  END IF;
  IF OLD.state = 'CLOSED' THEN
    PERFORM refuse('nonce_reservation_transition', format('nonce %s of account %s is closed for good', OLD.nonce, OLD.account_id));
  END IF;
  IF NEW.closed_as = 'foreign' AND EXISTS (SELECT 1 FROM attempt a
       WHERE a.account_id = OLD.account_id AND a.nonce = OLD.nonce AND a.status IN ('MINED', 'FINAL')) THEN
    PERFORM refuse('nonce_reservation_foreign', format('nonce %s of account %s was used by a transaction of ours', OLD.nonce, OLD.account_id));
  END IF;
  IF NEW.closed_as = 'attempt' THEN
    SELECT a.kind, r.status INTO final_kind, final_status FROM attempt a
      LEFT JOIN receipt r ON (r.account_id, r.nonce, r.seq) = (a.account_id, a.nonce, a.seq) AND r.orphaned_at IS NULL
     WHERE a.account_id = OLD.account_id AND a.nonce = OLD.nonce AND a.seq = NEW.closed_seq AND a.status = 'FINAL';
    IF final_status IS NULL THEN
      PERFORM refuse('nonce_reservation_final', format('nonce %s of account %s closes only with a FINAL attempt and its receipt', OLD.nonce, OLD.account_id));
    END IF;
    IF NEW.effect IS DISTINCT FROM (final_kind <> 'CANCEL' AND final_status = 1) THEN
      PERFORM refuse('nonce_reservation_effect', format('nonce %s of account %s: effect is not what the receipt says', OLD.nonce, OLD.account_id));
    END IF;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE UPDATE ON nonce_reservation FOR EACH ROW EXECUTE FUNCTION nonce_reservation_change();
ALTER TABLE nonce_reservation ENABLE ALWAYS TRIGGER change;

-- Nonces are exactly first_nonce, first_nonce + 1, …; nothing is reserved while the account is not open (G7, P16).
CREATE FUNCTION nonce_reservation_born() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  bad record;
BEGIN
  SELECT n.account_id, n.nonce, a.state, a.first_nonce INTO bad FROM new_rows n JOIN account a USING (account_id)
   WHERE a.state <> 'open' OR a.first_nonce IS NULL
      OR (n.nonce <> a.first_nonce AND NOT EXISTS (SELECT 1 FROM nonce_reservation p WHERE p.account_id = n.account_id AND p.nonce = n.nonce - 1))
      OR n.nonce < a.first_nonce
   LIMIT 1;
  IF FOUND THEN
    IF bad.state <> 'open' THEN
      PERFORM refuse('account_open', format('account %s is %s: nothing is reserved', bad.account_id, bad.state));
    END IF;
    PERFORM refuse('nonce_reservation_contiguous', format('nonce %s of account %s would leave a hole', bad.nonce, bad.account_id));
  END IF;
  IF EXISTS (SELECT 1 FROM new_rows n JOIN execution e USING (execution_id) WHERE e.state NOT IN ('PLANNED', 'RUNNING')) THEN
    PERFORM refuse('nonce_reservation_planned', 'a nonce is reserved for a planned or running execution only');
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
CREATE TRIGGER born AFTER INSERT ON nonce_reservation REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION nonce_reservation_born();
ALTER TABLE nonce_reservation ENABLE ALWAYS TRIGGER born;

CREATE FUNCTION attempt_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.account_id, NEW.nonce, NEW.seq, NEW.kind, NEW.intent_digest, NEW.cancel_digest, NEW.gas, NEW.max_fee, NEW.tip, NEW.token, NEW.drafted_at)
     IS DISTINCT FROM
     (OLD.account_id, OLD.nonce, OLD.seq, OLD.kind, OLD.intent_digest, OLD.cancel_digest, OLD.gas, OLD.max_fee, OLD.tip, OLD.token, OLD.drafted_at) THEN
    PERFORM refuse('attempt_identity', format('a draft never changes (nonce %s of account %s)', OLD.nonce, OLD.account_id));
  END IF;
  IF OLD.raw IS NOT NULL AND (NEW.raw, NEW.hash, NEW.signed_at, NEW.signed_token) IS DISTINCT FROM (OLD.raw, OLD.hash, OLD.signed_at, OLD.signed_token) THEN
    PERFORM refuse('attempt_bytes_immutable', format('signed bytes never change (nonce %s of account %s)', OLD.nonce, OLD.account_id));
  END IF;
  IF NEW.status = OLD.status THEN RETURN NEW; END IF;
  IF NOT (CASE OLD.status
      WHEN 'DRAFT' THEN NEW.status IN ('SIGNED', 'REFUSED', 'SUPERSEDED')
      WHEN 'SIGNED' THEN NEW.status IN ('SENT', 'MINED', 'SUPERSEDED')
      WHEN 'SENT' THEN NEW.status IN ('MINED', 'SUPERSEDED')
      WHEN 'MINED' THEN NEW.status IN ('SENT', 'FINAL', 'SUPERSEDED')
      ELSE false END) THEN
    PERFORM refuse('attempt_transition', format('attempt %s of nonce %s cannot go from %s to %s', OLD.seq, OLD.nonce, OLD.status, NEW.status));
  END IF;
  IF NEW.status = 'SIGNED' AND NEW.kind <> 'CANCEL' AND (SELECT state FROM account WHERE account_id = OLD.account_id) = 'halted' THEN
    PERFORM refuse('account_open', format('account %s is halted: only cancels are signed', OLD.account_id));
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION attempt_born() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM new_rows WHERE status <> 'DRAFT') THEN
    PERFORM refuse('attempt_transition', 'an attempt is born a DRAFT');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER born AFTER INSERT ON attempt REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION attempt_born();
ALTER TABLE attempt ENABLE ALWAYS TRIGGER born;

CREATE TRIGGER change BEFORE UPDATE ON attempt FOR EACH ROW EXECUTE FUNCTION attempt_change();
ALTER TABLE attempt ENABLE ALWAYS TRIGGER change;

CREATE FUNCTION receipt_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (to_jsonb(NEW) - 'orphaned_at') IS DISTINCT FROM (to_jsonb(OLD) - 'orphaned_at') OR OLD.orphaned_at IS NOT NULL THEN
    PERFORM refuse('receipt_immutable', 'a receipt row changes once, when its block leaves the chain');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE UPDATE ON receipt FOR EACH ROW EXECUTE FUNCTION receipt_change();
ALTER TABLE receipt ENABLE ALWAYS TRIGGER change;

CREATE FUNCTION account_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.account_id, NEW.chain_id, NEW.address, NEW.cancel_digest) IS DISTINCT FROM (OLD.account_id, OLD.chain_id, OLD.address, OLD.cancel_digest)
     OR (OLD.first_nonce IS NOT NULL AND NEW.first_nonce IS DISTINCT FROM OLD.first_nonce)
     OR (OLD.genesis_hash IS NOT NULL AND NEW.genesis_hash IS DISTINCT FROM OLD.genesis_hash) THEN
    PERFORM refuse('account_identity', format('what account %s is never changes', OLD.account_id));
  END IF;
  IF NEW.fence < OLD.fence THEN
    PERFORM refuse('fence_high_water', format('the high-water mark of account %s never falls', OLD.account_id));
  END IF;
  IF ((OLD.state = 'halted' AND NEW.state <> 'halted') OR (OLD.state = 'draining' AND NEW.state = 'open') OR NEW.timeline <> OLD.timeline
      OR NEW.first_nonce IS DISTINCT FROM OLD.first_nonce OR NEW.genesis_hash IS DISTINCT FROM OLD.genesis_hash)
     AND NEW.hold_xid IS DISTINCT FROM pg_current_xact_id() THEN
    PERFORM refuse('fence_required', format('account %s is opened by its holder only', OLD.account_id));
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION account_change();
ALTER TABLE account ENABLE ALWAYS TRIGGER change;

CREATE FUNCTION lease_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.account_id <> OLD.account_id OR NEW.token < OLD.token THEN
    PERFORM refuse('lease_token_grows', format('the token of account %s only grows', OLD.account_id));
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE UPDATE ON lease FOR EACH ROW EXECUTE FUNCTION lease_change();
ALTER TABLE lease ENABLE ALWAYS TRIGGER change;

CREATE FUNCTION strategy_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.name <> OLD.name THEN
    PERFORM refuse('strategy_identity', format('strategy %s keeps its name', OLD.name));
  END IF;
  IF NEW.high_water_mark < OLD.high_water_mark OR NEW.pruned_through < OLD.pruned_through THEN
    PERFORM refuse('strategy_high_water_mark', format('the high-water mark of strategy %s never falls', OLD.name));
  END IF;
  IF NEW.pruned_through > NEW.high_water_mark THEN
    PERFORM refuse('strategy_pruned_through', format('strategy %s: only slots at or below the high-water mark are pruned', OLD.name));
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE UPDATE ON strategy FOR EACH ROW EXECUTE FUNCTION strategy_change();
ALTER TABLE strategy ENABLE ALWAYS TRIGGER change;

CREATE FUNCTION request_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.answered_at IS NOT NULL OR (to_jsonb(NEW) - '{answered_at,granted,answer}'::text[]) IS DISTINCT FROM (to_jsonb(OLD) - '{answered_at,granted,answer}'::text[]) THEN
    PERFORM refuse('request_answered_once', 'a request is answered once and otherwise never changes');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER change BEFORE UPDATE ON request FOR EACH ROW EXECUTE FUNCTION request_change();
ALTER TABLE request ENABLE ALWAYS TRIGGER change;
