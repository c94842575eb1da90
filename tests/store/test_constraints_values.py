"""What a column may hold, from a bare connection: uint256 exact, and every CHECK by its name."""

import pytest

from tests.store import lifecycle
from tests.store.refusals import CHECK, FOREIGN_KEY, NOT_NULL, UNIQUE, refused
from tests.store.rows import Call, Lane, Rows

LARGEST = 2**256 - 1


@pytest.mark.parametrize("value", [0, 1, 10**77 + 1, LARGEST - 1, LARGEST])
def test_uint256_is_exact_both_ways(rows: Rows, lane: Lane, value: int) -> None:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, [Call(value=value)])
    assert rows.value("SELECT value::text FROM intent WHERE execution_id = %s", execution_id) == str(value)
    assert int(rows.value("SELECT value FROM intent WHERE execution_id = %s", execution_id)) == value
    assert rows.value("SELECT value = %s FROM intent WHERE execution_id = %s", value, execution_id) is True


@pytest.mark.parametrize(
    ("literal", "constraint"),
    [
        (str(LARGEST + 1), "uint256_range"),
        ("-1", "uint256_range"),
        ("1.5", "uint256_whole"),
        ("1.0", "uint256_whole"),
        ("'NaN'", "uint256_range"),
        ("'Infinity'", "uint256_range"),
    ],
)
def test_uint256_refuses_what_is_not_one(rows: Rows, lane: Lane, literal: str, constraint: str) -> None:
    with refused(constraint):
        rows.run(f"SELECT ({literal})::uint256")
    execution_id = rows.pending(lane)
    with refused(constraint), rows.held(lane):
        rows.run(
            "INSERT INTO intent (execution_id, step, account_id, recipient, value, data, access_list, digest, token)"
            f" VALUES (%s, 0, %s, %s, {literal}, '', '[]', sha256(''), 1)",
            execution_id,
            lane.account_id,
            lane.address,
        )


@pytest.mark.parametrize(
    ("literal", "constraint"), [("''::hash32", "hash32_length"), ("'abc'::address20", "address20_length")]
)
def test_hashes_and_addresses_have_their_length(rows: Rows, literal: str, constraint: str) -> None:
    with refused(constraint):
        rows.run(f"SELECT {literal}")


EXECUTION = (
    "INSERT INTO execution (execution_id, strategy, slot, trigger_key, reissue_no, account_id, revision, payload_digest, state,"
    " due_at, {more}) SELECT 'x', 'payroll', {slot}, {key}, {reissue}, account_id, 'r1', sha256(''), 'PENDING', now(), {values}"
    " FROM account"
)


def _execution(more: str, values: str, slot: str = "NULL", key: str = "'k'", reissue: str = "0") -> str:
    return EXECUTION.format(more=more, values=values, slot=slot, key=key, reissue=reissue)


INSERTS = {
    "an execution with a slot and a key": ("execution_origin", CHECK, _execution("reason", "NULL", slot="now()")),
    "an execution with neither": ("execution_origin", CHECK, _execution("reason", "NULL", key="NULL")),
    "an execution with a negative reissue": ("execution_reissue_no", CHECK, _execution("reason", "NULL", reissue="-1")),
    "an execution with an unknown order": ("execution_plan_order", CHECK, _execution("plan_order", "'random'")),
    "an execution with steps below zero": ("execution_steps", CHECK, _execution("steps", "-1")),
    "a PENDING execution that ended": ("execution_ended", CHECK, _execution("ended_at", "now()")),
    "a second installation": (
        "installation_pkey",
        UNIQUE,
        "INSERT INTO installation (system_identifier, epoch_min, epoch_max) VALUES ('1', 1, 1)",
    ),
    "an installation that is not the one": (
        "installation_singleton",
        CHECK,
        "INSERT INTO installation (singleton, system_identifier, epoch_min, epoch_max) VALUES (false, '1', 1, 1)",
    ),
    "a generation without a token": (
        "lease_generation_token",
        CHECK,
        "INSERT INTO lease_generation SELECT account_id, 0, gen_random_uuid(), 'a' FROM account",
    ),
    "a second generation with this token": (
        "lease_generation_pkey",
        UNIQUE,
        "INSERT INTO lease_generation SELECT account_id, 1, gen_random_uuid(), 'a' FROM account",
    ),
    "a request of no known kind": (
        "request_kind",
        CHECK,
        "INSERT INTO request (kind, why, who) VALUES ('dance', 'because', 'me')",
    ),
    "a request without a why": (
        "request_why",
        CHECK,
        "INSERT INTO request (kind, why, who) VALUES ('resume', '', 'me')",
    ),
    "a request answered by halves": (
        "request_answered",
        CHECK,
        "INSERT INTO request (kind, why, who, answered_at) VALUES ('resume', 'because', 'me', now())",
    ),
}


