"""P1 and P2 from a bare connection: every arrow that is drawn is allowed and every other one refused, by name."""

import pytest

from tests.store import lifecycle
from tests.store.refusals import refused
from tests.store.rows import Call, Lane, Rows, Sighting

STATES = ("PENDING", "PLANNED", "RUNNING", *lifecycle.ENDS, "SKIPPED", "FAILED")
ARROWS = {
    "PENDING": {"PLANNED", "SKIPPED", "FAILED", "CANCELLED", "PARKED"},
    "PLANNED": {"RUNNING", "SKIPPED", "FAILED", "CANCELLED", "PARKED"},
    "RUNNING": set(lifecycle.ENDS),
}
BY_RESOLUTION = {"PENDING", "PLANNED", "SKIPPED", "PARTIAL", "REVERTED", "CANCELLED"}
"""Where PARKED may go, with a recorded resolution only (tests/store/test_constraints_rewind.py)."""
ATTEMPT_STATES = ("DRAFT", "SIGNED", "SENT", "MINED", "FINAL", "SUPERSEDED", "REFUSED")
ATTEMPT_ARROWS = {
    "DRAFT": {"SIGNED", "REFUSED", "SUPERSEDED"},
    "SIGNED": {"SENT", "MINED", "SUPERSEDED"},
    "SENT": {"MINED", "SUPERSEDED"},
    "MINED": {"SENT", "FINAL", "SUPERSEDED"},
}


@pytest.mark.parametrize("before", STATES)
def test_an_execution_goes_along_its_arrows_only(rows: Rows, lane: Lane, before: str) -> None:
    for after in STATES:
        if after == before:
            continue
        execution_id = lifecycle.arrive(rows, lane, before, then=after)
        if after in ARROWS.get(before, set()):
            lifecycle.change(rows, lane, execution_id, after)
            found = rows.value("SELECT state FROM execution WHERE execution_id = %s", execution_id)
            assert found == after
        else:
            resolved = before == "PARKED" and after in BY_RESOLUTION
            with refused("execution_resolution" if resolved else "execution_transition"):
                lifecycle.change(rows, lane, execution_id, after)


@pytest.mark.parametrize("state", [s for s in STATES if s not in ("PENDING", "SKIPPED")])
def test_an_execution_is_born_pending_or_skipped(rows: Rows, lane: Lane, state: str) -> None:
    with refused("execution_transition"), rows.held(lane):
        rows.run(
            "INSERT INTO execution (execution_id, strategy, trigger_key, account_id, revision, payload_digest, state, due_at,"
            " evidence, reason) VALUES ('payroll/id/a', 'payroll', 'a', %s, 'r1', sha256(''), %s, now(), '{}', 'told')",
            lane.account_id,
            state,
        )


def _attempt_in(rows: Rows, lane: Lane, status: str) -> int:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id)
    (nonce,) = rows.reserve(lane, execution_id)
    if status in ("SIGNED", "SENT", "MINED", "FINAL"):
        lifecycle.sign(rows, lane, nonce)
    if status in ("SENT", "MINED", "FINAL"):
        lifecycle.send(rows, lane, nonce)
    if status in ("MINED", "FINAL"):
        lifecycle.mine(rows, lane, nonce)
    if status in ("FINAL", "SUPERSEDED", "REFUSED"):
        _attempt_to(rows, lane, nonce, status)
    return nonce


def _attempt_to(rows: Rows, lane: Lane, nonce: int, status: str) -> None:
    with rows.held(lane):
        bytes_too = (
            ", raw = coalesce(raw, %s), hash = coalesce(hash, sha256(%s)), signed_token = coalesce(signed_token, token)"
        )
        raw = f"raw {nonce}".encode()
        signed = status in ("SIGNED", "SENT", "MINED", "FINAL")
        rows.run(
            f"UPDATE attempt SET status = %s, reason = 'told'{bytes_too if signed else ''} WHERE (account_id, nonce) = (%s, %s)",
            status,
            *((raw, raw) if signed else ()),
            lane.account_id,
            nonce,
        )


@pytest.mark.parametrize("before", ATTEMPT_STATES)
def test_an_attempt_goes_along_its_arrows_only(rows: Rows, lane: Lane, before: str) -> None:
    for after in ATTEMPT_STATES:
        if after == before:
            continue
        nonce = _attempt_in(rows, lane, before)
        if after in ATTEMPT_ARROWS.get(before, set()):
            _attempt_to(rows, lane, nonce, after)
            assert rows.value("SELECT status FROM attempt WHERE nonce = %s", nonce) == after
        else:
            with refused("attempt_transition"):
                _attempt_to(rows, lane, nonce, after)


