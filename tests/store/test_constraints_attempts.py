"""G3 and G5 from a bare connection: every attempt carries the intent of its nonce, and its bytes never change."""

import pytest

from tests.store import lifecycle
from tests.store.refusals import CHECK, FOREIGN_KEY, UNIQUE, refused
from tests.store.rows import Call, Lane, Rows


def _planned(rows: Rows, lane: Lane, calls: list[Call] | None = None) -> str:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, calls or [Call(), Call(value=2)])
    return execution_id


ATTEMPTS = {
    "with another digest": ("attempt_intent", FOREIGN_KEY, {"intent_digest": "sha256('another call')"}),
    "a cancel with another digest": (
        "attempt_cancel",
        FOREIGN_KEY,
        {"kind": "'CANCEL'", "intent_digest": "NULL", "cancel_digest": "sha256('x')"},
    ),
    "a cancel with the digest of the intent": ("attempt_payload", CHECK, {"kind": "'CANCEL'"}),
    "a bump with the digest of a cancel": (
        "attempt_payload",
        CHECK,
        {"intent_digest": "NULL", "cancel_digest": "(SELECT cancel_digest FROM account)"},
    ),
    "with no digest at all": ("attempt_payload", CHECK, {"intent_digest": "NULL"}),
    "a second SEND": ("attempt_first", CHECK, {"kind": "'SEND'"}),
    "of an unknown kind": ("attempt_kind", CHECK, {"kind": "'GIFT'"}),
    "with the same number": ("attempt_pkey", UNIQUE, {"seq": "0"}),
    "with a negative number": ("attempt_seq", CHECK, {"seq": "-1"}),
    "with too little gas": ("attempt_gas", CHECK, {"gas": "20999"}),
    "with a tip above the cap": ("attempt_fees", CHECK, {"tip": "101"}),
    "with bytes and no hash": ("attempt_bytes", CHECK, {"raw": "'x'"}),
    "a second draft": ("attempt_one_draft", UNIQUE, {}),
    "at a nonce that is not reserved": ("attempt_reservation", FOREIGN_KEY, {"nonce": "8", "intent_digest": "NULL"}),
}


@pytest.mark.parametrize("case", ATTEMPTS)
def test_a_bad_attempt_is_refused_by_name(rows: Rows, lane: Lane, case: str) -> None:
    constraint, sqlstate, changed = ATTEMPTS[case]
    rows.reserve(lane, _planned(rows, lane, [Call()]))
    if constraint != "attempt_one_draft":
        lifecycle.sign(rows, lane, 7)
    columns = {
        "account_id": "account_id",
        "nonce": "nonce",
        "seq": "1",
        "kind": "'BUMP'",
        "intent_digest": "intent_digest",
    }
    columns |= {
        "cancel_digest": "NULL",
        "gas": "21000",
        "max_fee": "100",
        "tip": "10",
        "raw": "NULL",
        "token": "1",
    } | changed
    if constraint == "attempt_reservation":
        columns |= {"kind": "'CANCEL'", "cancel_digest": "(SELECT cancel_digest FROM account)"}
    with refused(constraint, sqlstate), rows.held(lane):
        rows.run(
            f"INSERT INTO attempt ({', '.join(columns)}) SELECT {', '.join(columns.values())} FROM nonce_reservation"
        )


@pytest.mark.parametrize(
    ("constraint", "assignment"),
    [
        ("attempt_bytes_immutable", "raw = 'others'"),
        ("attempt_bytes_immutable", "hash = sha256('others')"),
        ("attempt_bytes_immutable", "raw = NULL, hash = NULL, signed_token = NULL"),
        ("attempt_bytes_immutable", "signed_token = NULL"),
        ("attempt_identity", "max_fee = 101"),
        ("attempt_identity", "tip = 11"),
        ("attempt_identity", "gas = 30000"),
        ("attempt_identity", "kind = 'CANCEL', intent_digest = NULL, cancel_digest = sha256('')"),
        ("attempt_identity", "seq = 3"),
        ("attempt_identity", "token = 2"),
    ],
)
@pytest.mark.parametrize("status", ["SIGNED", "FINAL"])
def test_signed_bytes_never_change(rows: Rows, lane: Lane, constraint: str, assignment: str, status: str) -> None:
    """G5."""
    rows.reserve(lane, _planned(rows, lane, [Call()]))
    lifecycle.sign(rows, lane, 7)
    if status == "FINAL":
        lifecycle.mine(rows, lane, 7)
        lifecycle.finalize(rows, lane, 7)
    with refused(constraint), rows.held(lane):
        rows.run(f"UPDATE attempt SET {assignment}")


def test_one_hash_belongs_to_one_attempt(rows: Rows, lane: Lane) -> None:
    rows.reserve(lane, _planned(rows, lane))
    lifecycle.sign(rows, lane, 7, b"the same bytes")
    with refused("attempt_hash", UNIQUE):
        lifecycle.sign(rows, lane, 8, b"the same bytes")


def test_a_refusal_tells_why(rows: Rows, lane: Lane) -> None:
    rows.reserve(lane, _planned(rows, lane, [Call()]))
    with refused("attempt_refused"), rows.held(lane):
        rows.run("UPDATE attempt SET status = 'REFUSED'")
