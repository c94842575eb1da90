"""The loops of a worker that need no lease: turning due slots into rows, and listening for hints."""

import logging
import threading
from collections.abc import Callable

from executor import scheduler
from executor.clock_guard import ClockGuard
from executor.database import Database
from executor.errors import ExecutorError
from executor.store import strategies

log = logging.getLogger("fenced.loops")
_LONGEST_WAIT_SECONDS = 1.0


def schedule_forever(database: Database, stop: threading.Event, wake: Callable[[], None], clock: ClockGuard) -> None:
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
                    if scheduler.materialise(database, now):
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
        except ExecutorError as error:
            log.info("hints are not heard, polling goes on", extra={"why": str(error)})
            stop.wait(5.0)