def test_an_attempt_is_born_a_draft(rows: Rows, lane: Lane) -> None:
    nonce = _attempt_in(rows, lane, "SUPERSEDED")
    with refused("attempt_transition"), rows.held(lane):
        rows.run(
            "INSERT INTO attempt (account_id, nonce, seq, kind, status, intent_digest, gas, max_fee, tip, raw, hash, token,"
            " signed_token) SELECT account_id, nonce, 1, 'BUMP', 'SIGNED', intent_digest, 21000, 1, 1, '1', sha256('1'), token,"
            " token FROM attempt WHERE nonce = %s",
            nonce,
        )


def test_a_closed_nonce_never_opens_again(rows: Rows, lane: Lane) -> None:
    lifecycle.running(rows, lane, "SUCCEEDED", [Call()])
    with refused("nonce_reservation_transition"), rows.held(lane):
        rows.run(
            "UPDATE nonce_reservation SET state = 'OPEN', closed_as = NULL, closed_seq = NULL, effect = NULL, closed_at = NULL,"
            " witness_number = NULL WHERE nonce = 7"
        )


def test_a_reservation_is_born_open(rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id)
    with refused("nonce_reservation_transition"), rows.held(lane):
        rows.run(
            "INSERT INTO nonce_reservation (account_id, nonce, execution_id, step, intent_digest, transaction_type, token, state,"
            " closed_as, closed_at, witness_number, witness_hash, witness_rule, witness_endpoints)"
            " SELECT account_id, 7, execution_id, step, digest, 2, token, 'CLOSED', 'foreign', now(), 1, digest, 'depth 0', '{a}'"
            " FROM intent WHERE execution_id = %s",
            execution_id,
        )


CLOSINGS = {
    "with a draft": ("nonce_reservation_final", "attempt", 0, True),
    "with an attempt that is not there": ("nonce_reservation_final", "attempt", 5, True),
    "with an effect the receipt denies": ("nonce_reservation_effect", "attempt", 0, False),
    "as an attempt without naming it": ("nonce_reservation_final", "attempt", None, True),
    "as foreign with an effect": ("nonce_reservation_closing", "foreign", None, True),
    "as foreign with one of ours": ("nonce_reservation_closing", "foreign", 0, None),
}


@pytest.mark.parametrize("case", CLOSINGS)
def test_a_nonce_closes_only_with_its_final_attempt(rows: Rows, lane: Lane, case: str) -> None:
    name, closed_as, seq, effect = CLOSINGS[case]
    nonce = _attempt_in(rows, lane, "FINAL" if "effect the receipt" in case else "DRAFT")
    with refused(name), rows.held(lane):
        rows.run(
            "UPDATE nonce_reservation SET state = 'CLOSED', closed_as = %s, closed_seq = %s, effect = %s, closed_at = now(),"
            " witness_number = 1, witness_hash = sha256(''), witness_rule = 'depth 0', witness_endpoints = '{a}' WHERE nonce = %s",
            closed_as,
            seq,
            effect,
            nonce,
        )


def test_a_nonce_closes_only_with_a_witness(rows: Rows, lane: Lane) -> None:
    nonce = _attempt_in(rows, lane, "DRAFT")
    for missing in ("witness_number", "witness_hash", "witness_rule"):
        columns = {
            "witness_number": "1",
            "witness_hash": "sha256('')",
            "witness_rule": "'depth 0'",
            "witness_endpoints": "'{a}'",
        }
        columns[missing] = "NULL"
        with refused("nonce_reservation_closing"), rows.held(lane):
            assigned = ", ".join(f"{column} = {value}" for column, value in columns.items())
            rows.run(
                f"UPDATE nonce_reservation SET state = 'CLOSED', closed_as = 'foreign', closed_at = now(), {assigned}"
                " WHERE nonce = %s",
                nonce,
            )


def test_an_own_transaction_in_a_block_is_never_called_foreign(rows: Rows, lane: Lane) -> None:
    nonce = _attempt_in(rows, lane, "MINED")
    with refused("nonce_reservation_foreign"):
        lifecycle.close_foreign(rows, lane, nonce)


def test_a_second_attempt_cannot_be_mined_at_a_nonce(rows: Rows, lane: Lane) -> None:
    nonce = _attempt_in(rows, lane, "SENT")
    lifecycle.add(rows, lane, nonce)
    lifecycle.sign(rows, lane, nonce, seq=1)
    lifecycle.mine(rows, lane, nonce)
    with refused("attempt_one_mined", "23505"):
        lifecycle.mine(rows, lane, nonce, Sighting(number=11), seq=1)
