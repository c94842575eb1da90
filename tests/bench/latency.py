"""From the instant a slot is due to the node's acceptance, on an idle system: every second, one payment."""

import statistics
import time

from tests.bench.ground import Ground, until

_LATENCIES = """
SELECT extract(epoch FROM b.first_at - e.due_at) * 1000
  FROM execution e JOIN nonce_reservation r USING (execution_id) JOIN broadcast b ON (b.account_id, b.nonce) = (r.account_id, r.nonce)
 WHERE b.verdict = 'accepted' ORDER BY e.due_at
"""


def milliseconds(ground: Ground, account: int, to: bytes, slots: int) -> list[float]:
    """One latency per slot, the first two left out: a worker has to get warm."""
    with ground.site("latency", account, to, every="1s") as site:
        site.start("worker")
        with site.connect() as connection:
            time.sleep(slots)
            rows = until(lambda: _enough(connection.execute(_LATENCIES).fetchall(), slots + 2), 30)
    return [float(row[0]) for row in rows][2:]


def _enough(rows: list[tuple[object, ...]], wanted: int) -> list[tuple[object, ...]] | None:
    return rows if len(rows) >= wanted else None


def percentile(values: list[float], percent: int) -> float:
    """The percentile by the nearest rank, so that the worst of a few values is not made up."""
    ordered = sorted(values)
    return statistics.median(ordered) if percent == 50 else ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
