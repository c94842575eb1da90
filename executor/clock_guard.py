"""Watches the database's clock for one process: whether it may be believed now, told once to people and to the other workers.

While it is in doubt no lease is acquired, no slot becomes an execution and nothing new is planned or reserved. What was
reserved goes on, and leases are renewed: these are fenced by identity, not by time.
"""

import logging
import threading
import time
from datetime import datetime

from executor.clock import BEHIND_SECONDS, ClockJudge, ClockLook, ClockVerdict, boottime
from executor.database import Database
from executor.store import clock
from executor.telemetry import CLOCK_ANOMALIES, CLOCK_OFFSET

log = logging.getLogger("fenced.clock")


class ClockGuard:
    """One per process, shared by its threads."""

    def __init__(self) -> None:
        self._judge = ClockJudge()
        self._judging, self._noting = threading.Lock(), threading.Lock()
        self._trusted = True
        self._untold: str | None = None
        self._unsettled = False

    @property
    def is_trusted(self) -> bool:
        """Whether the last look left no doubt."""
        return self._trusted

    def look(self, database: Database) -> datetime | None:
        """The database's time if it may be acted on, None while it is in doubt.

        Raises:
            Unreachable: the database did not answer.
        """
        before = boottime()
        with database.read() as tx:
            seen = clock.look(tx)
        after = boottime()
        CLOCK_OFFSET.set(time.time() - seen.now.timestamp())
        with self._judging:
            verdict = self._judge.judge(ClockLook(seen.now, before, after, seen.max_seen, seen.is_doubted))
            self._tell(verdict)
        if self._noting.acquire(blocking=False):  # otherwise the other thread is at it
            try:
                self._note(database, seen, verdict)
            finally:
                self._noting.release()
        return seen.now if verdict.is_trusted else None

    def _tell(self, verdict: ClockVerdict) -> None:
        if verdict.anomaly is not None:
            self._untold, self._unsettled = verdict.anomaly, False
            CLOCK_ANOMALIES.inc()
            log.warning("the database's clock is in doubt: nothing new is begun", extra={"why": verdict.anomaly})
        elif self._trusted and not verdict.is_trusted:
            log.warning("another worker doubts the database's clock: nothing new is begun")
        if verdict.resumes:
            self._unsettled = True
            log.info("the database's clock runs evenly again and is believed")
        self._trusted = verdict.is_trusted

    def _note(self, database: Database, seen: clock.SharedClock, verdict: ClockVerdict) -> None:
        """Tell the other workers. What is not written, because somebody has the row locked, is written at the next look."""
        anomaly, settles = self._untold, self._unsettled and verdict.is_trusted
        ahead = (seen.now - seen.max_seen).total_seconds() > BEHIND_SECONDS
        if anomaly is None and not settles and not (verdict.is_trusted and ahead):
            return
        with database.transaction() as tx:
            if anomaly is not None and clock.note_anomaly(tx, anomaly) and self._untold is anomaly:
                self._untold = None
            if settles:
                self._unsettled = not clock.settle(tx, seen.now)
            elif verdict.is_trusted:
                clock.raise_max_seen(tx, seen.now)