@pytest.mark.parametrize("case", INSERTS)
def test_a_bad_row_is_refused_by_name(rows: Rows, lane: Lane, case: str) -> None:
    constraint, sqlstate, statement = INSERTS[case]
    with refused(constraint, sqlstate):
        rows.run(statement)


UPDATES = {
    "account_state": "UPDATE account SET state = 'asleep', reason = 'x'",
    "account_reason": "UPDATE account SET state = 'halted'",
    "account_max_in_flight": "UPDATE account SET max_in_flight = 0",
    "account_name": "UPDATE account SET name = 'savings' WHERE name = 'treasury'",
    "strategy_misfire": "UPDATE strategy SET misfire = 'maybe'",
    "strategy_overlap": "UPDATE strategy SET overlap = 'maybe'",
    "strategy_one_schedule": "UPDATE strategy SET every_seconds = 5",
    "installation_epochs": "UPDATE installation SET epoch_min = 9",
}


@pytest.mark.parametrize("constraint", UPDATES)
def test_a_bad_change_is_refused_by_name(rows: Rows, lane: Lane, constraint: str) -> None:
    rows.account("savings", address=b"\x01" * 20)
    with refused(constraint, UNIQUE if constraint == "account_name" else CHECK):
        rows.run(UPDATES[constraint])


def test_two_accounts_never_share_a_chain_and_address(rows: Rows, lane: Lane) -> None:
    rows.account("elsewhere", chain_id=1)
    with refused("account_identity", UNIQUE):
        rows.account("again")


def test_one_slot_has_one_execution_and_one_key_too(rows: Rows, lane: Lane) -> None:
    """G1: whoever computes it, however often."""
    rows.pending(lane)
    again = (
        "INSERT INTO execution (execution_id, strategy, slot, trigger_key, account_id, revision, payload_digest, state, due_at)"
        " SELECT 'other', strategy, slot, trigger_key, account_id, revision, payload_digest, state, due_at FROM execution"
    )
    with refused("execution_slot", UNIQUE):
        rows.run(again)
    rows.pending(lane, key="invoice")
    with refused("execution_trigger_key", UNIQUE):
        rows.run(again + " WHERE slot IS NULL")
    with refused("execution_pkey", UNIQUE):
        rows.pending(lane, key="invoice")


INTENTS = {
    "an intent of another account": ("intent_execution", FOREIGN_KEY, {"account_id": "2", "token": "1"}),
    "a step below zero": ("intent_step", CHECK, {"step": "-1"}),
    "an empty once": ("intent_once", CHECK, {"once": "''"}),
    "no recipient and no creation": ("intent_recipient", CHECK, {"recipient": "NULL"}),
    "a recipient and a creation": ("intent_recipient", CHECK, {"creates": "true"}),
    "no digest": (None, NOT_NULL, {"digest": "NULL"}),
    "the digest of a cancel": (
        "intent_reads_as_cancel",
        CHECK,
        {"digest": "(SELECT cancel_digest FROM account WHERE account_id = 1)"},
    ),
}


@pytest.mark.parametrize("case", INTENTS)
def test_a_bad_intent_is_refused_by_name(rows: Rows, lane: Lane, case: str) -> None:
    constraint, sqlstate, changed = INTENTS[case]
    other = rows.account("savings", address=b"\x01" * 20)
    execution_id = rows.pending(lane)
    columns = {"execution_id": f"'{execution_id}'", "step": "0", "account_id": "1", "once": "NULL", "value": "1"}
    columns |= {"recipient": "sha256('')::bytea", "creates": "false", "data": "''", "access_list": "'[]'", "token": "1"}
    columns |= {"recipient": "substr(sha256(''), 1, 20)", "digest": "sha256('')"} | changed
    with refused(constraint, sqlstate), rows.held(lane):
        rows.hold(other)
        rows.run(f"INSERT INTO intent ({', '.join(columns)}) VALUES ({', '.join(columns.values())})")


