"""G1, G2, G2b and G3, each broken in one way at a time, in the rows that histories.everything makes."""

from tests.audit.planting import Plant

# Its nonces: 0 paid, 1 and 2 paid together, 3 reverted, 4 bumped, 5 cancelled, 6 foreign, 7 and 8 sent.
OF = "execution_id = (SELECT execution_id FROM nonce_reservation WHERE nonce = {})"
PLANTS = {
    "two executions of a slot": Plant(
        "G1",
        "has 2 executions",
        ("UPDATE execution SET slot = (SELECT min(slot) FROM execution) WHERE state = 'PENDING'",),
        ("execution_slot",),
    ),
    "an id that names another slot": Plant(
        "G1", "name of its slot", ("UPDATE execution SET slot = slot + interval '1 h' WHERE state = 'PENDING'",)
    ),
    "a slot with a fraction of a second": Plant(
        "G1", "name of its slot", ("UPDATE execution SET slot = slot + interval '1 ms' WHERE state = 'PENDING'",)
    ),
    "a high-water mark that fell": Plant(
        "G1",
        "above the high-water mark",
        (
            "UPDATE execution SET created_at = slot + interval '1 s' WHERE slot IS NOT NULL",
            "UPDATE strategy SET high_water_mark = '2026-09-01'",
        ),
    ),
    "an execution in a pruned range": Plant(
        "G1", "that was pruned", ("UPDATE strategy SET pruned_through = (SELECT max(slot) FROM execution)",)
    ),
    "a step with two nonces": Plant(
        "G2",
        "owns 2 nonces",
        (
            (
                "UPDATE nonce_reservation n SET (execution_id, step, intent_digest) = (SELECT execution_id, step, intent_digest"
                " FROM nonce_reservation WHERE nonce = 7) WHERE nonce = 6"
            ),
            "UPDATE attempt SET intent_digest = (SELECT intent_digest FROM nonce_reservation WHERE nonce = 7) WHERE nonce = 6",
        ),
        ("nonce_reservation_step",),
    ),
    "a nonce that was re-pointed": Plant(
        "G2",
        "its history says",
        ("UPDATE history SET why = 'payroll/id/x step 0' WHERE subject LIKE '%/7' AND kind = 'nonce'",),
    ),
    "a nonce that opened again": Plant(
        "G2", "ends with", ("DELETE FROM history WHERE subject LIKE '%/0' AND kind = 'nonce' AND to_state = 'CLOSED'",)
    ),
    "a nonce below the first": Plant("G2", "below its first nonce", ("UPDATE account SET first_nonce = 1",)),
    "a nonce for an intent of nobody": Plant(
        "G2", "no intent of this account", (f"UPDATE intent SET account_id = 2 WHERE {OF.format(1)}",)
    ),
    "a once spent twice": Plant(
        "G2b",
        "is spent by 2",
        (
            "UPDATE nonce_reservation SET once = 'x' WHERE nonce IN (7, 8)",
            "UPDATE intent SET once = 'x' WHERE execution_id IN (SELECT execution_id FROM nonce_reservation WHERE nonce IN (7, 8))",
        ),
        ("nonce_reservation_once",),
    ),
    "a once that was forgotten": Plant(
        "G2b", "its intent", ("UPDATE nonce_reservation SET once = NULL WHERE nonce = 0",)
    ),
    "paid by a step without effect": Plant(
        "G2b",
        "took no effect",
        ("UPDATE already_paid SET paid_execution_id = (SELECT execution_id FROM nonce_reservation WHERE nonce = 3)",),
    ),
    "paid by another transaction": Plant(
        "G2b", "another transaction", ("UPDATE already_paid SET paid_hash = sha256('x')",)
    ),
    "another type than reserved": Plant(
        "G3", "another type", ("UPDATE nonce_reservation SET transaction_type = 1 WHERE nonce = 7",)
    ),
    "an attempt of another intent": Plant(
        "G3", "another intent than its nonce", ("UPDATE attempt SET intent_digest = sha256('x') WHERE nonce = 7",)
    ),
    "an intent whose digest is another's": Plant(
        "G3", "is not that of its call", ("UPDATE intent SET digest = sha256('x') WHERE value = 10",)
    ),
    "an intent that changed after it was sent": Plant(
        "G3", "what its intent says", (f"UPDATE intent SET value = value + 1 WHERE {OF.format(7)}",)
    ),
    "a journal that binds a nonce elsewhere": Plant(
        "G3", "journal binds nonce 7", ("UPDATE signer.binding SET step = 4 WHERE nonce = 7",)
    ),
    "a journal ahead of the rows": Plant(
        "G3",
        "journal binds nonce 99",
        (
            "UPDATE signer.binding SET nonce = 99, execution_id = 'lost' WHERE nonce = 7",
            "UPDATE signer.signature SET nonce = 7 WHERE nonce = 7",
        ),
    ),
    "a journal with another intent": Plant(
        "G3", "to another intent", ("UPDATE signer.binding SET digest = sha256('x') WHERE nonce = 7",)
    ),
    "a signature the journal never gave": Plant(
        "G3", "does not know", ("DELETE FROM signer.signature WHERE nonce = 7",)
    ),
}
