"""Every kind of violation planted once: the audit names that kind with its rows, and nothing else."""

import re
from pathlib import Path

import pytest

import executor.audit
from executor.audit import audit
from executor.audit.catalogue import KINDS
from tests.audit import histories, plants_bytes, plants_lives, plants_payments
from tests.audit.planting import disarm, names, plant, swap_bytes
from tests.audit.test_chain import ON_CHAIN
from tests.store.rows import PAYEE, Call, Lane, Rows

PLANTS = {**plants_payments.PLANTS, **plants_bytes.PLANTS, **plants_lives.PLANTS}
PROMISES = {kind.name: kind.promise for kind in KINDS}


def test_every_kind_has_a_plant() -> None:
    """A new check without one fails here; so does a kind that is in no list."""
    sources = Path(executor.audit.__file__).parent.glob("*.py")
    assert sum(len(re.findall(r"\bKind\(", source.read_text())) for source in sources) == len(KINDS)
    assert len(PROMISES) == len(KINDS)
    assert PROMISES.keys() == PLANTS.keys() | {kind for kind, _, _ in BYTES.values()} | ON_CHAIN.keys()


@pytest.mark.parametrize("kind", PLANTS)
def test_what_is_planted_is_found(old_rows: Rows, history_url: str, kind: str) -> None:
    planted = PLANTS[kind]
    plant(old_rows, planted)
    found = audit(history_url, None).violations
    assert {violation.kind for violation in found} == {kind, *planted.also}, found
    of_kind = [violation for violation in found if violation.kind == kind]
    assert {violation.promise for violation in of_kind} == {PROMISES[kind]}
    assert [row for row in planted.rows if not names(of_kind, row)] == [], of_kind


SENT = Call(value=8)
BYTES = {
    "another chain": ("other-identity", "another chain id", histories.raw(7, SENT, chain_id=1)),
    "another nonce": ("other-identity", "another nonce", histories.raw(70, SENT)),
    "another sender": ("other-identity", "another sender", histories.raw(7, SENT, key=histories.KEYS[1])),
    "another value": ("other-call", "pays something else", histories.raw(7, Call(value=88))),
    "another recipient": ("other-call", "pays something else", histories.raw(7, Call(value=8, recipient=b"\x09" * 20))),
    "other data": ("other-call", "pays something else", histories.raw(7, Call(value=8, data=b"\x01"))),
    "another access list": ("other-call", "pays", histories.raw(7, Call(value=8, access_list=((PAYEE, ()),)))),
    "a creation": ("other-call", "pays", histories.raw(7, Call(value=8, recipient=None, data=b"\x00"))),
    "nothing that can be read": ("unreadable", "cannot be read back", b"\x02\xc0"),
    "other fees": ("other-fees", "other gas or fees", histories.raw(7, SENT, fees=histories.BUMPED)),
    "a cancel that acts": ("cancel-acts", "does something", histories.raw(5, Call(value=1), fees=histories.BUMPED)),
}


@pytest.mark.parametrize("case", BYTES)
def test_bytes_that_are_not_what_the_row_says(old_rows: Rows, history_url: str, case: str) -> None:
    kind, words, data = BYTES[case]
    nonce, seq = (5, 1) if kind == "cancel-acts" else (7, 0)
    swap_bytes(old_rows, nonce, data, seq)
    found = audit(history_url, None).violations
    assert {violation.kind for violation in found} - {"other-fees"} == {kind} - {"other-fees"}, found
    assert any(words in violation.sentence for violation in found), found
    assert names(found, f"attempt account_id=1 nonce={nonce} seq={seq}")


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
    assert [violation.kind for violation in found] == ([] if clean else ["dead-nonce"])


def test_many_of_one_kind_are_counted(rows: Rows, lane: Lane, database_url: str) -> None:
    for _ in range(25):
        rows.pending(lane)
    disarm(rows)
    rows.run("UPDATE execution SET slot = slot + interval '1 h'")
    found = audit(database_url, None).violations
    assert len(found) == 21
    assert found[-1].found == {"more": 5}
