"""What happens to reserved nonces, as legal rows: signed, sent, mined, final, ended."""

import json
from collections.abc import Sequence

from eth_hash.auto import keccak

from tests.store.rows import BLOCK, Call, Lane, Rows, Sighting

ENDS = ("SUCCEEDED", "PARTIAL", "REVERTED", "CANCELLED", "PARKED")
"""The states a RUNNING execution may go to."""


def sign(rows: Rows, lane: Lane, nonce: int, raw: bytes | None = None, seq: int = 0) -> bytes:
    """DRAFT → SIGNED; bytes without a meaning unless given. Returns the hash."""
    raw = raw or f"bytes of {lane.account_id}/{nonce}/{seq}".encode()
    with rows.held(lane):
        rows.run(
            "UPDATE attempt SET status = 'SIGNED', raw = %s, hash = %s, signed_at = clock_timestamp(), signed_token = %s"
            " WHERE (account_id, nonce, seq) = (%s, %s, %s)",
            raw,
            keccak(raw),
            lane.token,
            lane.account_id,
            nonce,
            seq,
        )
    return keccak(raw)


def send(rows: Rows, lane: Lane, nonce: int, seq: int = 0) -> None:
    """SIGNED → SENT."""
    with rows.held(lane):
        rows.run(
            "UPDATE attempt SET status = 'SENT', sent_at = clock_timestamp(), sent_token = %s"
            " WHERE (account_id, nonce, seq) = (%s, %s, %s)",
            lane.token,
            lane.account_id,
            nonce,
            seq,
        )


def add(rows: Rows, lane: Lane, nonce: int, kind: str = "BUMP", seq: int = 1) -> None:
    """One more draft at the same nonce."""
    with rows.held(lane):
        rows.draft(lane, nonce, seq, kind, (21_000, 200, 20))


def mine(rows: Rows, lane: Lane, nonce: int, seen: Sighting = Sighting(), seq: int = 0) -> None:  # noqa: B008
    """SENT → MINED with the receipt that is believed."""
    with rows.held(lane):
        rows.run(
            "INSERT INTO receipt (account_id, nonce, seq, block_number, block_hash, status, gas_used, effective_gas_price, token)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            lane.account_id,
            nonce,
            seq,
            seen.number,
            seen.hash,
            seen.status,
            seen.gas_used,
            seen.price,
            lane.token,
        )
        rows.run(
            "UPDATE attempt SET status = 'MINED' WHERE (account_id, nonce, seq) = (%s, %s, %s)",
            lane.account_id,
            nonce,
            seq,
        )


def finalize(
    rows: Rows, lane: Lane, nonce: int, witness: Sighting | None = None, seq: int = 0, rule: str = "depth 0"
) -> None:
    """MINED → FINAL: the others are superseded, the reservation closes with its witness."""
    with rows.held(lane):
        at = (lane.account_id, nonce)
        rows.run(
            "UPDATE attempt SET status = 'SUPERSEDED' WHERE (account_id, nonce) = (%s, %s) AND seq <> %s"
            " AND status IN ('DRAFT', 'SIGNED', 'SENT')",
            *at,
            seq,
        )
        rows.run("UPDATE attempt SET status = 'FINAL' WHERE (account_id, nonce, seq) = (%s, %s, %s)", *at, seq)
        number, block = (witness.number, witness.hash) if witness else (10, BLOCK)
        rows.run(
            "UPDATE nonce_reservation n SET state = 'CLOSED', closed_as = 'attempt', closed_seq = %s,"
            " effect = (SELECT a.kind <> 'CANCEL' AND r.status = 1 FROM attempt a JOIN receipt r USING (account_id, nonce, seq)"
            "   WHERE (a.account_id, a.nonce, a.seq) = (n.account_id, n.nonce, %s) AND r.orphaned_at IS NULL),"
            " closed_at = clock_timestamp(), witness_number = %s, witness_hash = %s, witness_rule = %s,"
            " witness_endpoints = '{node}' WHERE (account_id, nonce) = (%s, %s)",
            seq,
            seq,
            number,
            block,
            rule,
            *at,
        )


