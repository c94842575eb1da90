-- Every write of a guarded table needs the stamp that hold left on the account of each row, in this very transaction.

CREATE FUNCTION guard_refuse(p_table text, p_account integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  other integer;
BEGIN
  SELECT account_id INTO other FROM account WHERE hold_xid = pg_current_xact_id() LIMIT 1;
  IF other IS NULL THEN
    PERFORM refuse('fence_required', format('%s of account %s written without hold', p_table, p_account));
  END IF;
  PERFORM refuse('fence_account', format('%s of account %s written under the hold of account %s', p_table, p_account, other));
END $$;

CREATE FUNCTION guard_new() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  unheld integer;
BEGIN
  SELECT n.account_id INTO unheld FROM (SELECT DISTINCT account_id FROM new_rows) n
    LEFT JOIN account a USING (account_id) WHERE a.hold_xid IS DISTINCT FROM pg_current_xact_id() LIMIT 1;
  IF FOUND THEN PERFORM guard_refuse(TG_TABLE_NAME, unheld); END IF;
  RETURN NULL;
END $$;

-- Inserted rows also name the generation that wrote them: it must be the holder's (G6 provable from rows).
CREATE FUNCTION guard_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  wrong integer;
  wrong_token bigint;
  stamped boolean;
BEGIN
  SELECT n.account_id, n.token, a.hold_xid IS NOT DISTINCT FROM pg_current_xact_id() INTO wrong, wrong_token, stamped
    FROM (SELECT DISTINCT account_id, token FROM new_rows) n LEFT JOIN account a USING (account_id)
   WHERE a.hold_xid IS DISTINCT FROM pg_current_xact_id() OR n.token <> a.fence LIMIT 1;
  IF FOUND THEN
    IF NOT stamped THEN PERFORM guard_refuse(TG_TABLE_NAME, wrong); END IF;
    PERFORM refuse('fence_current', format('%s of account %s carries token %s, which is not the holder''s', TG_TABLE_NAME, wrong, wrong_token));
  END IF;
  RETURN NULL;
END $$;

-- The scheduler and triggers may insert what does nothing by itself: PENDING and SKIPPED executions (P21).
CREATE FUNCTION guard_execution_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  unheld integer;
BEGIN
  SELECT n.account_id INTO unheld FROM new_rows n LEFT JOIN account a USING (account_id)
   WHERE n.state NOT IN ('PENDING', 'SKIPPED') AND a.hold_xid IS DISTINCT FROM pg_current_xact_id() LIMIT 1;
  IF FOUND THEN PERFORM guard_refuse(TG_TABLE_NAME, unheld); END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION refuse_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM refuse(TG_TABLE_NAME || '_kept', format('rows of %s are never removed (%s)', TG_TABLE_NAME, TG_OP));
  RETURN NULL;
END $$;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM refuse(TG_TABLE_NAME || '_immutable', format('rows of %s never change', TG_TABLE_NAME));
  RETURN NULL;
END $$;

DO $$
DECLARE
  t text;
BEGIN
  FOREACH t IN ARRAY ARRAY['intent', 'nonce_reservation', 'attempt', 'broadcast', 'receipt', 'already_paid'] LOOP
    EXECUTE format('CREATE TRIGGER guard_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION guard_insert()', t);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER guard_insert', t);
  END LOOP;
  CREATE TRIGGER guard_insert AFTER INSERT ON execution REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION guard_execution_insert();
  ALTER TABLE execution ENABLE ALWAYS TRIGGER guard_insert;
  FOREACH t IN ARRAY ARRAY['execution', 'nonce_reservation', 'attempt', 'broadcast', 'receipt'] LOOP
    EXECUTE format('CREATE TRIGGER guard_update AFTER UPDATE ON %I REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION guard_new()', t);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER guard_update', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['intent', 'already_paid', 'lease_generation', 'history', 'refused_write'] LOOP
    EXECUTE format('CREATE TRIGGER immutable BEFORE UPDATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', t);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER immutable', t);
  END LOOP;
  FOREACH t IN ARRAY ARRAY['installation', 'account', 'lease', 'lease_generation', 'strategy', 'execution', 'intent', 'nonce_reservation',
                           'attempt', 'broadcast', 'receipt', 'already_paid', 'request', 'history', 'refused_write'] LOOP
    EXECUTE format('CREATE TRIGGER kept_delete BEFORE DELETE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_removal()', t);
    EXECUTE format('CREATE TRIGGER kept_truncate BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_removal()', t);
    EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER kept_delete, ENABLE ALWAYS TRIGGER kept_truncate', t);
  END LOOP;
END $$;
