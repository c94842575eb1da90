"""What a rewind leaves in the rows, from a bare connection: identity, acknowledged nonces, parked executions and their release (P3, P13)."""

import json

import pytest

from tests.store import lifecycle
from tests.store.refusals import refused
from tests.store.rows import BLOCK, Call, Lane, Rows

RESOLUTION = json.dumps({"paid": None, "who": "me", "why": "looked"})


def _acknowledge(rows: Rows, lane: Lane, *nonces: int) -> None:
    request = rows.value(
        "INSERT INTO request (kind, account_id, why, who) VALUES ('reopen', %s, 'looked', 'me') RETURNING request_id",
        lane.account_id,
    )
    with rows.held(lane):
        rows.run(
            "INSERT INTO acknowledged_nonce (account_id, nonce, witness_number, witness_hash, witness_rule, witness_endpoints, request_id, token)"
            " SELECT %s, nonce, 10, %s, 'depth 0', '{node}', %s, %s FROM unnest(%s::bigint[]) AS nonce",
            lane.account_id,
            BLOCK,
            request,
            lane.token,
            list(nonces),
        )


def _park(rows: Rows, lane: Lane, execution_id: str) -> None:
    with rows.held(lane):
        rows.run(
            "UPDATE execution e SET state = 'PARKED', reason = 'told', evidence = '{}', steps_effective ="
            " (SELECT count(*) FROM nonce_reservation r WHERE r.execution_id = e.execution_id AND r.effect) WHERE execution_id = %s",
            execution_id,
        )


@pytest.mark.parametrize("column", ["timeline = timeline + 1", "system_identifier = 'another'"])
def test_an_account_last_opened_elsewhere_is_halted_by_hold(rows: Rows, lane: Lane, column: str) -> None:
    """P13: restored and promoted databases have another timeline, copied ones another cluster; the reason says which."""
    with rows.held(lane):
        rows.run(f"UPDATE account SET {column}")
    with rows.connection.transaction():
        assert rows.hold(lane) == "halted"
    reason = rows.value("SELECT reason FROM account")
    assert ("restored or promoted" in reason) == column.startswith("timeline")
    assert ("copied to another installation" in reason) == column.startswith("system")
    with refused("account_open"), rows.held(lane):
        rows.run("UPDATE account SET hold_xid = hold_xid")
        execution_id = rows.pending(lane)
        rows.intents(lane, execution_id, [Call()])
        rows.run(
            "UPDATE execution SET state = 'PLANNED', steps = 1, plan_order = 'together', planned_at = now(), token = %s WHERE execution_id = %s",
            lane.token,
            execution_id,
        )
        rows.reserve_step(lane, execution_id)


@pytest.mark.parametrize("column", ["timeline = 9", "system_identifier = 'another'", "reopened_at = now()"])
def test_only_the_holder_says_where_an_account_was_opened(rows: Rows, lane: Lane, column: str) -> None:
    with refused("fence_required"):
        rows.run(f"UPDATE account SET {column}")


def test_what_was_due_before_a_reopening_stays_before_it(rows: Rows, lane: Lane) -> None:
    with rows.held(lane):
        rows.run("UPDATE account SET reopened_at = '2030-01-01'")
    for earlier in ("'2029-12-31'", "NULL"):
        with refused("account_reopened_at"), rows.held(lane):
            rows.run(f"UPDATE account SET reopened_at = {earlier}")


def test_acknowledged_nonces_leave_no_hole_and_are_never_reserved(rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, [Call(), Call(value=2)])
    assert rows.reserve(lane, execution_id, [0]) == [7]
    with refused("acknowledged_nonce_contiguous"):
        _acknowledge(rows, lane, 9)
    with refused("acknowledged_nonce_contiguous"):
        _acknowledge(rows, lane, 6)
    with refused("acknowledged_nonce_reserved"):
        _acknowledge(rows, lane, 7)
    _acknowledge(rows, lane, 8, 9)
    reserve = (
        "INSERT INTO nonce_reservation (account_id, nonce, execution_id, step, intent_digest, transaction_type, token)"
        " SELECT account_id, {}, execution_id, step, digest, 2, %s FROM intent WHERE step = 1"
    )
    for nonce, constraint in ((9, "nonce_reservation_acknowledged"), (11, "nonce_reservation_contiguous")):
        with refused(constraint), rows.held(lane):
            rows.run(reserve.format(nonce), lane.token)
    with rows.held(lane):
        assert rows.run(reserve.format(10), lane.token) == 1


