"""The row that all workers share about the database's clock: the newest instant believed, and the last time it was doubted.

Nobody waits here: who finds the row locked leaves it and writes at its next look.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from executor.database import Tx

_LOOK = text("SELECT clock_timestamp() AS now, max_seen, NOT is_settled AS is_doubted FROM clock_guard")
_RAISE = text("""
WITH free AS (SELECT FROM clock_guard WHERE max_seen < :now FOR NO KEY UPDATE SKIP LOCKED)
UPDATE clock_guard SET max_seen = :now FROM free
""")
_DOUBT = text("""
WITH free AS (SELECT FROM clock_guard FOR NO KEY UPDATE SKIP LOCKED)
UPDATE clock_guard SET anomaly = :anomaly, anomaly_at = clock_timestamp(), anomalies = anomalies + 1, is_settled = false FROM free
""")
_SETTLE = text("""
WITH free AS (SELECT FROM clock_guard FOR NO KEY UPDATE SKIP LOCKED)
UPDATE clock_guard SET max_seen = :now, is_settled = true FROM free
""")


@dataclass(frozen=True, slots=True)
class SharedClock:
    """The database's clock now, and what the workers have noted about it."""

    now: datetime
    max_seen: datetime
    is_doubted: bool


def look(tx: Tx) -> SharedClock:
    """One reading; nothing is locked."""
    return SharedClock(*tx.execute(_LOOK).one())


def raise_max_seen(tx: Tx, now: datetime) -> None:
    """Note an instant that was believed; the mark is never lowered by it."""
    tx.execute(_RAISE, {"now": now})


def note_anomaly(tx: Tx, anomaly: str) -> bool:
    """Note that a worker doubts the clock, and why; False if the row was locked and nothing is noted."""
    return tx.execute(_DOUBT, {"anomaly": anomaly}).rowcount == 1


def settle(tx: Tx, now: datetime) -> bool:
    """Note that the clock is believed again and says `now`, earlier than the mark or later; False as above."""
    return tx.execute(_SETTLE, {"now": now}).rowcount == 1
