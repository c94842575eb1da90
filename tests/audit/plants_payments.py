"""G1, G2, G2b and G7, each kind of violation planted once in the history of the conftest."""

from tests.audit.planting import Plant

# Nonces of treasury (account 1): 0 paid, 1 and 2 paid together, 3 reverted, 4 bumped, 5 cancelled, 6 foreign, 7 and 8 sent,
# 9 and 10 in order, 11 refused with its cancel out. Of savings (account 2): 40 paid, by generation 1; 2 holds now.
OF = "execution_id = (SELECT execution_id FROM nonce_reservation WHERE nonce = {})"
PLANNED = "execution_id = (SELECT execution_id FROM intent WHERE value = 10)"
REISSUED = "reissue_no = 1"
NEW_GENERATION = (
    "INSERT INTO lease_generation SELECT account_id, 2, gen_random_uuid(), 'x' FROM account WHERE name = 'treasury'"
)
ACKNOWLEDGED = (
    "DROP TABLE IF EXISTS acknowledged_nonce CASCADE",
    "CREATE TABLE acknowledged_nonce (account_id integer, nonce bigint, execution_id text, step integer, token bigint)",
)
PLANTS = {
    "slot-twice": Plant(
        ("execution execution_id=payroll/2026-09-02T10:00Z", "execution execution_id=payroll/2026-09-14T10:00Z"),
        ("UPDATE execution SET slot = (SELECT min(slot) FROM execution) WHERE state = 'PENDING'",),
        ("execution_slot",),
        ("misnamed",),
    ),
    "key-twice": Plant(
        ("execution execution_id=payroll/id/a",),
        ("UPDATE execution SET slot = NULL, trigger_key = 'a' WHERE state = 'PENDING'",),
        ("execution_trigger_key",),
        ("misnamed",),
    ),
    "pruned-above-mark": Plant(
        ("strategy name=empty",),
        (
            (
                "INSERT INTO strategy (name, account_id, plan, timezone, misfire, overlap, params, revision, high_water_mark, pruned_through)"
                " VALUES ('empty', 1, 'm:plan', 'UTC', 'latest', 'skip', '{}', 'r1', '2026-08-01', '2026-09-01')"
            ),
        ),
    ),
    "misnamed": Plant(
        ("execution execution_id=payroll/2026-09-14T10:00Z",),
        ("UPDATE execution SET slot = slot + interval '1 ms' WHERE state = 'PENDING'",),
    ),
    "above-mark": Plant(
        ("execution execution_id=payroll/2026-09-02T10:00Z", "strategy name=payroll"),
        (
            "UPDATE execution SET created_at = slot + interval '1 s' WHERE slot IS NOT NULL",
            "UPDATE strategy SET high_water_mark = '2026-09-01' WHERE name = 'payroll'",
        ),
    ),
    "below-pruned": Plant(
        ("execution execution_id=payroll/2026-09-14T10:00Z", "strategy name=payroll"),
        ("UPDATE strategy SET pruned_through = (SELECT max(slot) FROM execution) WHERE name = 'payroll'",),
    ),
    "reissue-of-nothing": Plant(
        ("execution execution_id=payroll/2026-09-14T10:00Z/reissue/1",),
        (
            "UPDATE execution SET reissue_no = 1, execution_id = execution_id || '/reissue/1' WHERE state = 'PENDING'",
            "UPDATE history SET subject = subject || '/reissue/1' WHERE subject = 'payroll/2026-09-14T10:00Z'",
        ),
    ),
    "reissued-effect": Plant(
        ("intent step=0", "nonce_reservation step=0"),
        (
            "UPDATE nonce_reservation SET effect = true, closed_seq = 0 WHERE nonce = 5",
            "UPDATE attempt SET status = CASE seq WHEN 0 THEN 'FINAL' ELSE 'SUPERSEDED' END WHERE nonce = 5",
            "UPDATE receipt SET seq = 0 WHERE nonce = 5",
            "UPDATE history SET subject = CASE subject WHEN '1/5/0' THEN '1/5/1' ELSE '1/5/0' END, why = why || '.' WHERE subject IN ('1/5/0', '1/5/1')",
            f"UPDATE execution SET state = 'SUCCEEDED', steps_effective = 1 WHERE {OF.format(5)}",
            "UPDATE history SET to_state = 'SUCCEEDED' WHERE to_state = 'CANCELLED' AND subject = (SELECT execution_id FROM nonce_reservation WHERE nonce = 5)",
        ),
        ("attempt_one_mined",),
    ),
    "reissued-live": Plant(
        ("intent step=0", "execution execution_id=payroll/2026-09-06T10:00Z"),
        (
            f"UPDATE execution SET state = 'RUNNING', ended_at = NULL WHERE {OF.format(5)}",
            "DELETE FROM history WHERE to_state = 'CANCELLED' AND subject = (SELECT execution_id FROM nonce_reservation WHERE nonce = 5)",
        ),
        (),
        ("end-unrecorded",),
    ),
    "reissued-otherwise": Plant(
        ("intent step=0",), ("UPDATE intent SET once = 'x' WHERE execution_id LIKE '%/reissue/1'",)
    ),
    "step-twice": Plant(
        ("nonce_reservation account_id=1 nonce=6", "nonce_reservation account_id=1 nonce=7"),
        (
            (
                "UPDATE nonce_reservation n SET (execution_id, step, intent_digest) = (SELECT execution_id, step, intent_digest"
                " FROM nonce_reservation WHERE nonce = 7) WHERE nonce = 6"
            ),
            "UPDATE attempt SET intent_digest = (SELECT intent_digest FROM nonce_reservation WHERE nonce = 7) WHERE nonce = 6",
        ),
        ("nonce_reservation_step",),
        ("nonce-re-pointed", "parked-for-nothing"),
    ),
    "nonce-re-pointed": Plant(
        ("nonce_reservation account_id=1 nonce=7",),
        ("UPDATE history SET why = 'payroll/id/x step 0' WHERE subject = '1/7' AND from_state IS NULL",),
    ),
    "nonce-of-nobody": Plant(
        ("nonce_reservation account_id=1 nonce=1",), (f"UPDATE intent SET account_id = 2 WHERE {OF.format(1)}",)
    ),
    "once-twice": Plant(
        ("nonce_reservation step=0",),
        (
            "UPDATE nonce_reservation SET once = 'x' WHERE nonce IN (7, 8)",
            "UPDATE intent SET once = 'x' WHERE execution_id IN (SELECT execution_id FROM nonce_reservation WHERE nonce IN (7, 8))",
        ),
        ("nonce_reservation_once",),
    ),
    "once-forgotten": Plant(
        ("nonce_reservation account_id=1 nonce=7", "intent step=0"),
        (f"UPDATE intent SET once = 'x' WHERE {OF.format(7)}",),
    ),
    "paid-without-effect": Plant(
        ("already_paid step=0", "nonce_reservation step=0"),
        ("UPDATE already_paid SET paid_execution_id = (SELECT execution_id FROM nonce_reservation WHERE nonce = 3)",),
    ),
    "paid-under-another-name": Plant(("already_paid step=0",), ("UPDATE already_paid SET once = 'x'",)),
    "paid-by-another-transaction": Plant(
        ("already_paid step=0",), ("UPDATE already_paid SET paid_hash = sha256('x')",)
    ),
    "paid-and-reserved": Plant(
        ("already_paid step=0", "nonce_reservation step=0"),
        (
            "UPDATE already_paid SET execution_id = (SELECT execution_id FROM nonce_reservation WHERE nonce = 7)",
            f"UPDATE intent SET once = 'invoice/8812' WHERE {OF.format(7)}",
            "UPDATE nonce_reservation SET once = 'invoice/8812' WHERE nonce = 7",
        ),
        ("nonce_reservation_once",),
        ("once-twice", "ended-without-nonce"),
    ),
    "hole": Plant(
        ("nonce_reservation account_id=1 nonce=9",),
        (
            "DELETE FROM nonce_reservation WHERE nonce = 8",
            "DELETE FROM attempt WHERE nonce = 8",
            "DELETE FROM broadcast WHERE nonce = 8",
            "DELETE FROM history WHERE subject IN ('1/8', '1/8/0')",
            "DELETE FROM signer.signature WHERE nonce = 8",
            "DELETE FROM signer.binding WHERE nonce = 8",
        ),
        (),
        ("running-without-nonce",),
    ),
    "below-first": Plant(
        ("nonce_reservation account_id=1 nonce=0", "account account_id=1"),
        ("UPDATE account SET first_nonce = 1 WHERE name = 'treasury'",),
    ),
    "nonce-twice": Plant(
        ("nonce_reservation account_id=1 nonce=7",),
        (
            *ACKNOWLEDGED,
            (
                "INSERT INTO acknowledged_nonce SELECT account_id, nonce, execution_id, step, 1"
                " FROM nonce_reservation WHERE nonce = 7"
            ),
        ),
    ),
    "nonce-without-attempt": Plant(
        ("nonce_reservation account_id=1 nonce=8",),
        (
            "DELETE FROM attempt WHERE nonce = 8",
            "DELETE FROM broadcast WHERE nonce = 8",
            "DELETE FROM signer.signature WHERE nonce = 8",
        ),
    ),
    "refused-without-cancel": Plant(
        ("nonce_reservation account_id=1 nonce=11",),
        (
            "DELETE FROM attempt WHERE nonce = 11 AND seq = 1",
            "DELETE FROM broadcast WHERE nonce = 11",
            "DELETE FROM signer.signature WHERE nonce = 11",
        ),
    ),
    "dead-nonce": Plant(
        ("nonce_reservation account_id=1 nonce=8",),
        (
            "UPDATE attempt SET status = 'SUPERSEDED' WHERE nonce = 8",
            "INSERT INTO history (kind, subject, account_id, from_state, to_state, token) VALUES ('attempt', '1/8/0', 1, 'SENT', 'SUPERSEDED', 1)",
        ),
    ),
}