def test_the_first_nonce_of_an_account_may_be_an_acknowledged_one(rows: Rows, lane: Lane) -> None:
    _acknowledge(rows, lane, 7, 8)
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, [Call()])
    with refused("nonce_reservation_acknowledged"):
        rows.reserve(lane, execution_id)


def test_a_stopped_execution_gets_no_further_nonce(rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, [Call(), Call(value=2)], "final")
    with refused("execution_stopped"), rows.held(lane):
        rows.run("UPDATE execution SET stopped_at = now()")
    rows.reserve(lane, execution_id, [0])
    with rows.held(lane):
        rows.run("UPDATE execution SET stopped_at = now()")
    with refused("execution_stopped"), rows.held(lane):
        rows.run("UPDATE execution SET stopped_at = NULL")
    with refused("nonce_reservation_stopped"):
        rows.reserve(lane, execution_id, [1])


def test_a_slot_before_the_reopening_is_planned_only_when_released(rows: Rows, lane: Lane) -> None:
    """No misfire or overlap policy, and no store that forgets to ask, runs what was due before (design, section 2)."""
    execution_id = rows.pending(lane)
    with rows.held(lane):
        rows.run("UPDATE account SET reopened_at = '2030-01-01'")
    with refused("execution_due_before"):
        rows.plan(lane, execution_id)
    _park(rows, lane, execution_id)
    with rows.held(lane):
        rows.run("UPDATE execution SET state = 'PENDING', resolution = %s", RESOLUTION)
    rows.plan(lane, execution_id)
    with refused("execution_resolution"), rows.held(lane):
        rows.run("UPDATE execution SET resolution = NULL")
    keyed = rows.pending(lane, key="a-new-one")
    rows.plan(lane, keyed)


LEAVING = {
    "PENDING": "state = 'PENDING'",
    "PLANNED": "state = 'PLANNED'",
    "SKIPPED": "state = 'SKIPPED', ended_at = now()",
    "CANCELLED": "state = 'CANCELLED', ended_at = now()",
    "PARTIAL": "state = 'PARTIAL', ended_at = now(), steps_effective = 1",
    "REVERTED": "state = 'REVERTED', ended_at = now(), steps_effective = 0",
}
ALLOWED = {
    "unplanned": {"PENDING", "SKIPPED", "CANCELLED"},
    "planned": {"PLANNED", "SKIPPED", "CANCELLED"},
    "foreign": {"PARTIAL"},
}


@pytest.mark.parametrize("kind", ALLOWED)
@pytest.mark.parametrize("state", LEAVING)
def test_parked_is_left_by_a_resolution_to_what_its_nonces_allow(rows: Rows, lane: Lane, kind: str, state: str) -> None:
    """A foreign nonce ended it: it never runs again, and its end is the one of P2. Without a nonce it runs or is over."""
    if kind == "foreign":
        execution_id = lifecycle.running(rows, lane, "PARKED", [Call(), Call(value=2)])
    else:
        execution_id = rows.pending(lane)
        if kind == "planned":
            rows.plan(lane, execution_id)
    _park(rows, lane, execution_id)
    leave = f"UPDATE execution SET {LEAVING[state]}"
    with refused("execution_resolution"), rows.held(lane):
        rows.run(leave)
    if state in ALLOWED[kind]:
        with rows.held(lane):
            rows.run(f"{leave}, resolution = %s", RESOLUTION)
        return
    with pytest.raises(Exception, match="execution"), rows.held(lane):
        rows.run(f"{leave}, resolution = %s", RESOLUTION)


def test_a_parked_execution_carries_no_resolution(rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    _park(rows, lane, execution_id)
    with refused("execution_resolution"), rows.held(lane):
        rows.run("UPDATE execution SET resolution = %s", RESOLUTION)
    with refused("fence_required"):
        rows.run("UPDATE execution SET state = 'PENDING', resolution = %s", RESOLUTION)


@pytest.mark.parametrize(
    ("kind", "execution", "paid"), [("resolve", False, False), ("reopen", True, False), ("reopen", False, True)]
)
def test_a_request_to_resolve_names_an_execution_and_no_other_does(
    rows: Rows, lane: Lane, kind: str, execution: bool, paid: bool
) -> None:
    execution_id = rows.pending(lane)
    with refused("request_resolves"):
        rows.run(
            "INSERT INTO request (kind, account_id, execution_id, paid_hash, why, who) VALUES (%s, %s, %s, %s, 'x', 'me')",
            kind,
            lane.account_id,
            execution_id if execution else None,
            BLOCK if paid else None,
        )
