"""From kill -9 of the holder to the other worker's next broadcast, while there is always something to send."""

import random
import threading
import time

from executor.database import Database
from tests.bench.ground import Ground, until
from tests.bench.throughput import trigger

_HOLDER = "SELECT holder, token FROM lease WHERE expires_at > clock_timestamp()"
_NEXT = "SELECT extract(epoch FROM min(first_at) - %s) FROM broadcast WHERE token > %s AND verdict = 'accepted'"


def seconds(ground: Ground, account: int, to: bytes, lease: float, rounds: int, rng: random.Random) -> list[float]:
    """One time per round: kill the holder at a random moment, wait for the other's first accepted broadcast."""
    found = []
    with ground.site("takeover", account, to, lease=lease) as site:
        workers = {name: site.start(name) for name in ("worker-0", "worker-1")}
        stop = threading.Event()
        feeder = threading.Thread(target=_feed, args=(site.url, stop))
        feeder.start()
        try:
            with site.connect() as connection:
                for at in range(rounds):
                    until(lambda: connection.execute(_HOLDER).fetchone(), 30)
                    time.sleep(0.5 + rng.uniform(0, lease / 3))
                    name, token = connection.execute(_HOLDER).fetchone() or ("", 0)
                    (when,) = connection.execute("SELECT clock_timestamp()").fetchone() or (None,)
                    workers.pop(name).child.kill()
                    row = until(lambda: _seen(connection.execute(_NEXT, (when, token)).fetchone()), 60)  # noqa: B023
                    found.append(float(row))
                    if at < rounds - 1:
                        workers[f"worker-{at + 2}"] = site.start(f"worker-{at + 2}")
        finally:
            stop.set()
            feeder.join()
    return found


def _seen(row: tuple[object, ...] | None) -> object:
    return row[0] if row else None


def _feed(url: str, stop: threading.Event) -> None:
    database, number = Database(url, "bench", pool_size=1), 0
    while not stop.wait(0.05):
        trigger(database, [f"fed-{number}"])
        number += 1
    database.close()
