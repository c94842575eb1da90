"""Which worker processes are alive, for fair shares and for people; nothing here decides safety."""

from uuid import UUID

from sqlalchemy import text

from executor.database import Tx

_SEEN = text("""
INSERT INTO worker (worker_id, name, release) VALUES (:id, :name, :release)
ON CONFLICT (worker_id) DO UPDATE SET seen_at = clock_timestamp()
""")
# Seen in the future: before the database's clock was set back. The living are seen anew soon.
_LIVE = text("""
SELECT count(*) FROM worker WHERE stopped_at IS NULL
   AND seen_at BETWEEN clock_timestamp() - make_interval(secs => :ttl) AND clock_timestamp()
""")
_STOPPED = text("UPDATE worker SET stopped_at = clock_timestamp() WHERE worker_id = :id")


def seen(tx: Tx, worker_id: UUID, name: str, release: str) -> None:
    """Say that this worker lives."""
    tx.execute(_SEEN, {"id": worker_id, "name": name, "release": release})


def live(tx: Tx, ttl_seconds: float) -> int:
    """How many workers were seen within `ttl_seconds`."""
    return int(tx.scalar(_LIVE, {"ttl": ttl_seconds}) or 0)


def stopped(tx: Tx, worker_id: UUID) -> None:
    """Say that this worker ends."""
    tx.execute(_STOPPED, {"id": worker_id})
