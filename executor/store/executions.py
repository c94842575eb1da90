"""The execution rows: born by a slot or a trigger, ended by evidence."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import text

from executor.database import Held, Rows, Tx, expect
from executor.records import PendingExecution

LONGEST_RETRY_SECONDS = 10
"""No plan is tried again later than this after it failed."""
_BORN = Rows(
    execution_id="text",
    strategy="text",
    slot="timestamptz",
    trigger_key="text",
    input="text",
    payload_digest="bytea",
    state="text",
    reason="text",
    due_at="timestamptz",
    expires_at="timestamptz",
)
_INSERT = text(f"""
INSERT INTO execution (execution_id, strategy, slot, trigger_key, account_id, revision, input, payload_digest, state, reason, due_at, expires_at, ended_at)
SELECT r.execution_id, r.strategy, r.slot, r.trigger_key, s.account_id, s.revision, r.input::jsonb, r.payload_digest, r.state, r.reason,
       r.due_at, r.expires_at, CASE WHEN r.state = 'SKIPPED' THEN clock_timestamp() END
  FROM {_BORN.sql} JOIN strategy s ON s.name = r.strategy
ON CONFLICT DO NOTHING RETURNING execution_id
""")
_PAYLOAD = text("SELECT payload_digest, state FROM execution WHERE execution_id = :id")
_LIVE = text("""
SELECT EXISTS (
  SELECT 1 FROM execution e WHERE e.strategy = :strategy AND (
    e.state IN ('PENDING', 'PLANNED', 'PARKED')
    OR (e.state = 'RUNNING' AND (
      (SELECT count(*) FROM nonce_reservation r WHERE r.execution_id = e.execution_id)
        + (SELECT count(*) FROM already_paid p WHERE p.execution_id = e.execution_id) < e.steps
      OR EXISTS (SELECT 1 FROM nonce_reservation r WHERE r.execution_id = e.execution_id AND r.state = 'OPEN'
                  AND NOT EXISTS (SELECT 1 FROM attempt a WHERE (a.account_id, a.nonce) = (r.account_id, r.nonce) AND a.status = 'MINED'))))))
""")
# Where the database's clock was set back, a slot waits for its instant; what was triggered and what is tried again does not
# wait for the length of the jump.
_DUE = f"""
e.state = 'PENDING' AND (slot IS NULL OR due_at <= (SELECT clock_timestamp()))
   AND (retry_at IS NULL OR retry_at NOT BETWEEN (SELECT clock_timestamp()) AND (SELECT clock_timestamp()) + interval '{LONGEST_RETRY_SECONDS} s')
"""
_PENDING = text(f"""
SELECT execution_id, strategy, slot, revision, input, planning_attempts, coalesce(expires_at <= (SELECT clock_timestamp()), false),
       coalesce(slot <= a.reopened_at AND resolution IS NULL, false) AS due_before
  FROM execution e JOIN account a USING (account_id)
 WHERE account_id = :account AND strategy = :strategy AND {_DUE}
 ORDER BY due_at, execution_id LIMIT :most
""")
_TO_PLAN = text(f"""
SELECT DISTINCT account_id, strategy FROM execution e
 WHERE account_id = ANY(:accounts) AND {_DUE}
""")
_COUNT = text("""
UPDATE execution SET planning_attempts = planning_attempts + 1
 WHERE account_id = :account AND execution_id = ANY(:ids) AND state = 'PENDING'
""")
_PLANNED = Rows(execution_id="text", revision="text", plan_order="text", steps="int")
_RECORD_PLANNED = text(f"""
UPDATE execution e SET state = 'PLANNED', reason = NULL, plan_order = r.plan_order, steps = r.steps, token = :token,
       plan_block_number = :number, plan_block_hash = :hash, planned_at = clock_timestamp()
  FROM {_PLANNED.sql}
 WHERE e.execution_id = r.execution_id AND e.account_id = :account AND e.state = 'PENDING' AND e.revision = r.revision
""")
_ENDED = Rows(execution_id="text", state="text", reason="text")
_END_UNRESERVED = text(f"""
UPDATE execution e SET state = r.state, reason = r.reason, ended_at = clock_timestamp(), token = :token
  FROM {_ENDED.sql}
 WHERE e.execution_id = r.execution_id AND e.account_id = :account AND e.state IN ('PENDING', 'PLANNED')
