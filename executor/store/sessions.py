"""Whose transactions hold rows of ours, as PostgreSQL tells: what a person must know who waits for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from executor.database import Tx

# Another role's sessions show their age only to members of pg_read_all_stats.
_HOLDERS = text("""
SELECT s.pid, s.application_name, s.state, CAST(extract(epoch FROM clock_timestamp() - s.xact_start) AS float8) AS seconds,
       array_agg(DISTINCT CAST(c.relname AS text)) AS tables
  FROM pg_stat_activity s JOIN pg_locks l ON l.pid = s.pid JOIN pg_class c ON c.oid = l.relation AND c.relkind = 'r'
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname IN (current_schema(), 'signer')
 WHERE s.datname = current_database() AND s.pid <> pg_backend_pid() AND l.granted AND l.locktype = 'relation'
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.mode <> 'AccessShareLock'
   AND s.xact_start < (SELECT clock_timestamp()) - make_interval(secs => :seconds)
 GROUP BY s.pid, s.application_name, s.state, s.xact_start ORDER BY s.xact_start
""")


@dataclass(frozen=True, slots=True)
class Holder:
    """A session whose transaction is `seconds` old and has locked rows or tables of ours."""

    pid: int
    application: str
    state: str
    seconds: float
    tables: Sequence[str]

    @property
    def told(self) -> str:
        """Who it is, in one sentence with what to do."""
        who = f"{self.application or 'a session'} (process {self.pid}, {self.state})"
        tables = ", ".join(self.tables)
        return f"{who} holds rows of {tables} for {self.seconds:.0f} s: end its transaction, or SELECT pg_terminate_backend({self.pid})"


def holders(tx: Tx, seconds: float) -> list[Holder]:
    """The transactions older than `seconds` that hold rows or tables of ours, oldest first."""
    return [Holder(*row) for row in tx.execute(_HOLDERS, {"seconds": seconds})]
