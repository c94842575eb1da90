-- The wall (P8, P9, P13, P27). hold is the first statement of every record transaction. It never looks at expires_at:
-- identity is the fence, time is only for acquiring.

CREATE FUNCTION refuse(constraint_name text, message text, detail text DEFAULT '') RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = '23514', CONSTRAINT = constraint_name, MESSAGE = message, DETAIL = detail;
END $$;

CREATE FUNCTION current_timeline() RETURNS integer
LANGUAGE sql STABLE AS $$
  SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer
$$;

CREATE FUNCTION hold(p_account integer, p_token bigint, p_lease uuid, p_epoch integer) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  held lease%ROWTYPE;
  allowed installation%ROWTYPE;
  timeline_now integer := current_timeline();
  account_state text;
  mark bigint;
BEGIN
  PERFORM set_config('lock_timeout', '1s', true), set_config('synchronous_commit', 'on', true),
          set_config('idle_in_transaction_session_timeout', '2s', true);
  PERFORM 1 FROM lease WHERE account_id = p_account AND token = p_token AND lease_id = p_lease FOR KEY SHARE;
  IF NOT FOUND THEN
    SELECT * INTO held FROM lease WHERE account_id = p_account;
    PERFORM refuse('fence_current', format('the lease of account %s has passed to another holder', p_account),
                   format('asked with token %s, the lease has token %s, held by %s', p_token, held.token, coalesce(held.holder, 'nobody')));
  END IF;
  SELECT * INTO allowed FROM installation;
  IF p_epoch < allowed.epoch_min OR p_epoch > allowed.epoch_max THEN
    PERFORM refuse('fence_epoch', format('this worker''s schema epoch %s is outside %s to %s', p_epoch, allowed.epoch_min, allowed.epoch_max));
  END IF;
  UPDATE account SET hold_xid = pg_current_xact_id(), fence = p_token,
         state = CASE WHEN timeline <> timeline_now THEN 'halted' ELSE state END,
         reason = CASE WHEN timeline <> timeline_now AND state <> 'halted'
                       THEN format('the database is on timeline %s, last reconciled on %s: restored or promoted', timeline_now, timeline)
                       ELSE reason END
   WHERE account_id = p_account AND fence <= p_token
  RETURNING state INTO account_state;
  IF NOT FOUND THEN
    SELECT fence INTO mark FROM account WHERE account_id = p_account;
    PERFORM refuse('fence_high_water', format('account %s has seen a higher token', p_account),
                   format('asked with token %s, high-water mark %s', p_token, mark));
  END IF;
  RETURN account_state;
END $$;
