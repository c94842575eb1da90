"""G3, G4 and G5 in the rows, each kind of violation planted once; bytes that say something else are planted in test_planted."""

from tests.audit.planting import Plant
from tests.audit.plants_payments import NEW_GENERATION, OF, PLANNED

SEVEN = "attempt account_id=1 nonce=7 seq=0"
PLANTS = {
    "hash-twice": Plant(
        ("attempt account_id=1 nonce=4 seq=0", "attempt account_id=1 nonce=4 seq=1"),
        (
            "UPDATE attempt SET (raw, hash, max_fee, tip) = (SELECT raw, hash, max_fee, tip FROM attempt WHERE (nonce, seq) = (4, 1)) WHERE nonce = 4",
        ),
        ("attempt_hash",),
        ("raise-too-small", "journal-differs", "journal-signed-more"),
    ),
    "sent-without-bytes": Plant(
        (SEVEN,),
        ("UPDATE attempt SET raw = NULL, hash = NULL WHERE nonce = 7",),
        ("attempt_bytes",),
        ("broadcast-without-bytes",),
    ),
    "draft-with-bytes": Plant(
        (SEVEN,),
        (
            "UPDATE attempt SET status = 'DRAFT', signed_token = NULL, sent_token = NULL WHERE nonce = 7",
            "DELETE FROM history WHERE subject = '1/7/0' AND from_state IS NOT NULL",
            "DELETE FROM broadcast WHERE nonce = 7",
        ),
        ("attempt_bytes",),
    ),
    "gas-fell": Plant(
        ("attempt account_id=1 nonce=4 seq=1",),
        (
            "UPDATE attempt SET gas = 40000 WHERE (nonce, seq) = (4, 0)",
            "UPDATE signer.signature SET gas = 40000 WHERE nonce = 4 AND kind = 'SEND'",
        ),
        (),
        ("other-fees",),
    ),
    "raise-too-small": Plant(
        ("attempt account_id=1 nonce=4 seq=1",),
        (
            "UPDATE attempt SET tip = tip * 2 WHERE (nonce, seq) = (4, 0)",
            "UPDATE signer.signature SET tip_wei = tip_wei * 2 WHERE nonce = 4 AND kind = 'SEND'",
        ),
        (),
        ("other-fees",),
    ),
    "other-fees": Plant(
        (SEVEN,),
        (
            "UPDATE attempt SET max_fee = max_fee + 1 WHERE nonce = 7",
            "UPDATE signer.signature SET max_fee_wei = max_fee_wei + 1 WHERE nonce = 7",
        ),
    ),
    "other-hash": Plant(
        (SEVEN,),
        (
            "UPDATE signer.signature g SET hash = sha256('x') FROM attempt a WHERE a.hash = g.hash AND a.nonce = 7",
            "UPDATE attempt SET hash = sha256('x') WHERE nonce = 7",
        ),
    ),
    "hand-over-unrecorded": Plant(
        (SEVEN,),
        ("UPDATE attempt SET sent_at = NULL WHERE nonce = 7", "DELETE FROM broadcast WHERE nonce = 7"),
    ),
    "broadcast-without-bytes": Plant(
        ("broadcast account_id=1 nonce=6 endpoint=node", "attempt account_id=1 nonce=6 seq=0"),
        (
            "INSERT INTO broadcast (account_id, nonce, seq, endpoint, verdict, token) VALUES (1, 6, 0, 'node', 'accepted', 1)",
        ),
    ),
    "broadcast-unrecorded": Plant(
        ("broadcast account_id=1 nonce=7 endpoint=node", SEVEN),
        (
            "UPDATE attempt SET status = 'SIGNED', sent_at = NULL, sent_token = NULL WHERE nonce = 7",
            "DELETE FROM history WHERE subject = '1/7/0' AND to_state = 'SENT'",
        ),
    ),
    "broadcast-before-signing": Plant(
        ("broadcast account_id=1 nonce=8 endpoint=node", "attempt account_id=1 nonce=8 seq=0"),
        (
            "UPDATE account SET fence = 2 WHERE name = 'treasury'",
            NEW_GENERATION,
            "UPDATE lease SET token = 2, holder = NULL WHERE account_id = 1",
            "UPDATE attempt SET signed_token = 2, sent_token = 2 WHERE nonce = 8",
            (
                "INSERT INTO history (kind, subject, account_id, from_state, to_state, token, at) SELECT kind, subject, account_id,"
                " from_state, to_state, 2, clock_timestamp() FROM history WHERE subject = '1/8/0' AND from_state IS NOT NULL ORDER BY history_id"
            ),
            "DELETE FROM history WHERE subject = '1/8/0' AND from_state IS NOT NULL AND token = 1",
        ),
    ),
    "offer-out-of-order": Plant(
        (SEVEN,),
        (
            "UPDATE attempt SET kind = 'BUMP' WHERE nonce = 7",
            "UPDATE signer.signature SET kind = 'BUMP' WHERE nonce = 7",
        ),
    ),
    "offer-after-cancel": Plant(
        ("attempt account_id=1 nonce=4 seq=1",),
        (
            "UPDATE attempt SET kind = 'CANCEL' WHERE (nonce, seq) = (4, 0)",
            "UPDATE signer.signature SET kind = 'CANCEL' WHERE nonce = 4 AND kind = 'SEND'",
        ),
        ("attempt_payload",),
        ("offer-out-of-order", "other-intent", "cancel-acts"),
    ),
    "other-intent": Plant(
        (SEVEN, "nonce_reservation account_id=1 nonce=7"),
        ("UPDATE attempt SET intent_digest = sha256('x') WHERE nonce = 7",),
        (),
        ("other-digest",),
    ),
    "other-digest": Plant(
        (SEVEN, "intent step=0"),
        (
            "UPDATE attempt SET intent_digest = sha256('x') WHERE nonce = 7",
            "UPDATE nonce_reservation SET intent_digest = sha256('x') WHERE nonce = 7",
            f"UPDATE intent SET digest = sha256('x') WHERE {OF.format(7)}",
            "UPDATE signer.binding SET digest = sha256('x') WHERE nonce = 7",
        ),
    ),
    "intent-digest": Plant(("intent step=0",), ("UPDATE intent SET digest = sha256('x') WHERE value = 10",)),
    "no-intent": Plant(
        (SEVEN,), (f"DELETE FROM intent WHERE {OF.format(7)}",), (), ("other-intent", "nonce-of-nobody", "plan-torn")
    ),
    "other-call": Plant((SEVEN, "intent step=0"), (f"UPDATE intent SET value = value + 1 WHERE {OF.format(7)}",)),
    "reads-as-cancel": Plant(
        ("intent step=0",),
        (
            (
                "UPDATE intent SET value = 0, data = '', recipient = a.address, digest = a.cancel_digest FROM account a"
                f" WHERE a.account_id = 1 AND {PLANNED}"
            ),
        ),
    ),
    "cancel-digest": Plant(
        ("account account_id=1",),
        (
            "UPDATE account SET cancel_digest = sha256('x') WHERE name = 'treasury'",
            "UPDATE attempt SET cancel_digest = sha256('x') WHERE cancel_digest IS NOT NULL",
        ),
    ),
    "journal-ahead": Plant(
        ("account account_id=1",),
        (
            "INSERT INTO signer.binding SELECT chain_id, address, 99, 'lost', 0, digest, tx_type, state FROM signer.binding WHERE nonce = 7",
        ),
    ),
    "journal-binds-other-step": Plant(
        ("nonce_reservation account_id=1 nonce=7",), ("UPDATE signer.binding SET step = 4 WHERE nonce = 7",)
    ),
    "journal-binds-other-intent": Plant(
        ("nonce_reservation account_id=1 nonce=7",), ("UPDATE signer.binding SET digest = sha256('x') WHERE nonce = 7",)
    ),
    "unknown-to-journal": Plant((SEVEN,), ("DELETE FROM signer.signature WHERE nonce = 7",)),
    "journal-differs": Plant((SEVEN,), ("UPDATE signer.signature SET gas = gas + 1 WHERE nonce = 7",)),
    "journal-signed-more": Plant(
        ("nonce_reservation account_id=1 nonce=7",),
        (
            (
                "INSERT INTO signer.signature (chain_id, address, nonce, sighash, kind, max_fee_wei, tip_wei, gas, token, raw, hash)"
                " SELECT chain_id, address, nonce, sha256('x'), 'BUMP', max_fee_wei, tip_wei, gas, token, '\\x01', sha256('y')"
                " FROM signer.signature WHERE nonce = 7"
            ),
        ),
    ),
}
