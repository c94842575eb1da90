"""G5, G6, G7, G9 and G10, each broken in one way at a time, in the rows that histories.everything makes."""

from tests.audit.planting import Plant
from tests.audit.plants_payments import OF

PLANTS = {
    "a hash that is not of the bytes": Plant(
        "G5",
        "not keccak of its bytes",
        (
            "UPDATE signer.signature g SET hash = sha256('x') FROM attempt a WHERE a.hash = g.hash AND a.nonce = 7",
            "UPDATE attempt SET hash = sha256('x') WHERE nonce = 7",
        ),
    ),
    "a sent attempt without bytes": Plant(
        "G5",
        "no signed bytes",
        ("UPDATE attempt SET raw = NULL, hash = NULL, signed_token = NULL WHERE nonce = 7",),
        ("attempt_bytes",),
    ),
    "one transaction as two attempts": Plant(
        "G5",
        "stored as 2 attempts",
        (
            "UPDATE attempt SET (raw, hash) = (SELECT raw, hash FROM attempt WHERE (nonce, seq) = (4, 1)) WHERE nonce = 4",
        ),
        ("attempt_hash",),
    ),
    "a fee column that is not what was signed": Plant(
        "G5", "other gas or fees", ("UPDATE attempt SET max_fee = max_fee + 1 WHERE nonce = 7",)
    ),
    "a token nobody had": Plant("G6", "no lease generation", ("UPDATE intent SET token = 99 WHERE value = 10",)),
    "a token above the mark": Plant(
        "G6",
        "above the high-water mark",
        (
            "INSERT INTO lease_generation SELECT account_id, 2, gen_random_uuid(), 'x' FROM account WHERE name = 'treasury'",
            "UPDATE intent SET token = 2 WHERE value = 10",
        ),
    ),
    "a stale write after a takeover": Plant(
        "G6",
        "after a newer generation",
        (
            "INSERT INTO lease_generation SELECT account_id, 2, gen_random_uuid(), 'x' FROM account WHERE name = 'treasury'",
            "INSERT INTO history (kind, subject, account_id, to_state, token) VALUES ('account', 'treasury', 1, 'open', 1)",
        ),
    ),
    "a token that fell": Plant(
        "G6",
        "after a newer generation",
        (
            "INSERT INTO lease_generation SELECT account_id, 2, gen_random_uuid(), 'x' FROM account WHERE name = 'treasury'",
            "INSERT INTO history (kind, subject, account_id, to_state, token) VALUES ('account', 'treasury', 1, 'open', 2)",
            (
                "INSERT INTO history (kind, subject, account_id, to_state, token, at)"
                " VALUES ('account', 'treasury', 1, 'open', 1, '2026-01-01')"
            ),
        ),
    ),
    "a history that names no generation": Plant(
        "G6",
        "no lease generation ever had it",
        (
            "INSERT INTO history (kind, subject, account_id, to_state, token) VALUES ('account', 'treasury', 1, 'open', 9)",
        ),
    ),
    "generations out of order": Plant(
        "G6",
        "not after generation",
        (
            "INSERT INTO lease_generation SELECT account_id, 2, gen_random_uuid(), 'x', at FROM lease_generation WHERE account_id = 2",
            "UPDATE lease_generation SET began_after = -1 WHERE (account_id, token) = (2, 2)",
        ),
    ),
    "generations out of order that noted no place in the history": Plant(
        "G6",
        "not after generation",
        (
            "INSERT INTO lease_generation SELECT account_id, 2, gen_random_uuid(), 'x', at FROM lease_generation WHERE account_id = 2",
            "UPDATE lease_generation SET at = '2020-01-01', began_after = NULL WHERE account_id = 2",
        ),
    ),
    "a lease that was rewound": Plant("G6", "below the account's high-water mark", ("UPDATE lease SET token = 0",)),
    "a hole": Plant(
        "G7",
        "has a hole",
        (
            "DELETE FROM nonce_reservation WHERE nonce = 6",
            "DELETE FROM attempt WHERE nonce = 6",
            "DELETE FROM history WHERE subject LIKE '%/6' OR subject LIKE '%/6/0'",
        ),
    ),
    "parked without evidence": Plant(
        "G9",
        "without evidence",
        ("UPDATE execution SET evidence = NULL WHERE state = 'PARKED'",),
        ("execution_parked_evidence",),
    ),
    "parked though its nonce is open": Plant(
        "G9",
        "though 1 of its 1 nonces are open",
        (
            "UPDATE nonce_reservation SET state = 'OPEN' WHERE nonce = 6",
            "DELETE FROM history WHERE subject LIKE '%/6' AND kind = 'nonce' AND to_state = 'CLOSED'",
            "UPDATE account SET attention = 'x'",
        ),
        ("nonce_reservation_closing",),
    ),
    "halted without a reason": Plant(
        "G9", "nothing says why", ("UPDATE account SET state = 'halted'",), ("account_reason",)
    ),
    "final without a receipt": Plant("G10", "no receipt", ("DELETE FROM receipt WHERE nonce = 0",)),
    "final with an orphaned receipt": Plant(
        "G10", "no receipt", ("UPDATE receipt SET orphaned_at = now() WHERE nonce = 0",)
    ),
    "an effect the receipt denies": Plant(
        "G10", "its effect is not", ("UPDATE nonce_reservation SET effect = true WHERE nonce = 3",)
    ),
    "closed without a witness": Plant(
        "G10",
        "no final block",
        ("UPDATE nonce_reservation SET witness_hash = NULL WHERE nonce = 0",),
        ("nonce_reservation_closing",),
    ),
    "a witness older than the receipt": Plant(
        "G10", "older than its receipt", ("UPDATE nonce_reservation SET witness_number = 5 WHERE nonce = 0",)
    ),
    "foreign though ours was mined": Plant(
        "G10",
        "though a transaction of ours was mined",
        ("UPDATE nonce_reservation SET closed_as = 'foreign', closed_seq = NULL, effect = NULL WHERE nonce = 1",),
    ),
    "success after a revert": Plant(
        "G10",
        "its nonces make it REVERTED",
        (
            f"UPDATE execution SET state = 'SUCCEEDED' WHERE {OF.format(3)}",
            "UPDATE history SET to_state = 'SUCCEEDED' WHERE to_state = 'REVERTED'",
        ),
    ),
    "a wrong count of steps": Plant(
        "G10", "1 steps took effect", (f"UPDATE execution SET steps_effective = 0 WHERE {OF.format(0)}",)
    ),
    "an end with an open nonce": Plant(
        "G10", "nonces are open", (f"UPDATE execution SET state = 'CANCELLED', ended_at = now() WHERE {OF.format(7)}",)
    ),
    "success that never owned a nonce": Plant(
        "G10",
        "never owned a nonce",
        ("UPDATE execution SET state = 'SUCCEEDED', steps_effective = 1, ended_at = now() WHERE state = 'PLANNED'",),
    ),
    "a state its history does not know": Plant(
        "G10", "arrows of P1", ("DELETE FROM history WHERE kind = 'execution' AND to_state = 'RUNNING'",)
    ),
    "an attempt that jumped": Plant(
        "G10", "arrows of P1", ("DELETE FROM history WHERE kind = 'attempt' AND to_state = 'SIGNED'",)
    ),
    "final at an open nonce": Plant(
        "G10", "did not close its nonce", ("UPDATE attempt SET status = 'FINAL' WHERE nonce = 7",)
    ),
}