""")
_RETRY = Rows(execution_id="text", reason="text", seconds="float8")
_RECORD_RETRY = text(f"""
UPDATE execution e SET reason = r.reason, retry_at = clock_timestamp() + make_interval(secs => r.seconds)
  FROM {_RETRY.sql}
 WHERE e.execution_id = r.execution_id AND e.account_id = :account AND e.state = 'PENDING'
""")
_WAIT = Rows(execution_id="text", reason="text")
_RECORD_WAIT = text(f"""
UPDATE execution e SET reason = r.reason FROM {_WAIT.sql}
 WHERE e.execution_id = r.execution_id AND e.account_id = :account AND e.state IN ('PLANNED', 'RUNNING') AND e.reason IS DISTINCT FROM r.reason
""")
_RUNNING = text("""
UPDATE execution SET state = 'RUNNING', reason = NULL WHERE account_id = :account AND execution_id = ANY(:ids) AND state = 'PLANNED'
""")
# P2: the first line that fits is the end. Done: nothing open, and no further step will be reserved.
_END_SETTLED = text("""
WITH tally AS (
  SELECT e.execution_id, e.steps, e.plan_order, e.stopped_at, e.reason AS stopped_why,
         (SELECT count(*) FROM already_paid p WHERE p.execution_id = e.execution_id) AS paid,
         count(r.nonce) AS reserved,
         count(*) FILTER (WHERE r.state = 'OPEN') AS open,
         count(*) FILTER (WHERE r.effect) AS effective,
         count(*) FILTER (WHERE r.closed_as = 'foreign') AS foreign_uses,
         count(*) FILTER (WHERE r.closed_as = 'attempt' AND NOT r.effect AND a.kind <> 'CANCEL') AS reverted,
         count(*) FILTER (WHERE r.state = 'CLOSED' AND r.effect IS NOT TRUE) AS dead,
         jsonb_agg(jsonb_build_object('nonce', r.nonce, 'block', r.witness_number, 'hash', '0x' || encode(r.foreign_hash, 'hex')))
           FILTER (WHERE r.closed_as = 'foreign') AS evidence
    FROM execution e JOIN nonce_reservation r USING (execution_id)
    LEFT JOIN attempt a ON (a.account_id, a.nonce, a.seq) = (r.account_id, r.nonce, r.closed_seq)
   WHERE e.execution_id = ANY(:ids) AND e.account_id = :account AND e.state = 'RUNNING'
   GROUP BY e.execution_id),
done AS (SELECT *, CASE WHEN foreign_uses > 0 THEN 'PARKED' WHEN effective + paid = steps THEN 'SUCCEEDED' WHEN effective > 0 THEN 'PARTIAL'
                        WHEN reverted > 0 THEN 'REVERTED' ELSE 'CANCELLED' END AS ending
           FROM tally WHERE open = 0 AND (reserved + paid = steps OR (plan_order <> 'together' AND dead > 0) OR stopped_at IS NOT NULL))
UPDATE execution e SET state = d.ending, steps_effective = d.effective, evidence = coalesce(d.evidence, e.evidence),
       reason = CASE d.ending WHEN 'PARKED' THEN 'a nonce of it was used by a transaction that is not ours'
                              WHEN 'REVERTED' THEN 'the transaction reverted on chain'
                              WHEN 'SUCCEEDED' THEN NULL ELSE CASE WHEN d.stopped_at IS NOT NULL THEN d.stopped_why END END,
       ended_at = CASE WHEN d.ending <> 'PARKED' THEN clock_timestamp() END
  FROM done d WHERE e.execution_id = d.execution_id AND e.state = 'RUNNING' RETURNING e.execution_id, e.state
""")

_END_PAID = text("""
UPDATE execution e SET state = 'SKIPPED', ended_at = clock_timestamp(),
       reason = (SELECT 'already paid by ' || p.paid_execution_id || ' in 0x' || encode(p.paid_hash, 'hex') FROM already_paid p
                  WHERE p.execution_id = e.execution_id ORDER BY p.step LIMIT 1)
 WHERE e.account_id = :account AND e.execution_id = ANY(:ids) AND e.state = 'PLANNED'
   AND (SELECT count(*) FROM already_paid p WHERE p.execution_id = e.execution_id) = e.steps
