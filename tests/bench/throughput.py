"""Executions per second of one account and one worker, from the first trigger to the last accepted broadcast."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from executor.database import Database
from executor.store import executions
from tests.bench.ground import Ground, Site, until

_BATCH = 250
_SPAN = """
SELECT extract(epoch FROM max(b.first_at) - min(e.created_at))
  FROM execution e JOIN nonce_reservation r USING (execution_id) JOIN broadcast b ON (b.account_id, b.nonce) = (r.account_id, r.nonce)
 WHERE e.trigger_key LIKE %s AND b.verdict = 'accepted'
"""
_ACCEPTED = "SELECT count(*) FROM broadcast WHERE verdict = 'accepted'"


@dataclass(frozen=True, slots=True)
class Throughput:
    """Executions per second, and seconds by stage over all executions ever run on this site."""

    per_second: float
    stages: dict[str, float]


def trigger(database: Database, keys: list[str]) -> None:
    """Insert PENDING executions of the strategy `pay`, and wake the workers."""
    for at in range(0, len(keys), _BATCH):
        with database.transaction() as tx:
            executions.insert(tx, [_row(key) for key in keys[at : at + _BATCH]])
            tx.exec_driver_sql("NOTIFY fenced")


def _row(key: str) -> dict[str, Any]:
    row = {"execution_id": f"pay/id/{key}", "strategy": "pay", "trigger_key": key, "input": None, "state": "PENDING"}
    return row | {"due_at": datetime.now(UTC)}


class Line:
    """One worker on one wallet, asked for rounds of executions."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._database = Database(site.url, "bench", pool_size=1)
        self._worker = site.start("worker")
        self._asked = 0

    def round(self, name: str, count: int) -> float:
        """Executions per second of one round of `count`."""
        self._asked += count
        trigger(self._database, [f"{name}-{at}" for at in range(count)])
        with self.site.connect() as connection:
            # Seldom, since looking costs the database time too; the figure comes from the rows' own timestamps.
            until(lambda: connection.execute(_ACCEPTED).fetchone() == (self._asked,), 60, pause=0.1)
            row = connection.execute(_SPAN, (f"{name}-%",)).fetchone()
        return count / float(row[0] if row else 0)

    def settle(self) -> None:
        """Wait until everything is mined and ended."""
        with self.site.connect() as connection:
            left = "SELECT count(*) FROM execution WHERE state IN ('PENDING', 'PLANNED', 'RUNNING')"
            until(lambda: connection.execute(left).fetchone() == (0,), 60, pause=0.1)

    def close(self) -> dict[str, float]:
        """End the worker; seconds by stage."""
        self._database.close()
        return self.site.stop()["worker"]


@contextmanager
def line(ground: Ground, account: int, to: bytes) -> Iterator[Line]:
    """A site of its own with a warm worker."""
    with ground.site("throughput", account, to) as site:
        yield Line(site)
