-- The journal only grows. One event per trigger, all ENABLE ALWAYS, each refusal under its own name.

CREATE TRIGGER account_fence_never_falls BEFORE UPDATE ON signer.account FOR EACH ROW
    WHEN (NEW.chain_id <> OLD.chain_id OR NEW.address <> OLD.address OR NEW.fence < OLD.fence
          OR (NEW.fence = OLD.fence AND NEW.lease_id <> OLD.lease_id))
    EXECUTE FUNCTION signer.refuse('account_fence_never_falls');
CREATE TRIGGER account_no_delete BEFORE DELETE ON signer.account
    FOR EACH STATEMENT EXECUTE FUNCTION signer.refuse('account_no_delete');
CREATE TRIGGER account_no_truncate BEFORE TRUNCATE ON signer.account
    FOR EACH STATEMENT EXECUTE FUNCTION signer.refuse('account_no_truncate');

CREATE TRIGGER binding_only_to_cancel BEFORE UPDATE ON signer.binding FOR EACH ROW
    WHEN (OLD.state <> 'intent' OR NEW.state <> 'cancel'
          OR (NEW.chain_id, NEW.address, NEW.nonce, NEW.execution_id, NEW.step, NEW.digest, NEW.tx_type)
             IS DISTINCT FROM (OLD.chain_id, OLD.address, OLD.nonce, OLD.execution_id, OLD.step, OLD.digest, OLD.tx_type))
    EXECUTE FUNCTION signer.refuse('binding_only_to_cancel');
CREATE TRIGGER binding_no_delete BEFORE DELETE ON signer.binding
    FOR EACH STATEMENT EXECUTE FUNCTION signer.refuse('binding_no_delete');
CREATE TRIGGER binding_no_truncate BEFORE TRUNCATE ON signer.binding
    FOR EACH STATEMENT EXECUTE FUNCTION signer.refuse('binding_no_truncate');

CREATE TRIGGER signature_bytes_once BEFORE UPDATE ON signer.signature FOR EACH ROW
    WHEN (OLD.raw IS NOT NULL OR NEW.raw IS NULL
          OR (NEW.chain_id, NEW.address, NEW.nonce, NEW.sighash, NEW.kind, NEW.max_fee_wei, NEW.tip_wei, NEW.gas, NEW.token, NEW.at)
             IS DISTINCT FROM
             (OLD.chain_id, OLD.address, OLD.nonce, OLD.sighash, OLD.kind, OLD.max_fee_wei, OLD.tip_wei, OLD.gas, OLD.token, OLD.at))
    EXECUTE FUNCTION signer.refuse('signature_bytes_once');
CREATE TRIGGER signature_no_bytes_at_birth BEFORE INSERT ON signer.signature FOR EACH ROW
    WHEN (NEW.raw IS NOT NULL) EXECUTE FUNCTION signer.refuse('signature_no_bytes_at_birth');
CREATE TRIGGER signature_fits_state AFTER INSERT ON signer.signature
    REFERENCING NEW TABLE AS new_signatures FOR EACH STATEMENT EXECUTE FUNCTION signer.refuse_after_cancel();
CREATE TRIGGER signature_no_delete BEFORE DELETE ON signer.signature
    FOR EACH STATEMENT EXECUTE FUNCTION signer.refuse('signature_no_delete');
CREATE TRIGGER signature_no_truncate BEFORE TRUNCATE ON signer.signature
    FOR EACH STATEMENT EXECUTE FUNCTION signer.refuse('signature_no_truncate');

ALTER TABLE signer.account   ENABLE ALWAYS TRIGGER account_fence_never_falls;
ALTER TABLE signer.account   ENABLE ALWAYS TRIGGER account_no_delete;
ALTER TABLE signer.account   ENABLE ALWAYS TRIGGER account_no_truncate;
ALTER TABLE signer.binding   ENABLE ALWAYS TRIGGER binding_only_to_cancel;
ALTER TABLE signer.binding   ENABLE ALWAYS TRIGGER binding_no_delete;
ALTER TABLE signer.binding   ENABLE ALWAYS TRIGGER binding_no_truncate;
ALTER TABLE signer.signature ENABLE ALWAYS TRIGGER signature_bytes_once;
ALTER TABLE signer.signature ENABLE ALWAYS TRIGGER signature_no_bytes_at_birth;
ALTER TABLE signer.signature ENABLE ALWAYS TRIGGER signature_fits_state;
ALTER TABLE signer.signature ENABLE ALWAYS TRIGGER signature_no_delete;
ALTER TABLE signer.signature ENABLE ALWAYS TRIGGER signature_no_truncate;
