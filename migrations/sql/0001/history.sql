-- Every transition, written from the old and new rows, so that no store can forget it.

CREATE FUNCTION history_token(p_account integer) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT fence FROM account WHERE account_id = p_account AND hold_xid = pg_current_xact_id_if_assigned()
$$;

CREATE FUNCTION execution_history_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (kind, subject, account_id, from_state, to_state, why)
  SELECT 'execution', execution_id, account_id, NULL, state, reason FROM new_rows;
  RETURN NULL;
END $$;
CREATE TRIGGER history_insert AFTER INSERT ON execution REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION execution_history_insert();

CREATE FUNCTION execution_history_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (kind, subject, account_id, from_state, to_state, why, token)
  SELECT 'execution', n.execution_id, n.account_id, o.state, n.state, n.reason, a.fence
    FROM new_rows n JOIN old_rows o USING (execution_id) JOIN account a ON a.account_id = n.account_id WHERE n.state <> o.state;
  RETURN NULL;
END $$;
CREATE TRIGGER history_update AFTER UPDATE ON execution REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION execution_history_update();

CREATE FUNCTION nonce_reservation_history_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (kind, subject, account_id, from_state, to_state, why, token)
  SELECT 'nonce', account_id || '/' || nonce, account_id, NULL, state, execution_id || ' step ' || step, token FROM new_rows;
  RETURN NULL;
END $$;
CREATE TRIGGER history_insert AFTER INSERT ON nonce_reservation REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION nonce_reservation_history_insert();

CREATE FUNCTION nonce_reservation_history_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (kind, subject, account_id, from_state, to_state, why, token)
  SELECT 'nonce', n.account_id || '/' || n.nonce, n.account_id, o.state, n.state, 'by ' || n.closed_as || coalesce(' ' || n.closed_seq, ''), a.fence
    FROM new_rows n JOIN old_rows o USING (account_id, nonce) JOIN account a USING (account_id) WHERE n.state <> o.state;
  RETURN NULL;
END $$;
CREATE TRIGGER history_update AFTER UPDATE ON nonce_reservation REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION nonce_reservation_history_update();

CREATE FUNCTION attempt_history_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (kind, subject, account_id, from_state, to_state, why, token)
  SELECT 'attempt', account_id || '/' || nonce || '/' || seq, account_id, NULL, status, kind, token FROM new_rows;
  RETURN NULL;
END $$;
CREATE TRIGGER history_insert AFTER INSERT ON attempt REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION attempt_history_insert();

CREATE FUNCTION attempt_history_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (kind, subject, account_id, from_state, to_state, why, token)
  SELECT 'attempt', n.account_id || '/' || n.nonce || '/' || n.seq, n.account_id, o.status, n.status, n.reason, a.fence
    FROM new_rows n JOIN old_rows o USING (account_id, nonce, seq) JOIN account a USING (account_id) WHERE n.status <> o.status;
  RETURN NULL;
END $$;
CREATE TRIGGER history_update AFTER UPDATE ON attempt REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION attempt_history_update();

CREATE FUNCTION account_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (kind, subject, account_id, from_state, to_state, why, token)
  VALUES ('account', NEW.name, NEW.account_id, OLD.state, NEW.state, NEW.reason, history_token(NEW.account_id));
  RETURN NULL;
END $$;
CREATE TRIGGER history AFTER UPDATE ON account FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION account_history();

CREATE FUNCTION strategy_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO history (kind, subject, account_id, from_state, to_state, why)
  VALUES ('strategy', NEW.name, NEW.account_id,
          CASE WHEN OLD.retired_at IS NOT NULL THEN 'retired' WHEN OLD.paused_at IS NOT NULL THEN 'paused' ELSE 'active' END,
          CASE WHEN NEW.retired_at IS NOT NULL THEN 'retired' WHEN NEW.paused_at IS NOT NULL THEN 'paused' ELSE 'active' END,
          coalesce(NEW.paused_why, 'revision ' || left(NEW.revision, 12)));
  RETURN NULL;
END $$;
CREATE TRIGGER history AFTER UPDATE ON strategy FOR EACH ROW
  WHEN ((OLD.paused_at, OLD.retired_at, OLD.revision) IS DISTINCT FROM (NEW.paused_at, NEW.retired_at, NEW.revision))
  EXECUTE FUNCTION strategy_history();

DO $$
DECLARE
  t record;
BEGIN
  FOR t IN SELECT tgname, tgrelid::regclass AS relation FROM pg_trigger WHERE tgname LIKE 'history%' AND NOT tgisinternal LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t.relation, t.tgname);
  END LOOP;
END $$;
