"""G2, G2b, G3, G5, G7 from a bare connection: one step one nonce, one nonce one intent, one `once` one payment."""

import pytest

from tests.store import lifecycle
from tests.store.refusals import CHECK, FOREIGN_KEY, UNIQUE, refused
from tests.store.rows import Call, Lane, Rows


def _planned(rows: Rows, lane: Lane, calls: list[Call] | None = None, strategy: str = "payroll") -> str:
    execution_id = rows.pending(lane, strategy)
    rows.plan(lane, execution_id, calls or [Call(), Call(value=2)])
    return execution_id


RESERVE = (
    "INSERT INTO nonce_reservation (account_id, nonce, execution_id, step, intent_digest, once, transaction_type, token)"
    " SELECT account_id, {nonce}, execution_id, step, {digest}, once, {kind}, {token} FROM intent"
    " WHERE execution_id = '{execution}' AND step = {step}"
)


def _reserve(execution: str, nonce: int, **changed: object) -> str:
    defaults = {"digest": "digest", "kind": 2, "token": 1, "step": 1}
    return RESERVE.format(**{"execution": execution, "nonce": nonce, **defaults, **changed})


@pytest.mark.parametrize(
    ("constraint", "sqlstate", "nonce", "changed"),
    [
        ("nonce_reservation_step", UNIQUE, 8, {"step": 0}),
        ("nonce_reservation_pkey", UNIQUE, 7, {}),
        ("nonce_reservation_contiguous", CHECK, 9, {}),
        ("nonce_reservation_contiguous", CHECK, 6, {}),
        ("nonce_reservation_range", CHECK, -1, {}),
        ("nonce_reservation_range", CHECK, 2**63 - 1, {}),
        ("nonce_reservation_type", CHECK, 8, {"kind": 3}),
        ("nonce_reservation_intent", FOREIGN_KEY, 8, {"digest": "sha256('another call')"}),
        ("nonce_reservation_generation", FOREIGN_KEY, 8, {"token": 99}),
    ],
)
def test_a_reservation_that_breaks_the_sequence_is_refused(
    rows: Rows, lane: Lane, constraint: str, sqlstate: str, nonce: int, changed: dict[str, object]
) -> None:
    """[B17] A second row for a nonce, or for a step, is refused by the schema."""
    execution_id = _planned(rows, lane)
    rows.reserve(lane, execution_id, [0])
    if constraint == "nonce_reservation_generation":
        rows.run("ALTER TABLE nonce_reservation DISABLE TRIGGER guard_insert")
    with refused(constraint, sqlstate), rows.held(lane):
        rows.run(_reserve(execution_id, nonce, **changed))


def test_several_nonces_in_one_statement_have_no_hole_either(rows: Rows, lane: Lane) -> None:
    execution_id = _planned(rows, lane, [Call(value=i) for i in range(1, 4)])
    many = (
        "INSERT INTO nonce_reservation (account_id, nonce, execution_id, step, intent_digest, transaction_type, token)"
        " SELECT account_id, 7 + step {plus}, execution_id, step, digest, 2, token FROM intent WHERE execution_id = %s"
    )
    for plus in ("+ step / 2", "+ 1", "* 2"):
        with refused("nonce_reservation_contiguous"), rows.held(lane):
            rows.run(many.format(plus=plus), execution_id)
    with rows.held(lane):
        assert rows.run(many.format(plus=""), execution_id) == 3


@pytest.mark.parametrize("state", ["halted", "draining"])
def test_nothing_is_reserved_while_the_account_is_not_open(rows: Rows, lane: Lane, state: str) -> None:
    execution_id = _planned(rows, lane)
    rows.run("UPDATE account SET state = %s, reason = 'stop'", state)
    with refused("account_open"), rows.held(lane):
        rows.run(_reserve(execution_id, 7))


@pytest.mark.parametrize(("kind", "allowed"), [("SEND", False), ("BUMP", False), ("CANCEL", True)])
def test_a_halted_account_signs_only_cancels(rows: Rows, lane: Lane, kind: str, allowed: bool) -> None:
    """P16."""
    (nonce,) = rows.reserve(lane, _planned(rows, lane, [Call()]))
    seq = 0
    if kind != "SEND":
        lifecycle.sign(rows, lane, nonce)
        lifecycle.add(rows, lane, nonce, kind)
        seq = 1
    rows.run("UPDATE account SET state = 'halted', reason = 'stop'")
    if allowed:
        lifecycle.sign(rows, lane, nonce, seq=seq)
    else:
        with refused("account_open"):
            lifecycle.sign(rows, lane, nonce, seq=seq)


@pytest.mark.parametrize("state", ["PENDING", "CANCELLED", "FAILED", "SKIPPED", "SUCCEEDED"])
def test_a_nonce_is_reserved_for_a_planned_execution_only(rows: Rows, lane: Lane, state: str) -> None:
    execution_id = lifecycle.arrive(rows, lane, state) if state in ("PENDING", "SUCCEEDED") else _planned(rows, lane)
    if state in ("CANCELLED", "FAILED", "SKIPPED"):
        lifecycle.change(rows, lane, execution_id, state)
    with rows.connection.transaction(force_rollback=True):
        # A step that was never reserved, in an execution that is over (or not planned yet).
        rows.run("ALTER TABLE intent DISABLE TRIGGER born")
        rows.hold(lane)
        rows.run(
            "INSERT INTO intent (execution_id, step, account_id, recipient, value, data, access_list, digest, token)"
            " VALUES (%s, 5, %s, %s, 1, '', '[]', sha256(''), 1)",
            execution_id,
            lane.account_id,
            lane.address,
        )
        with refused("nonce_reservation_planned"), rows.connection.transaction():
            rows.run(_reserve(execution_id, rows.next_nonce(lane), step=5))


