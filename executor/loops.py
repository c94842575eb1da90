"""The loops of a worker that need no lease: turning due slots into rows, listening for hints, telling what takes long."""

import logging
import threading
from collections.abc import Callable
from functools import partial

from executor import scheduler
from executor.clock_guard import ClockGuard
from executor.crashpoints import CrashHook, inert
from executor.database import Database, Tx, Unheard, repeat
from executor.errors import ExecutorError
from executor.store import sessions, strategies, waits

log = logging.getLogger("fenced.loops")
_LONGEST_WAIT_SECONDS = 1.0
_LOCK_LOOK_SECONDS = 5.0
_WAIT_LOOK_SECONDS = 30.0
_MOST_WAITS = 20
LONG_SECONDS = 5.0
"""How old a transaction that holds rows must be to be told: no transaction of ours is ever that old."""
LONG_WAIT_SECONDS = 600.0
"""How long an execution may be under way before the log tells what it waits for; again whenever that time has doubled."""


def schedule_forever(
    database: Database, stop: threading.Event, wake: Callable[[], None], clock: ClockGuard, crash: CrashHook = inert
) -> None:
    """Materialise slots when they fall due, until `stop`; `wake` is called when executions were inserted.

    While the database's clock is in doubt no slot is looked at.
    """
    while not stop.is_set():
        wait = _LONGEST_WAIT_SECONDS
        try:
            with database.read() as tx:
                ahead = strategies.seconds_to_next(tx)
            now = clock.look(database)
            if now is not None and ahead is not None:
                if ahead <= 0:
                    if repeat(partial(scheduler.materialise, database, now, crash)):
                        wake()
                    ahead = 0.05
                wait = min(wait, max(0.005, ahead))
        except ExecutorError as error:
            log.warning("slots could not be looked at", extra={"why": str(error)})
        except Exception as error:
            log.exception("scheduling failed unexpectedly", extra={"why": str(error)})
        stop.wait(wait)


def listen_forever(database: Database, stop: threading.Event, wake: Callable[[], None]) -> None:
    """Call `wake` at each NOTIFY, until `stop`. A hint only: without it the worker polls."""
    while not stop.is_set():
        try:
            for _ in database.hints(stop):
                wake()
        except Unheard as error:
            log.info("hints are not heard, polling goes on", extra={"why": str(error)})
            return
        except ExecutorError as error:
            log.info("hints are not heard, polling goes on", extra={"why": str(error)})
            stop.wait(5.0)


def tell_locks_forever(database: Database, stop: threading.Event, _: Callable[[], None]) -> None:
    """Tell, until `stop`, of each transaction that holds rows of ours for long: what waits for it stands still meanwhile [B97]."""

    def look(tx: Tx) -> None:
        for holder in sessions.holders(tx, LONG_SECONDS):
            log.warning("rows are held for long", extra={"why": holder.told})

    _look_forever(database, stop, _LOCK_LOOK_SECONDS, "locks", look)


def tell_waits_forever(
    database: Database,
    stop: threading.Event,
    _: Callable[[], None],
    worker: str,
    long_seconds: float = LONG_WAIT_SECONDS,
    look_seconds: float = _WAIT_LOOK_SECONDS,
) -> None:
    """Tell, until `stop`, of each execution that is under way for long, by id and age: no wait is silent [B20]."""
    told: dict[str, float] = {}

    def look(tx: Tx) -> None:
        found = waits.longest(tx, worker, long_seconds, _MOST_WAITS)
        for wait in found:
            if wait.seconds >= 2 * told.get(wait.execution_id, 0.0):
                told[wait.execution_id] = wait.seconds
                log.warning("an execution waits for long", extra={"account": wait.account, "why": wait.told})
        for ended in told.keys() - {wait.execution_id for wait in found}:
            del told[ended]

    _look_forever(database, stop, look_seconds, "waits", look)


def _look_forever(
    database: Database, stop: threading.Event, seconds: float, what: str, look: Callable[[Tx], None]
) -> None:
    """Look every `seconds` until `stop`; no failure ends it."""
    while not stop.wait(seconds):
        try:
            with database.read() as tx:
                look(tx)
        except ExecutorError as error:
            log.info("%s could not be looked at", what, extra={"why": str(error)})
        except Exception as error:
            log.exception("looking at %s failed unexpectedly", what, extra={"why": str(error)})
