"""PARKED: how executions get there after a rewind, and how an operator's recorded decision lets them out (P3, G9)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from executor.database import Held, Tx, expect

_UNTIL = text("SELECT greatest(clock_timestamp(), max_seen) FROM clock_guard WHERE is_settled")
_SCHEDULES = text("""
SELECT name, schedule, every_seconds, timezone, input, high_water_mark FROM strategy
 WHERE account_id = :account AND retired_at IS NULL AND (schedule IS NOT NULL OR every_seconds IS NOT NULL) ORDER BY name
""")
_MARKS = text("""
UPDATE strategy SET high_water_mark = greatest(high_water_mark, :until)
 WHERE account_id = :account AND (schedule IS NOT NULL OR every_seconds IS NOT NULL)
""")
_PARKED = """
UPDATE execution SET state = 'PARKED', resolution = NULL, token = :token,
       reason = 'due before the account was reopened after a rewind: see whether it was done, then release it with fenced resolve',
       evidence = jsonb_build_object('reopened', CAST(:until AS timestamptz), 'why', CAST(:why AS text))
"""
_PARK_ALL = text(f"{_PARKED} WHERE account_id = :account AND state IN ('PENDING', 'PLANNED')")
_REOPENED = text("""
SELECT a.reopened_at AS until, coalesce((SELECT r.why FROM request r WHERE r.account_id = a.account_id AND r.kind = 'reopen' AND r.granted
         ORDER BY r.answered_at DESC LIMIT 1), 'reopened') AS why
  FROM account a WHERE a.account_id = :account
""")
_PARK = text(f"{_PARKED} WHERE account_id = :account AND state = 'PENDING' AND execution_id = ANY(:ids)")
_STOP = text("""
UPDATE execution e SET stopped_at = clock_timestamp(),
       reason = 'its further steps are not sent: the account was reopened after a rewind, and a lost row may have paid them'
 WHERE e.account_id = :account AND e.state = 'RUNNING' AND e.plan_order <> 'together' AND e.stopped_at IS NULL
   AND (SELECT count(*) FROM nonce_reservation r WHERE r.execution_id = e.execution_id)
         + (SELECT count(*) FROM already_paid p WHERE p.execution_id = e.execution_id) < e.steps
RETURNING e.execution_id
""")
_SELECT = text("""
SELECT e.state, e.steps, e.revision = s.revision AND s.retired_at IS NULL AS plannable, s.revision AS registered,
       (SELECT count(*) FROM nonce_reservation r WHERE r.execution_id = e.execution_id) AS reserved,
       (SELECT min(k.nonce) FROM acknowledged_nonce k WHERE k.execution_id = e.execution_id) AS bound_nonce
  FROM execution e JOIN strategy s ON s.name = e.strategy WHERE e.execution_id = :id AND e.account_id = :account
""")
_RELEASE = text("""
UPDATE execution SET state = CASE WHEN steps IS NULL THEN 'PENDING' ELSE 'PLANNED' END, resolution = CAST(:resolution AS jsonb),
       reason = :reason, expires_at = NULL, retry_at = NULL, planning_attempts = 0, token = :token
 WHERE execution_id = :id AND account_id = :account AND state = 'PARKED'
""")
# What a foreign nonce has parked ends by the lines of P2 that follow PARKED; without a nonce `unreserved` says the end.
_END = text("""
WITH tally AS (
  SELECT count(r.nonce) AS reserved, count(*) FILTER (WHERE r.effect) AS effective,
         count(*) FILTER (WHERE r.closed_as = 'attempt' AND NOT r.effect AND a.kind <> 'CANCEL') AS reverted
    FROM nonce_reservation r LEFT JOIN attempt a ON (a.account_id, a.nonce, a.seq) = (r.account_id, r.nonce, r.closed_seq)
   WHERE r.execution_id = :id)
