-- Lock an account's row for this transaction and compare fences. In one round trip: every signing begins with it.
-- Answers the newest fence and its lease id after the call: the caller is current if they are its own.
CREATE FUNCTION signer.hold(p_chain_id bigint, p_address bytea, p_fence bigint, p_lease_id uuid)
RETURNS TABLE (fence bigint, lease_id uuid)
LANGUAGE plpgsql AS $$
DECLARE
    stored signer.account;
BEGIN
    PERFORM set_config('synchronous_commit', 'on', true),
            set_config('lock_timeout', '5s', true),
            set_config('idle_in_transaction_session_timeout', '10s', true);
    SELECT * INTO stored FROM signer.account AS a
     WHERE a.chain_id = p_chain_id AND a.address = p_address FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO signer.account VALUES (p_chain_id, p_address, p_fence, p_lease_id) ON CONFLICT DO NOTHING;
        SELECT * INTO STRICT stored FROM signer.account AS a
         WHERE a.chain_id = p_chain_id AND a.address = p_address FOR UPDATE;
    END IF;
    IF stored.fence < p_fence THEN
        UPDATE signer.account AS a SET fence = p_fence, lease_id = p_lease_id
         WHERE a.chain_id = p_chain_id AND a.address = p_address
        RETURNING * INTO STRICT stored;
    END IF;
    RETURN QUERY SELECT stored.fence, stored.lease_id;
END $$;

-- Refuse a change with the name of the rule it breaks, as if a constraint had that name.
CREATE FUNCTION signer.refuse() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = '23514',
        MESSAGE = 'the journal of signatures does not change like this: ' || TG_ARGV[0],
        CONSTRAINT = TG_ARGV[0],
        SCHEMA = TG_TABLE_SCHEMA,
        TABLE = TG_TABLE_NAME;
END $$;

-- After a cancel of a nonce nothing else is signed for it.
CREATE FUNCTION signer.refuse_after_cancel() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM new_signatures AS s -- looked up one by one: a join is planned badly before the first ANALYZE
         WHERE (s.kind = 'CANCEL') <> (SELECT b.state = 'cancel' FROM signer.binding AS b
                                        WHERE b.chain_id = s.chain_id AND b.address = s.address AND b.nonce = s.nonce)
    ) THEN
        RAISE EXCEPTION USING
            ERRCODE = '23514',
            MESSAGE = 'a cancelled nonce takes cancels only, and a cancel needs a cancelled nonce',
            CONSTRAINT = 'signature_fits_state',
            SCHEMA = 'signer',
            TABLE = 'signature';
    END IF;
    RETURN NULL;
END $$;
