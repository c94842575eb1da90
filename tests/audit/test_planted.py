"""Each promise broken in the rows, one way at a time: the audit names that promise and no other."""

import pytest

from executor.audit import audit
from tests.audit import histories, plants_outcomes, plants_payments
from tests.audit.planting import disarm, plant, swap_bytes
from tests.store.rows import PAYEE, Call, Lane, Rows

PLANTS = {**plants_payments.PLANTS, **plants_outcomes.PLANTS}


@pytest.mark.parametrize("case", PLANTS)
def test_a_broken_promise_is_named(old_rows: Rows, history_url: str, case: str) -> None:
    plant(old_rows, PLANTS[case])
    found = audit(history_url, None).violations
    assert {violation.promise for violation in found} == {PLANTS[case].promise}, found
    assert any(PLANTS[case].words in violation.sentence for violation in found), found
    assert all(violation.rows for violation in found)


SENT = Call(value=8)
BYTES = {
    "another chain": ("G3", "another chain id", histories.raw(7, SENT, chain_id=1)),
    "another nonce": ("G3", "another nonce", histories.raw(70, SENT)),
    "another sender": ("G3", "another sender", histories.raw(7, SENT, key=histories.KEYS[1])),
    "another value": ("G3", "what its intent says", histories.raw(7, Call(value=88))),
    "another recipient": ("G3", "what its intent says", histories.raw(7, Call(value=8, recipient=b"\x09" * 20))),
    "other data": ("G3", "what its intent says", histories.raw(7, Call(value=8, data=b"\x01"))),
    "another access list": ("G3", "what its intent says", histories.raw(7, Call(value=8, access_list=((PAYEE, ()),)))),
    "a creation": (
        "G3",
        "what its intent says",
        histories.raw(7, Call(value=8, recipient=None, data=b"\x00"), fees=histories.FEES),
    ),
    "nothing that can be read": ("G3", "cannot be read back", b"\x02\xc0"),
    "other fees": ("G5", "other gas or fees", histories.raw(7, SENT, fees=histories.BUMPED)),
}


@pytest.mark.parametrize("case", BYTES)
def test_bytes_that_are_not_what_the_row_says(old_rows: Rows, history_url: str, case: str) -> None:
    promise, words, data = BYTES[case]
    swap_bytes(old_rows, 7, data)
    found = audit(history_url, None).violations
    assert {violation.promise for violation in found} == {promise}, found
    assert any(words in violation.sentence for violation in found), found


def test_a_cancel_that_does_something(old_rows: Rows, history_url: str) -> None:
    swap_bytes(old_rows, 5, histories.raw(5, Call(value=1), fees=histories.BUMPED), seq=1)
    (found,) = audit(history_url, None).violations
    assert (found.promise, "is a cancel and does something" in found.sentence) == ("G3", True)


@pytest.mark.parametrize(
    ("why", "clean"),
    [("attention = NULL", False), ("attention = 'no funds'", True), ("state = 'halted', reason = 'x'", True)],
)
def test_an_open_nonce_that_nothing_can_close(rows: Rows, lane: Lane, database_url: str, why: str, clean: bool) -> None:
    """G7: all legal arrows, and yet nothing will ever send it."""
    histories.reserved(rows, lane, histories.planned(rows, lane))
    with rows.held(lane):
        rows.run("UPDATE attempt SET status = 'SUPERSEDED'")
    rows.run(f"UPDATE account SET {why}")
    found = audit(database_url, None).violations
    assert [violation.promise for violation in found] == ([] if clean else ["G7"])


@pytest.mark.parametrize("over", [True, False])
def test_a_reissue_of_what_took_effect_or_still_may(rows: Rows, lane: Lane, database_url: str, over: bool) -> None:
    """P4: legal names and nonces, and still the same step twice."""
    if over:
        histories.paid(rows, lane, [Call()])
    else:
        histories.planned(rows, lane, [Call()])
    rows.run("ALTER TABLE intent DISABLE TRIGGER born")
    rows.run(
        "INSERT INTO execution (execution_id, strategy, slot, reissue_no, account_id, revision, payload_digest, state, due_at)"
        " SELECT execution_id || '/reissue/1', strategy, slot, 1, account_id, revision, payload_digest, 'PENDING', due_at FROM execution"
    )
    rows.plan(lane, "payroll/2026-09-02T10:00Z/reissue/1", [Call()])
    (found,) = audit(database_url, None).violations
    assert (found.promise, found.rows["why"]) == ("G1", "took effect" if over else "is not over")


def test_many_of_one_kind_are_counted(rows: Rows, lane: Lane, database_url: str) -> None:
    for _ in range(25):
        rows.pending(lane)
    disarm(rows)
    rows.run("UPDATE execution SET slot = slot + interval '1 h'")
    found = audit(database_url, None).violations
    assert len(found) == 21
    assert found[-1].rows == {"more": 5}
