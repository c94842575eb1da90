-- Which database this is: the cluster and its timeline, kept for each account as it was when the account was last opened.
-- Another timeline means restored or promoted, another cluster copied (P13); hold halts the account on either.

CREATE FUNCTION current_system_identifier() RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT system_identifier::text FROM pg_control_system()
$$;

CREATE FUNCTION is_moved(p_timeline integer, p_system text) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT p_timeline <> current_timeline() OR p_system <> current_system_identifier()
$$;

CREATE FUNCTION moved_why(p_timeline integer, p_system text) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_system <> current_system_identifier()
    THEN format('the database is in the cluster %s, last reconciled in %s: copied to another installation', current_system_identifier(), p_system)
    ELSE format('the database is on timeline %s, last reconciled on %s: restored or promoted', current_timeline(), p_timeline) END
$$;

-- Where a new account begins: an installation that was rewound before the account was registered halts it too.
ALTER TABLE installation ADD COLUMN timeline integer;
UPDATE installation SET timeline = coalesce((SELECT min(timeline) FROM account), current_timeline());
ALTER TABLE installation ALTER COLUMN timeline SET NOT NULL, ALTER COLUMN timeline SET DEFAULT current_timeline();

CREATE FUNCTION installation_system_identifier() RETURNS text LANGUAGE sql STABLE AS $$ SELECT system_identifier FROM installation $$;

ALTER TABLE account
  ADD COLUMN system_identifier text NOT NULL DEFAULT installation_system_identifier(),
  -- When it was last reopened after a rewind or a copy: nothing due before runs until an operator releases it.
  ADD COLUMN reopened_at timestamptz;

-- A running execution of ordered steps gets no further nonce once the rows were rewound: a lost row may have paid the step.
ALTER TABLE execution ADD COLUMN stopped_at timestamptz;

-- A wish recorded before a rewind is not the operator's word about it.
ALTER TABLE request
  ADD COLUMN timeline integer NOT NULL DEFAULT current_timeline(),
  ADD COLUMN system_identifier text NOT NULL DEFAULT current_system_identifier();

CREATE OR REPLACE FUNCTION hold(p_account integer, p_token bigint, p_lease uuid, p_epoch integer) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  held lease%ROWTYPE;
  allowed installation%ROWTYPE;
  timeline_now integer := current_timeline();
  system_now text := current_system_identifier();
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
         state = CASE WHEN timeline <> timeline_now OR system_identifier <> system_now THEN 'halted' ELSE state END,
         reason = CASE WHEN (timeline <> timeline_now OR system_identifier <> system_now) AND state <> 'halted'
                       THEN moved_why(timeline, system_identifier) ELSE reason END
   WHERE account_id = p_account AND fence <= p_token
  RETURNING state INTO account_state;
  IF NOT FOUND THEN
    SELECT fence INTO mark FROM account WHERE account_id = p_account;
    PERFORM refuse('fence_high_water', format('account %s has seen a higher token', p_account),
                   format('asked with token %s, high-water mark %s', p_token, mark));
  END IF;
  RETURN account_state;
END $$;

CREATE OR REPLACE FUNCTION account_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.account_id, NEW.chain_id, NEW.address, NEW.cancel_digest) IS DISTINCT FROM (OLD.account_id, OLD.chain_id, OLD.address, OLD.cancel_digest)
     OR (OLD.first_nonce IS NOT NULL AND NEW.first_nonce IS DISTINCT FROM OLD.first_nonce)
     OR (OLD.genesis_hash IS NOT NULL AND NEW.genesis_hash IS DISTINCT FROM OLD.genesis_hash) THEN
    PERFORM refuse('account_identity', format('what account %s is never changes', OLD.account_id));
  END IF;
  IF NEW.fence < OLD.fence THEN
    PERFORM refuse('fence_high_water', format('the high-water mark of account %s never falls', OLD.account_id));
  END IF;
  IF ((OLD.state = 'halted' AND NEW.state <> 'halted') OR (OLD.state = 'draining' AND NEW.state = 'open')
      OR (NEW.timeline, NEW.system_identifier, NEW.reopened_at, NEW.first_nonce, NEW.genesis_hash)
         IS DISTINCT FROM (OLD.timeline, OLD.system_identifier, OLD.reopened_at, OLD.first_nonce, OLD.genesis_hash))
     AND NEW.hold_xid IS DISTINCT FROM pg_current_xact_id() THEN
    PERFORM refuse('fence_required', format('account %s is opened by its holder only', OLD.account_id));
  END IF;
  IF NEW.reopened_at < OLD.reopened_at OR (OLD.reopened_at IS NOT NULL AND NEW.reopened_at IS NULL) THEN
    PERFORM refuse('account_reopened_at', format('what was due before account %s was reopened stays before it', OLD.account_id));
  END IF;
  RETURN NEW;
END $$;

-- Every worker of this release knows moved databases; older ones are fenced (P27).
UPDATE installation SET epoch_min = 2, epoch_max = 2;