def test_an_account_without_a_first_nonce_reserves_nothing(rows: Rows, lane: Lane) -> None:
    other = rows.account("savings", address=b"\x01" * 20)
    rows.strategy(other, "saving")
    rows.run("ALTER TABLE account DISABLE TRIGGER change")
    rows.run("UPDATE account SET first_nonce = NULL WHERE account_id = %s", other.account_id)
    execution_id = _planned(rows, other, strategy="saving")
    with refused("nonce_reservation_contiguous"), rows.held(other):
        rows.run(_reserve(execution_id, 0))


@pytest.mark.parametrize(
    "assignment",
    [
        "nonce = 8",
        "step = 1",
        "execution_id = 'payroll/2026-09-03T10:00Z'",
        "intent_digest = sha256('other')",
        "once = 'other'",
        "transaction_type = 0",
        "reserved_at = now()",
        "account_id = 2",
    ],
)
def test_a_reservation_is_never_repointed(rows: Rows, lane: Lane, assignment: str) -> None:
    rows.reserve(lane, _planned(rows, lane), [0])
    _planned(rows, lane)
    with refused("nonce_reservation_identity"), rows.held(lane):
        rows.run(f"UPDATE nonce_reservation SET {assignment}")


def _pay(rows: Rows, lane: Lane, once: str = "invoice/8812", strategy: str = "payroll") -> int:
    execution_id = _planned(rows, lane, [Call(once=once)], strategy)
    return rows.reserve(lane, execution_id)[0]


@pytest.mark.parametrize("after", ["open", "signed", "sent", "mined", "succeeded", "foreign"])
@pytest.mark.parametrize("where", ["the same account", "another account"])
def test_a_once_is_spent_by_one_living_or_effective_step(rows: Rows, lane: Lane, after: str, where: str) -> None:
    """G2b: across accounts and strategies, and a nonce that went to an unknown transaction frees nothing."""
    other = rows.account("savings", address=b"\x01" * 20)
    rows.strategy(other, "saving")
    nonce = _pay(rows, lane)
    if after == "foreign":
        lifecycle.close_foreign(rows, lane, nonce)
    steps = {"signed": 1, "sent": 2, "mined": 3, "succeeded": 4}.get(after, 0)
    for step in (lifecycle.sign, lifecycle.send, lifecycle.mine, lifecycle.finalize)[:steps]:
        step(rows, lane, nonce)
    with refused("nonce_reservation_once", UNIQUE):
        _pay(
            rows,
            *((lane, "invoice/8812", "payroll") if where == "the same account" else (other, "invoice/8812", "saving")),
        )
    _pay(rows, lane, "invoice/8813")


@pytest.mark.parametrize("dead", ["cancelled", "reverted"])
def test_a_once_is_free_again_when_the_step_is_dead_on_chain(rows: Rows, lane: Lane, dead: str) -> None:
    nonce = _pay(rows, lane)
    if dead == "cancelled":
        lifecycle.cancelled(rows, lane, nonce)
    else:
        lifecycle.settle(rows, lane, nonce, status=0)
    assert _pay(rows, lane) == nonce + 1
    with refused("nonce_reservation_once", UNIQUE):
        _pay(rows, lane)


@pytest.mark.parametrize("once", ["NULL", "'another name'"])
def test_a_store_cannot_forget_the_once_of_an_intent(rows: Rows, lane: Lane, once: str) -> None:
    execution_id = _planned(rows, lane, [Call(once="invoice/8812")])
    with refused("nonce_reservation_once_named"), rows.held(lane):
        rows.run(_reserve(execution_id, 7, step=0).replace("step, digest, once,", f"step, digest, {once},"))


def test_a_step_that_is_already_paid_gets_no_nonce(rows: Rows, lane: Lane) -> None:
    lifecycle.settle(rows, lane, _pay(rows, lane))
    execution_id = _planned(rows, lane, [Call()])
    with rows.held(lane):
        rows.run(
            "INSERT INTO already_paid (execution_id, step, account_id, once, paid_execution_id, paid_step, paid_hash, token)"
            " SELECT %s, 0, account_id, once, execution_id, step, intent_digest, token FROM nonce_reservation",
            execution_id,
        )
    with refused("nonce_reservation_already_paid"), rows.held(lane):
        rows.run(_reserve(execution_id, 8, step=0))


@pytest.mark.parametrize(
    ("end", "step", "allowed"),
    [
        ("SUCCEEDED", 0, False),
        ("PARTIAL", 0, True),
        ("PARTIAL", 1, False),
        ("REVERTED", 0, True),
        ("CANCELLED", 1, True),
        (None, 0, False),
    ],
)
def test_a_reissue_repeats_only_steps_without_effect(
    rows: Rows, lane: Lane, end: str | None, step: int, allowed: bool
) -> None:
    """P4: close_for leaves step 0 of a PARTIAL execution without effect."""
    original = lifecycle.running(rows, lane, end)
    if end is not None:
        lifecycle.change(rows, lane, original, end)
    rows.run(
        "INSERT INTO execution (execution_id, strategy, slot, reissue_no, account_id, revision, payload_digest, state, due_at)"
        " SELECT 'again', strategy, slot, 1, account_id, revision, payload_digest, 'PENDING', due_at FROM execution"
    )
    copy = (
        "INSERT INTO intent (execution_id, step, account_id, recipient, value, data, access_list, digest, token)"
        " SELECT 'again', step, account_id, recipient, value, data, access_list, digest, token FROM intent WHERE step = %s"
    )
    if allowed:
        with rows.held(lane):
            assert rows.run(copy, step) == 1
    else:
        with refused("intent_reissued"), rows.held(lane):
            rows.run(copy, step)
