"""Scheduling: due slots of all strategies → executions, by unique key and high-water mark (G1). Needs no lease.

Any worker may do it at any time; what two of them do at once is one row.
"""

import logging
from collections import Counter
from datetime import datetime, timedelta
from typing import Any, cast

import tzdata

from executor.crashpoints import CrashHook, CrashPoint, inert
from executor.database import Database, Tx
from executor.records import DueStrategy
from executor.recurrence import Misfire, apply_misfire, recurrence_of, slot_text
from executor.store import executions, strategies
from executor.telemetry import MATERIALISED

log = logging.getLogger("fenced.scheduler")
_STRATEGIES = 50
_SLOTS = 1000
_GRACE_SECONDS = 60.0


def materialise(database: Database, now: datetime, crash: CrashHook = inert) -> int:
    """Look at every strategy that has a slot due; how many executions were inserted, skipped ones included.

    `now` is an instant of the database's clock that was found believable: the mark never rises above it.

    A worker whose tzdata is older than what computed the strategy's last slot leaves it alone (P20).
    """
    counted: Counter[tuple[str, str]] = Counter()
    with database.transaction() as tx:
        for strategy in strategies.lock_due(tx, now, _STRATEGIES):
            if strategy.tzdata_version is not None and strategy.tzdata_version > tzdata.IANA_VERSION:
                log.warning(
                    "this worker's tzdata is too old for the strategy",
                    extra={"strategy": strategy.name, "needs": strategy.tzdata_version},
                )
                continue
            counted.update((strategy.name, state) for state in _materialise(tx, strategy, crash))
    for (name, state), times in counted.items():
        MATERIALISED.labels(name, state).inc(times)
    if counted:
        crash(CrashPoint.SCHEDULE_RECORDED)
    return counted.total()


def _materialise(tx: Tx, strategy: DueStrategy, crash: CrashHook) -> list[str]:
    """The states of the executions that were inserted."""
    recurrence = recurrence_of(strategy.schedule, strategy.every_seconds, strategy.timezone)
    if recurrence is None:
        return []
    slots = recurrence.due(strategy.high_water_mark, strategy.now, _SLOTS)
    if not slots:
        strategies.advance(
            tx, strategy.name, strategy.high_water_mark, recurrence.next(strategy.now), tzdata.IANA_VERSION
        )
        return []
    overlaps = strategy.overlap == "skip" and executions.has_live(tx, strategy.name)
    following = recurrence.next(strategy.now)
    rows: list[dict[str, Any]] = []
    for decision in apply_misfire(slots, strategy.now, cast("Misfire", strategy.misfire), _GRACE_SECONDS):
        runs = decision.run and not overlaps
        deadline = (
            None
            if strategy.start_deadline_seconds is None
            else decision.slot + timedelta(seconds=strategy.start_deadline_seconds)
        )
        rows.append(
            {
                "execution_id": f"{strategy.name}/{slot_text(decision.slot)}",
                "strategy": strategy.name,
                "slot": decision.slot,
                "input": strategy.input,
                "state": "PENDING" if runs else "SKIPPED",
                "reason": _lateness(decision.slot, strategy.now)
                if runs
                else decision.reason or "overlap: the one before is not through yet",
                "due_at": decision.slot,
                "expires_at": deadline or following,
            }
        )
    crash(CrashPoint.SCHEDULE_COMPUTED)
    inserted = set(executions.insert(tx, rows))
    strategies.advance(tx, strategy.name, slots[-1], following, tzdata.IANA_VERSION)
    return [row["state"] for row in rows if row["execution_id"] in inserted]


def _lateness(slot: datetime, now: datetime) -> str | None:
    """What marks a run that was missed and is made up for; history keeps it when the row says something else."""
    late = (now - slot).total_seconds()
    return f"catch-up: {late:.0f} s late" if late > _GRACE_SECONDS else None