def test_a_plan_is_recorded_once(rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id)
    with refused("intent_pkey", UNIQUE), rows.held(lane):
        rows.intents(lane, execution_id, [Call()])
    with refused("intent_once_planned"), rows.held(lane):
        rows.run(
            "INSERT INTO intent (execution_id, step, account_id, recipient, value, data, access_list, digest, token)"
            " SELECT execution_id, 1, account_id, recipient, value, data, access_list, digest, token FROM intent"
        )


ENDINGS = {
    "execution_steps_effective": ("RUNNING", "SUCCEEDED", "state = 'SUCCEEDED', steps_effective = 0, ended_at = now()"),
    "execution_success": ("RUNNING", "REVERTED", "state = 'SUCCEEDED', steps_effective = 0, ended_at = now()"),
    "execution_without_effect": ("RUNNING", "SUCCEEDED", "state = 'REVERTED', steps_effective = 2, ended_at = now()"),
    "execution_partial": ("RUNNING", "SUCCEEDED", "state = 'PARTIAL', steps_effective = 2, ended_at = now()"),
    "execution_reverted": ("RUNNING", "REVERTED", "state = 'CANCELLED', steps_effective = 0, ended_at = now()"),
    "execution_parked_foreign": ("RUNNING", "SUCCEEDED", "state = 'PARKED', evidence = '{}', reason = 'x'"),
    "execution_open_nonce": ("RUNNING", None, "state = 'SUCCEEDED', steps_effective = 0, ended_at = now()"),
    "execution_parked_evidence": ("RUNNING", "PARKED", "state = 'PARKED', reason = 'x'"),
    "execution_told": ("PENDING", None, "state = 'FAILED', ended_at = now(), reason = NULL"),
    "execution_planned": ("PENDING", None, "state = 'PLANNED'"),
    "execution_ended": ("PENDING", None, "state = 'CANCELLED'"),
    "execution_identity": ("PENDING", None, "revision = 'r2'"),
}


@pytest.mark.parametrize("constraint", ENDINGS)
def test_an_execution_cannot_end_against_its_evidence(rows: Rows, lane: Lane, constraint: str) -> None:
    """P2, P3, G9, G10: a store that counts wrongly or stops too early is refused."""
    before, closed_for, assignments = ENDINGS[constraint]
    execution_id = lifecycle.arrive(rows, lane, before, then=closed_for)
    with refused(constraint), rows.held(lane):
        rows.run(f"UPDATE execution SET {assignments} WHERE execution_id = %s", execution_id)


def test_a_plan_with_a_foreign_nonce_is_parked_and_nothing_else(rows: Rows, lane: Lane) -> None:
    execution_id = lifecycle.arrive(rows, lane, "RUNNING", then="PARKED")
    with refused("execution_parked_foreign"):
        lifecycle.change(rows, lane, execution_id, "CANCELLED")


def test_what_a_planned_execution_is_never_changes(rows: Rows, lane: Lane) -> None:
    execution_id = lifecycle.arrive(rows, lane, "PLANNED")
    for assignment in ("steps = 2", "plan_order = 'final'", "slot = slot + '1 h'", "input = '1'", "created_at = now()"):
        with refused("execution_identity"), rows.held(lane):
            rows.run(f"UPDATE execution SET {assignment} WHERE execution_id = %s", execution_id)


def test_a_pruned_slot_is_refused_whoever_inserts(rows: Rows, lane: Lane) -> None:
    """P20: at the border and below, not above."""
    rows.run("UPDATE strategy SET pruned_through = '2026-09-02T10:00Z'")
    with refused("execution_slot_pruned"):
        rows.pending(lane)
    assert rows.pending(lane) == "payroll/2026-09-03T10:00Z"


def test_an_execution_carries_the_account_and_revision_of_its_strategy(rows: Rows, lane: Lane) -> None:
    other = rows.account("savings", address=b"\x01" * 20)
    with refused("execution_revision"):
        rows.pending(other)
    rows.run("UPDATE strategy SET revision = 'r2'")
    with refused("execution_revision"):
        rows.pending(lane)
