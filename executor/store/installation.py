"""Whose database this is, and whether its settings can keep the promises."""

from dataclasses import dataclass

from sqlalchemy import text

from executor.database import Tx

_FACTS = text("""
SELECT service, pg_is_in_recovery() AS in_recovery, current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit, current_setting('full_page_writes') AS full_page_writes,
       epoch_min, epoch_max
  FROM installation
""")


@dataclass(frozen=True, slots=True)
class Installation:
    """The installation row beside what the server says of itself."""

    service: str | None
    in_recovery: bool
    fsync: str
    synchronous_commit: str
    full_page_writes: str
    epoch_min: int
    epoch_max: int


def read(tx: Tx) -> Installation:
    """The installation as it stands."""
    return Installation(*tx.execute(_FACTS).one())
