"""G6, G8, G9 and G10 in the rows, each kind of violation planted once."""

from tests.audit.planting import Plant
from tests.audit.plants_payments import NEW_GENERATION, OF, PLANNED

NONCE_0 = "nonce_reservation account_id=1 nonce=0"
ATTEMPT_0 = "attempt account_id=1 nonce=0 seq=0"
PARKED_FOREIGN = OF.format(6)
_HISTORY = "INSERT INTO history (kind, subject, account_id, from_state, to_state, token)"
PLANTS = {
    "unknown-generation": Plant(("account account_id=1",), (f"UPDATE intent SET token = 99 WHERE {PLANNED}",)),
    "generation-above-mark": Plant(
        ("account account_id=1", "lease_generation account_id=1 token=2"),
        (NEW_GENERATION, f"UPDATE intent SET token = 2 WHERE {PLANNED}"),
    ),
    "lease-rewound": Plant(
        ("lease account_id=1", "account account_id=1"),
        ("UPDATE lease SET token = 0, holder = NULL WHERE account_id = 1",),
        (),
        ("journal-fence-ahead",),
    ),
    "lease-of-nobody": Plant(
        ("lease account_id=1", "lease_generation account_id=1 token=1"),
        ("UPDATE lease SET lease_id = gen_random_uuid() WHERE account_id = 1",),
    ),
    "journal-fence-ahead": Plant(("lease account_id=1",), ("UPDATE signer.account SET fence = 7 WHERE fence = 1",)),
    "signed-for-nobody": Plant(("account account_id=1",), ("UPDATE signer.signature SET token = 7 WHERE nonce = 7",)),
    "execution-unheld": Plant(
        ("execution execution_id=payroll/2026-09-02T10:00Z",),
        (
            "UPDATE history SET token = NULL WHERE kind = 'execution' AND to_state = 'RUNNING' AND subject = 'payroll/2026-09-02T10:00Z'",
        ),
    ),
    "nonce-other-holder": Plant(
        ("nonce_reservation account_id=2 nonce=40",), ("UPDATE nonce_reservation SET token = 2 WHERE nonce = 40",)
    ),
    "attempt-other-holder": Plant(
        ("attempt account_id=2 nonce=40 seq=0",), ("UPDATE attempt SET sent_token = 2 WHERE nonce = 40",)
    ),
    "history-of-nobody": Plant(("history",), (f"{_HISTORY} VALUES ('strategy', 'payroll', 1, 'active', 'active', 9)",)),
    "stale-write": Plant(("history",), (f"{_HISTORY} VALUES ('strategy', 'saving', 2, 'active', 'active', 1)",)),
    "plan-torn": Plant(
        ("execution execution_id=payroll/2026-09-13T10:00Z",),
        (f"UPDATE execution SET steps = 2 WHERE {PLANNED}",),
    ),
    "nonce-before-running": Plant(
        ("execution",),
        (
            f"UPDATE execution SET state = 'PLANNED' WHERE {OF.format(7)}",
            "DELETE FROM history WHERE to_state = 'RUNNING' AND subject = (SELECT execution_id FROM nonce_reservation WHERE nonce = 7)",
        ),
    ),
    "running-without-nonce": Plant(
        ("execution",),
        (
            f"UPDATE execution SET state = 'RUNNING' WHERE {PLANNED}",
            f"{_HISTORY} SELECT 'execution', execution_id, account_id, 'PLANNED', 'RUNNING', 1 FROM intent WHERE value = 10",
        ),
    ),
    "steps-torn": Plant(
        ("execution",),
        (
            f"UPDATE execution SET steps = 2 WHERE {OF.format(8)}",
            (
                "INSERT INTO intent (execution_id, step, account_id, recipient, value, data, access_list, digest, token)"
                " SELECT execution_id, 1, account_id, recipient, value, data, access_list, digest, token FROM intent WHERE value = 9"
            ),
        ),
    ),
    "end-unrecorded": Plant(
        ("execution execution_id=payroll/id/a",),
        (
            "UPDATE execution SET state = 'RUNNING', ended_at = NULL WHERE execution_id = 'payroll/id/a'",
            "DELETE FROM history WHERE subject = 'payroll/id/a' AND to_state = 'SUCCEEDED'",
        ),
    ),
    "execution-walk": Plant(
        ("execution execution_id=payroll/2026-09-02T10:00Z",),
        ("DELETE FROM history WHERE subject = 'payroll/2026-09-02T10:00Z' AND to_state = 'RUNNING'",),
    ),
    "nonce-walk": Plant((NONCE_0,), ("DELETE FROM history WHERE subject = '1/0' AND to_state = 'CLOSED'",)),
    "attempt-walk": Plant((ATTEMPT_0,), ("DELETE FROM history WHERE subject = '1/0/0' AND to_state = 'SIGNED'",)),
    "stopped-without-reason": Plant(
        ("account account_id=1",),
        (
            "UPDATE account SET state = 'halted' WHERE name = 'treasury'",
            f"{_HISTORY} VALUES ('account', 'treasury', 1, 'open', 'halted', NULL)",
        ),
        ("account_reason",),
    ),
    "account-walk": Plant(
        ("account account_id=1",), ("UPDATE account SET state = 'draining', reason = 'x' WHERE name = 'treasury'",)
    ),
    "opened-unasked": Plant(("account account_id=2",), ("UPDATE request SET granted = false WHERE kind = 'reopen'",)),
    "resumed-unasked": Plant(("strategy name=saving",), ("DELETE FROM request WHERE kind = 'resume'",)),
    "request-half-told": Plant(("request",), ("UPDATE request SET answer = '' WHERE kind = 'resume'",)),
    "parked-without-evidence": Plant(
        ("execution",),
        (f"UPDATE execution SET evidence = NULL WHERE {PARKED_FOREIGN}",),
        ("execution_parked_evidence",),
    ),
    "parked-early": Plant(
        ("execution",),
        (
            "UPDATE nonce_reservation SET state = 'OPEN', closed_as = NULL WHERE nonce = 6",
            "DELETE FROM history WHERE subject = '1/6' AND to_state = 'CLOSED'",
            "UPDATE account SET attention = 'x'",
        ),
        ("nonce_reservation_closing",),
    ),
    "parked-for-nothing": Plant(
        ("execution execution_id=payroll/2026-09-14T10:00Z",),
        (
            "UPDATE execution SET state = 'PARKED', reason = 'x', evidence = '{}' WHERE state = 'PENDING'",
            f"{_HISTORY} VALUES ('execution', 'payroll/2026-09-14T10:00Z', 1, 'PENDING', 'PARKED', 1)",
        ),
    ),
    "parked-left": Plant(
        ("execution execution_id=payroll/2026-09-14T10:00Z",),
        (
            f"{_HISTORY} VALUES ('execution', 'payroll/2026-09-14T10:00Z', 1, 'PENDING', 'PARKED', 1)",
            f"{_HISTORY} VALUES ('execution', 'payroll/2026-09-14T10:00Z', 1, 'PARKED', 'PENDING', 1)",
        ),
    ),
    "ended-with-open-nonce": Plant(
        ("execution",),
        (
            f"UPDATE execution SET state = 'CANCELLED', ended_at = now() WHERE {OF.format(7)}",
            f"{_HISTORY} SELECT 'execution', execution_id, 1, 'RUNNING', 'CANCELLED', 1 FROM nonce_reservation WHERE nonce = 7",
        ),
    ),
    "ended-without-nonce": Plant(
        ("execution",),
        (
            f"UPDATE execution SET state = 'REVERTED', steps_effective = 0, ended_at = now() WHERE {PLANNED}",
            f"{_HISTORY} SELECT 'execution', execution_id, 1, 'PLANNED', 'RUNNING', 1 FROM intent WHERE value = 10",
            f"{_HISTORY} SELECT 'execution', execution_id, 1, 'RUNNING', 'REVERTED', 1 FROM intent WHERE value = 10",
        ),
    ),
    "other-end": Plant(
        ("execution",),
        (
            f"UPDATE execution SET state = 'SUCCEEDED' WHERE {OF.format(3)}",
            "UPDATE history SET to_state = 'SUCCEEDED' WHERE to_state = 'REVERTED'",
        ),
    ),
    "effects-miscounted": Plant(("execution",), (f"UPDATE execution SET steps_effective = 0 WHERE {OF.format(0)}",)),
    "step-out-of-turn": Plant(
        ("nonce_reservation account_id=1 nonce=10", "intent step=0"),
        (
            f"{_HISTORY} SELECT kind, subject, account_id, from_state, to_state, token FROM history WHERE subject = '1/9' AND to_state = 'CLOSED'",
            "DELETE FROM history WHERE history_id = (SELECT min(history_id) FROM history WHERE subject = '1/9' AND to_state = 'CLOSED')",
        ),
    ),
    "closed-without-witness": Plant(
        (NONCE_0,),
        ("UPDATE nonce_reservation SET witness_hash = NULL WHERE nonce = 0",),
        ("nonce_reservation_closing",),
    ),
    "foreign-though-ours": Plant(
        ("nonce_reservation account_id=1 nonce=10",),
        (
            "UPDATE nonce_reservation SET closed_as = 'foreign', closed_seq = NULL, effect = NULL WHERE nonce = 10",
            f"UPDATE execution SET state = 'PARKED', evidence = '{{}}', reason = 'x', ended_at = NULL WHERE {OF.format(10)}",
            (
                "UPDATE history SET to_state = 'PARKED' WHERE to_state = 'SUCCEEDED'"
                " AND subject = (SELECT execution_id FROM nonce_reservation WHERE nonce = 10)"
            ),
        ),
        (),
        ("final-at-open-nonce",),
    ),
    "closed-before-final": Plant(
        (NONCE_0, ATTEMPT_0),
        (
            "UPDATE attempt SET status = 'MINED' WHERE nonce = 0",
            "DELETE FROM history WHERE subject = '1/0/0' AND to_state = 'FINAL'",
        ),
    ),
    "final-without-receipt": Plant((NONCE_0, ATTEMPT_0), ("DELETE FROM receipt WHERE nonce = 0",), (), ("other-end",)),
    "effect-denied": Plant(
        ("nonce_reservation account_id=1 nonce=3",), ("UPDATE nonce_reservation SET effect = true WHERE nonce = 3",)
    ),
    "witness-too-old": Plant(
        (NONCE_0, ATTEMPT_0), ("UPDATE nonce_reservation SET witness_number = 5 WHERE nonce = 0",)
    ),
    "final-at-open-nonce": Plant(
        ("attempt account_id=1 nonce=7 seq=0",),
        (
            "UPDATE attempt SET status = 'FINAL' WHERE nonce = 7",
            f"{_HISTORY} VALUES ('attempt', '1/7/0', 1, 'SENT', 'MINED', 1), ('attempt', '1/7/0', 1, 'MINED', 'FINAL', 1)",
        ),
    ),
    "mined-without-receipt": Plant(
        ("attempt account_id=1 nonce=7 seq=0",),
        (
            "UPDATE attempt SET status = 'MINED' WHERE nonce = 7",
            f"{_HISTORY} VALUES ('attempt', '1/7/0', 1, 'SENT', 'MINED', 1)",
        ),
    ),
    "receipt-of-unmined": Plant(
        ("attempt account_id=1 nonce=7 seq=0",),
        (
            (
                "INSERT INTO receipt (account_id, nonce, seq, block_number, block_hash, status, gas_used, effective_gas_price, token)"
                " SELECT account_id, 7, 0, block_number, block_hash, status, gas_used, effective_gas_price, token FROM receipt WHERE nonce = 0"
            ),
        ),
    ),
    "receipts-overlap": Plant(
        (ATTEMPT_0,),
        (
            (
                "INSERT INTO receipt (account_id, nonce, seq, block_number, block_hash, status, gas_used, effective_gas_price, token)"
                " SELECT account_id, nonce, seq, block_number, sha256('x'), status, gas_used, effective_gas_price, token FROM receipt WHERE nonce = 0"
            ),
        ),
        ("receipt_believed",),
    ),
    "mined-twice": Plant(
        ("attempt account_id=1 nonce=4 seq=0", "attempt account_id=1 nonce=4 seq=1"),
        (
            "UPDATE attempt SET status = 'MINED' WHERE (nonce, seq) = (4, 0)",
            "UPDATE history SET from_state = 'SENT', to_state = 'MINED' WHERE subject = '1/4/0' AND to_state = 'SUPERSEDED'",
            (
                "INSERT INTO receipt (account_id, nonce, seq, block_number, block_hash, status, gas_used, effective_gas_price, token)"
                " SELECT account_id, nonce, 0, block_number, block_hash, status, gas_used, effective_gas_price, token FROM receipt WHERE nonce = 4"
            ),
        ),
        ("attempt_one_mined",),
    ),
}
