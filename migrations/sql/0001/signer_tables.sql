-- The signer's journal: which account has which fence, what each nonce is for, and every signature ever ordered.
-- Its own schema, so that it can have its own role, or its own database.

CREATE SCHEMA signer;

CREATE TABLE signer.account (
    chain_id bigint NOT NULL CONSTRAINT account_chain_id_range CHECK (chain_id >= 1),
    address  bytea  NOT NULL CONSTRAINT account_address_length CHECK (octet_length(address) = 20),
    fence    bigint NOT NULL CONSTRAINT account_fence_range CHECK (fence >= 1),
    lease_id uuid   NOT NULL,
    CONSTRAINT account_pkey PRIMARY KEY (chain_id, address)
);
COMMENT ON TABLE signer.account IS 'The newest lease generation that ever asked for a signature, or took over (G6, P7).';

CREATE TABLE signer.binding (
    chain_id     bigint   NOT NULL,
    address      bytea    NOT NULL,
    nonce        bigint   NOT NULL CONSTRAINT binding_nonce_range CHECK (nonce >= 0),
    execution_id text     NOT NULL CONSTRAINT binding_execution_id_length CHECK (length(execution_id) BETWEEN 1 AND 500),
    step         integer  NOT NULL CONSTRAINT binding_step_range CHECK (step >= 0),
    digest       bytea    NOT NULL CONSTRAINT binding_digest_length CHECK (octet_length(digest) = 32),
    tx_type      smallint NOT NULL CONSTRAINT binding_tx_type_known CHECK (tx_type IN (0, 1, 2)),
    state        text     NOT NULL CONSTRAINT binding_state_known CHECK (state IN ('intent', 'cancel')),
    CONSTRAINT binding_pkey PRIMARY KEY (chain_id, address, nonce),
    -- In this order, so that no look-up by nonce can be planned over it before the first ANALYZE.
    CONSTRAINT binding_step_once UNIQUE (execution_id, step, chain_id, address),
    CONSTRAINT binding_account_fkey FOREIGN KEY (chain_id, address) REFERENCES signer.account
);
COMMENT ON TABLE signer.binding IS
    'What a nonce is for: one step of one execution, one digest (P24), for ever. It changes once at most, to a cancel (P7).';

CREATE TABLE signer.signature (
    chain_id    bigint         NOT NULL,
    address     bytea          NOT NULL,
    nonce       bigint         NOT NULL,
    sighash     bytea          NOT NULL CONSTRAINT signature_sighash_length CHECK (octet_length(sighash) = 32),
    kind        text           NOT NULL CONSTRAINT signature_kind_known CHECK (kind IN ('SEND', 'BUMP', 'CANCEL')),
    max_fee_wei numeric(78, 0) NOT NULL
        CONSTRAINT signature_max_fee_range CHECK (max_fee_wei >= 0 AND max_fee_wei <=
            115792089237316195423570985008687907853269984665640564039457584007913129639935),
    tip_wei     numeric(78, 0) NOT NULL
        CONSTRAINT signature_tip_range CHECK (tip_wei >= 0 AND tip_wei <= max_fee_wei),
    gas         numeric(20, 0) NOT NULL
        CONSTRAINT signature_gas_range CHECK (gas >= 21000 AND gas < 18446744073709551616),
    token       bigint         NOT NULL,
    raw         bytea,
    hash        bytea          CONSTRAINT signature_hash_length CHECK (octet_length(hash) = 32),
    at          timestamptz    NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT signature_pkey PRIMARY KEY (chain_id, address, nonce, sighash),
    CONSTRAINT signature_binding_fkey FOREIGN KEY (chain_id, address, nonce) REFERENCES signer.binding,
    CONSTRAINT signature_bytes_and_hash CHECK ((raw IS NULL) = (hash IS NULL))
);
COMMENT ON TABLE signer.signature IS
    'A signature that was ordered. It is committed without bytes before the key is touched; the bytes come once. '
    'The sighash is unique for an account only: it does not contain the sender.';