def close_foreign(rows: Rows, lane: Lane, nonce: int) -> None:
    """The nonce went to a transaction of somebody else with the same key."""
    with rows.held(lane):
        at = (lane.account_id, nonce)
        rows.run(
            "UPDATE attempt SET status = 'SUPERSEDED' WHERE (account_id, nonce) = (%s, %s)"
            " AND status IN ('DRAFT', 'SIGNED', 'SENT')",
            *at,
        )
        rows.run(
            "UPDATE nonce_reservation SET state = 'CLOSED', closed_as = 'foreign', closed_at = clock_timestamp(),"
            " witness_number = 10, witness_hash = %s, witness_rule = 'depth 0', witness_endpoints = '{node}'"
            " WHERE (account_id, nonce) = (%s, %s)",
            BLOCK,
            *at,
        )


def settle(rows: Rows, lane: Lane, nonce: int, status: int = 1) -> None:
    """A SEND draft all the way to FINAL."""
    sign(rows, lane, nonce)
    send(rows, lane, nonce)
    mine(rows, lane, nonce, Sighting(status=status))
    finalize(rows, lane, nonce)


def cancelled(rows: Rows, lane: Lane, nonce: int) -> None:
    """A cancel at this nonce becomes FINAL; the SEND draft is never signed."""
    with rows.held(lane):
        rows.run(
            "UPDATE attempt SET status = 'SUPERSEDED' WHERE (account_id, nonce) = (%s, %s)", lane.account_id, nonce
        )
        rows.draft(lane, nonce, 1, "CANCEL")
    sign(rows, lane, nonce, seq=1)
    send(rows, lane, nonce, seq=1)
    mine(rows, lane, nonce, seq=1)
    finalize(rows, lane, nonce, seq=1)


def change(rows: Rows, lane: Lane, execution_id: str, state: str) -> None:
    """UPDATE the state with everything the new state asks for beside it."""
    ended = state in ("SUCCEEDED", "PARTIAL", "REVERTED", "CANCELLED", "SKIPPED", "FAILED")
    with rows.held(lane):
        rows.run(
            "UPDATE execution e SET state = %s, reason = 'told', evidence = coalesce(evidence, %s),"
            " ended_at = CASE WHEN %s THEN clock_timestamp() END, steps = coalesce(steps, 1),"
            " plan_order = coalesce(plan_order, 'together'), planned_at = coalesce(planned_at, clock_timestamp()),"
            " token = coalesce(token, %s), steps_effective = (SELECT count(*) FROM nonce_reservation r"
            "   WHERE r.execution_id = e.execution_id AND r.effect) WHERE execution_id = %s",
            state,
            json.dumps({"seen": "by a test"}),
            ended,
            lane.token,
            execution_id,
        )


def close_for(rows: Rows, lane: Lane, nonces: Sequence[int], end: str) -> None:
    """Close the nonces of a RUNNING execution so that `end` is what P2 asks for."""
    if end == "PARKED":
        close_foreign(rows, lane, nonces[0])
    elif end == "CANCELLED":
        cancelled(rows, lane, nonces[0])
    else:
        settle(rows, lane, nonces[0], status=0 if end in ("REVERTED", "PARTIAL") else 1)
    for nonce in nonces[1:]:
        if end == "CANCELLED":
            cancelled(rows, lane, nonce)
        else:
            settle(rows, lane, nonce, status=0 if end == "REVERTED" else 1)


def running(rows: Rows, lane: Lane, end: str | None = None, calls: Sequence[Call] = (Call(), Call(value=2))) -> str:
    """A RUNNING execution; with `end`, its nonces are closed so that this end is right."""
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, calls)
    nonces = rows.reserve(lane, execution_id)
    if end is not None:
        close_for(rows, lane, nonces, end)
    return execution_id


def arrive(rows: Rows, lane: Lane, state: str, then: str | None = None) -> str:
    """An execution in `state`; a RUNNING one is ready to become `then`."""
    if state == "RUNNING":
        return running(rows, lane, then if then in ENDS else None)
    if state in ("SUCCEEDED", "PARTIAL", "REVERTED", "PARKED"):
        execution_id = running(rows, lane, state)
    else:
        execution_id = rows.pending(lane)
        if state == "PLANNED":
            rows.plan(lane, execution_id)
    if state not in ("PENDING", "PLANNED"):
        change(rows, lane, execution_id, state)
    return execution_id