""")


def payload_digest(strategy: str, payload: Any) -> bytes:
    """What two requests for one execution id must agree on: sha256 of strategy and input as canonical JSON."""
    return hashlib.sha256(json.dumps([strategy, payload], sort_keys=True, separators=(",", ":")).encode()).digest()


def insert(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Insert PENDING or SKIPPED executions; those that exist already are left alone (G1). The ids inserted."""
    if not rows:
        return []
    full = [
        {
            "trigger_key": None,
            "slot": None,
            "reason": None,
            "expires_at": None,
            **row,
            "input": None if row["input"] is None else json.dumps(row["input"]),
            "payload_digest": payload_digest(row["strategy"], row["input"]),
        }
        for row in rows
    ]
    return list(tx.execute(_INSERT, _BORN.bind(full)).scalars())


def stored_payload(tx: Tx, execution_id: str) -> tuple[bytes, str] | None:
    """The payload digest and state of an execution that exists."""
    row = tx.execute(_PAYLOAD, {"id": execution_id}).one_or_none()
    return None if row is None else (bytes(row.payload_digest), row.state)


def has_live(tx: Tx, strategy: str) -> bool:
    """Whether an execution of the strategy still counts for overlap: until all its steps are MINED, or resolved (P18)."""
    return bool(tx.scalar(_LIVE, {"strategy": strategy}))


def select_pending(tx: Tx, account_id: int, strategy: str, most: int) -> list[PendingExecution]:
    """Executions whose plan is due, oldest first."""
    return [
        PendingExecution(*row)
        for row in tx.execute(_PENDING, {"account": account_id, "strategy": strategy, "most": most})
    ]


def select_to_plan(tx: Tx, account_ids: Sequence[int]) -> list[tuple[int, str]]:
    """Account and strategy where a plan is due."""
    return [(row.account_id, row.strategy) for row in tx.execute(_TO_PLAN, {"accounts": list(account_ids)})]


def count_planning(held: Held, execution_ids: Sequence[str]) -> None:
    """Count a planning attempt before it starts, so that a plan that kills its process still counts (P19)."""
    expect(
        held.tx.execute(_COUNT, {"account": held.account_id, "ids": list(execution_ids)}).rowcount,
        len(execution_ids),
        "planning attempts",
    )


def record_planned(held: Held, rows: Sequence[Mapping[str, Any]], block_number: int, block_hash: bytes) -> None:
    """PENDING → PLANNED at the revision that was planned; the intents were inserted before, in the same transaction."""
    if rows:
        bound = {
            **_PLANNED.bind(rows),
            "account": held.account_id,
            "token": held.token,
            "number": block_number,
            "hash": block_hash,
        }
        expect(held.tx.execute(_RECORD_PLANNED, bound).rowcount, len(rows), "plans")


def end_unreserved(held: Held, rows: Sequence[Mapping[str, Any]]) -> None:
    """PENDING or PLANNED → SKIPPED, FAILED or CANCELLED: no nonce was used."""
    if rows:
        bound = {**_ENDED.bind(rows), "account": held.account_id, "token": held.token}
        expect(held.tx.execute(_END_UNRESERVED, bound).rowcount, len(rows), "executions ended without a nonce")


def record_retry(held: Held, rows: Sequence[Mapping[str, Any]]) -> None:
    """Note why a plan failed and when to try again."""
    if rows:
        expect(
            held.tx.execute(_RECORD_RETRY, {**_RETRY.bind(rows), "account": held.account_id}).rowcount,
            len(rows),
            "plans to retry",
        )


def record_waiting(held: Held, rows: Sequence[Mapping[str, Any]]) -> None:
    """Note what planned executions wait for; rows that say so already are left alone."""
    if rows:
        held.tx.execute(_RECORD_WAIT, {**_WAIT.bind(rows), "account": held.account_id})


def record_running(held: Held, execution_ids: Sequence[str]) -> None:
    """PLANNED → RUNNING, in the transaction that reserves the first nonces."""
    if execution_ids:
        expect(
            held.tx.execute(_RUNNING, {"account": held.account_id, "ids": list(execution_ids)}).rowcount,
            len(execution_ids),
            "executions to run",
        )


def end_paid(held: Held, execution_ids: Sequence[str]) -> None:
    """PLANNED → SKIPPED where every step's `once` was spent elsewhere (G2b)."""
    if execution_ids:
        held.tx.execute(_END_PAID, {"account": held.account_id, "ids": list(execution_ids)})


def end_settled(held: Held, execution_ids: Sequence[str]) -> dict[str, str]:
    """End those of the executions whose nonces are all closed and that will reserve no more (P2); id → end state."""
    if not execution_ids:
        return {}
    found = held.tx.execute(_END_SETTLED, {"account": held.account_id, "ids": list(execution_ids)})
    return {row.execution_id: row.state for row in found}
