"""What an operator or an outside scheduler asks for, as rows: triggers, switches that stop work, and requests."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from executor.database import Tx

_STRATEGY = text("""
SELECT s.name, s.account_id, s.schedule, s.every_seconds, s.timezone, s.start_deadline_seconds, s.input,
       s.paused_at IS NOT NULL AS paused, s.paused_why, s.retired_at IS NOT NULL AS retired, clock_timestamp() AS now
  FROM strategy s WHERE s.name = :name
""")
_NAMES = text("SELECT name FROM strategy WHERE retired_at IS NULL ORDER BY name")
_REASON = text("SELECT reason FROM execution WHERE execution_id = :id")
_PAUSE = text("""
UPDATE strategy SET paused_at = clock_timestamp(), paused_why = :why WHERE name = :name AND paused_at IS NULL
""")
_ASK = text("""
INSERT INTO request (kind, account_id, strategy, execution_id, paid_hash, why, who)
VALUES (:kind, :account, :strategy, :execution, :paid, :why, :who) RETURNING request_id
""")
_WAITING = text("""
SELECT request_id FROM request
 WHERE kind = :kind AND account_id = :account AND strategy IS NOT DISTINCT FROM :strategy AND execution_id IS NOT DISTINCT FROM :execution
   AND paid_hash IS NOT DISTINCT FROM :paid AND answered_at IS NULL AND NOT is_moved(timeline, system_identifier) ORDER BY request_id LIMIT 1
""")
_RESOLVABLE = text("""
SELECT e.account_id, a.name, a.state, e.state FROM execution e JOIN account a USING (account_id) WHERE e.execution_id = :id
""")
_ANSWER = text("SELECT granted, answer FROM request WHERE request_id = :id AND answered_at IS NOT NULL")


@dataclass(frozen=True, slots=True)
class Triggerable:
    """A strategy as a trigger or a switch needs to know it; `now` is the database's clock."""

    name: str
    account_id: int
    schedule: str | None
    every_seconds: float | None
    timezone: str
    start_deadline_seconds: float | None
    input: Any
    paused: bool
    paused_why: str | None
    retired: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class Resolvable:
    """An execution as a resolution needs to know it."""

    account_id: int
    account: str
    account_state: str
    state: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the holder answered to a request."""

    granted: bool
    text: str


def strategy(tx: Tx, name: str) -> Triggerable | None:
    """The strategy of this name, if there is one."""
    row = tx.execute(_STRATEGY, {"name": name}).one_or_none()
    return None if row is None else Triggerable(*row)


def strategy_names(tx: Tx) -> list[str]:
    """The strategies that are not retired."""
    return list(tx.execute(_NAMES).scalars())


def execution_reason(tx: Tx, execution_id: str) -> str | None:
    """Why an execution is in its state, where that was told."""
    found: str | None = tx.scalar(_REASON, {"id": execution_id})
    return found


def pause(tx: Tx, name: str, why: str) -> bool:
    """No new slots of the strategy run. False when it was paused already."""
    return tx.execute(_PAUSE, {"name": name, "why": why[:500]}).rowcount == 1


def ask(tx: Tx, kind: str, account_id: int, strategy_name: str | None, why: str, who: str) -> int:
    """A request to the holder of the account, or the one that waits there already; its id."""
    bound = {
        "kind": kind,
        "account": account_id,
        "strategy": strategy_name,
        "why": why,
        "who": who,
        "execution": None,
        "paid": None,
    }
    return _ask(tx, bound)


def resolvable(tx: Tx, execution_id: str) -> Resolvable | None:
    """The execution of this id, if there is one."""
    row = tx.execute(_RESOLVABLE, {"id": execution_id}).one_or_none()
    return None if row is None else Resolvable(*row)


def ask_resolve(tx: Tx, account_id: int, execution_id: str, paid_hash: bytes | None, why: str, who: str) -> int:
    """A request to resolve a PARKED execution, or the same one that waits there already; its id."""
    bound = {"kind": "resolve", "account": account_id, "strategy": None, "why": why, "who": who}
    return _ask(tx, bound | {"execution": execution_id, "paid": paid_hash})


def _ask(tx: Tx, bound: dict[str, Any]) -> int:
    waiting = tx.scalar(_WAITING, bound)
    return int(waiting if waiting is not None else tx.execute(_ASK, bound).scalar_one())


def answer(tx: Tx, request_id: int) -> Answer | None:
    """The answer to a request, None while it waits."""
    row = tx.execute(_ANSWER, {"id": request_id}).one_or_none()
    return None if row is None else Answer(row.granted, row.answer)
