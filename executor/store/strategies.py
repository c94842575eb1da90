"""The strategy rows: what is due, how far the slots have been looked at (G1)."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import text

from executor.database import Tx, expect
from executor.records import DueStrategy

# A strategy whose account's row a stranger has locked is passed over: its executions' foreign key would wait, and all the
# others with it [B97].
_DUE = text("""
SELECT s.name, s.account_id, s.schedule, s.every_seconds, s.timezone, s.misfire, s.overlap, s.start_deadline_seconds, s.revision,
       s.input, s.high_water_mark, s.tzdata_version, CAST(:now AS timestamptz) AS now
  FROM strategy s JOIN account a USING (account_id)
 WHERE s.next_due_at <= :now AND s.paused_at IS NULL AND s.retired_at IS NULL
   AND NOT is_moved(a.timeline, a.system_identifier)
 ORDER BY s.next_due_at LIMIT :most FOR NO KEY UPDATE OF s SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED
""")
_ADVANCE = text("""
UPDATE strategy SET high_water_mark = :mark, next_due_at = :next, tzdata_version = :tzdata
 WHERE name = :name AND high_water_mark <= :mark
""")
_NEXT = text("""
WITH here AS MATERIALIZED (SELECT current_timeline() AS timeline, current_system_identifier() AS system_identifier)
SELECT CAST(extract(epoch FROM min(s.next_due_at) - clock_timestamp()) AS float8)
  FROM here JOIN account a USING (timeline, system_identifier) JOIN strategy s USING (account_id)
 WHERE s.paused_at IS NULL AND s.retired_at IS NULL
""")
_REVISIONS = text("SELECT name, revision FROM strategy WHERE retired_at IS NULL")


def lock_due(tx: Tx, now: datetime, most: int) -> list[DueStrategy]:
    """The strategies with slots to look at when the database's clock said `now`, locked until the transaction ends; what another worker has locked is left to it."""
    return [DueStrategy(*row) for row in tx.execute(_DUE, {"now": now, "most": most})]


def advance(tx: Tx, name: str, mark: datetime, next_due: datetime | None, tzdata_version: str) -> None:
    """Raise the high-water mark: slots at or below it are never looked at again."""
    changed = tx.execute(_ADVANCE, {"name": name, "mark": mark, "next": next_due, "tzdata": tzdata_version}).rowcount
    expect(changed, 1, f"high-water mark of {name}")


def seconds_to_next(tx: Tx) -> float | None:
    """Seconds until the next slot of any strategy, negative when one is due, None when nothing is scheduled."""
    found = tx.scalar(_NEXT)
    return None if found is None else float(found)


def revisions(tx: Tx) -> Mapping[str, str]:
    """The registered revision of every strategy."""
    return {row.name: row.revision for row in tx.execute(_REVISIONS)}