UPDATE execution e SET resolution = CAST(:resolution AS jsonb), reason = :reason, ended_at = clock_timestamp(), token = :token,
       steps_effective = CASE WHEN t.reserved > 0 THEN t.effective ELSE e.steps_effective END,
       state = CASE WHEN t.reserved = 0 THEN :unreserved WHEN t.effective > 0 THEN 'PARTIAL' WHEN t.reverted > 0 THEN 'REVERTED'
                    ELSE 'CANCELLED' END
  FROM tally t WHERE e.execution_id = :id AND e.account_id = :account AND e.state = 'PARKED' RETURNING e.state
""")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule of an account, and how far its slots have been looked at."""

    strategy: str
    schedule: str | None
    every_seconds: float | None
    timezone: str
    input: Any
    high_water_mark: datetime


@dataclass(frozen=True, slots=True)
class Parked:
    """An execution somebody wants to resolve: `bound_nonce` is an acknowledged nonce that the signer's journal bound to a step of it."""

    state: str
    steps: int | None
    plannable: bool
    registered: str
    reserved: int
    bound_nonce: int | None


def until(tx: Tx) -> datetime | None:
    """The instant before which everything is parked: the database's clock, never earlier than any worker has seen it; None while it is in doubt."""
    found: datetime | None = tx.execute(_UNTIL).scalar_one_or_none()
    return found


def schedules(tx: Tx, account_id: int) -> list[Schedule]:
    """The schedules of an account, paused ones too: a lost row may have resumed them."""
    return [Schedule(*row) for row in tx.execute(_SCHEDULES, {"account": account_id})]


def raise_marks(held: Held, until: datetime) -> None:
    """Let no schedule of the account look at a slot up to `until` again."""
    held.tx.execute(_MARKS, {"account": held.account_id, "until": until})


def park_all(held: Held, until: datetime, why: str) -> int:
    """PENDING and PLANNED → PARKED, all of the account's: how many."""
    return held.tx.execute(_PARK_ALL, _bound(held, until=until, why=why)).rowcount


def park(held: Held, execution_ids: Sequence[str]) -> None:
    """PENDING → PARKED for slots that lie before the account's last reopening after a rewind."""
    if execution_ids:
        reopened = held.tx.execute(_REOPENED, {"account": held.account_id}).one()
        bound = _bound(held, until=reopened.until, why=reopened.why, ids=list(execution_ids))
        expect(held.tx.execute(_PARK, bound).rowcount, len(execution_ids), "executions to park")


def stop_ordered(held: Held) -> list[str]:
    """Give no further nonce to running executions of ordered steps; those concerned."""
    return list(held.tx.execute(_STOP, {"account": held.account_id}).scalars())


def select(tx: Tx, account_id: int, execution_id: str) -> Parked:
    """The execution a resolution is about, as it stands."""
    return Parked(*tx.execute(_SELECT, {"account": account_id, "id": execution_id}).one())


def release(held: Held, execution_id: str, resolution: Mapping[str, Any], reason: str) -> None:
    """PARKED → PENDING, or PLANNED where it has its intents: it runs under its own id, without a deadline."""
    bound = _bound(held, id=execution_id, resolution=json.dumps(resolution), reason=reason)
    expect(held.tx.execute(_RELEASE, bound).rowcount, 1, f"{execution_id} to release")


def end(held: Held, execution_id: str, resolution: Mapping[str, Any], reason: str, unreserved: str) -> str:
    """PARKED → the end P2 asks for, or `unreserved` where no nonce was ever reserved; which."""
    bound = _bound(held, id=execution_id, resolution=json.dumps(resolution), reason=reason, unreserved=unreserved)
    found = held.tx.execute(_END, bound).scalars().all()
    expect(len(found), 1, f"{execution_id} to end")
    return str(found[0])


def _bound(held: Held, **more: object) -> dict[str, object]:
    return {"account": held.account_id, "token": held.token, **more}
