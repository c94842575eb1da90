"""Look-alikes: the same call in different executions within 30 days. Often meant, worth a look when it is not."""

from executor.audit.reading import Slice
from executor.audit.report import Findings

_SHOWN = 20
_LOOK_ALIKES = """
WITH sent AS (
  SELECT r.intent_digest, r.execution_id, r.reserved_at,
         lag(r.reserved_at) OVER w AS before, lag(r.execution_id) OVER w AS earlier
    FROM nonce_reservation r WHERE r.effect IS NOT FALSE AND r.execution_id IS NOT NULL
  WINDOW w AS (PARTITION BY r.intent_digest ORDER BY r.reserved_at, r.execution_id))
SELECT intent_digest, count(*) AS found, min(earlier) AS one, max(execution_id) AS other FROM sent
 WHERE earlier <> execution_id AND reserved_at - before <= interval '30 days' GROUP BY intent_digest ORDER BY found DESC, intent_digest
"""


def look_alikes(cut: Slice, findings: Findings) -> None:
    """Note calls with an equal digest in different executions, those repeated most first."""
    rows = cut.rows(_LOOK_ALIKES)
    findings.notices += [
        f"look-alike: the call 0x{bytes(row['intent_digest']).hex()[:16]}… was repeated {row['found']} times within 30 days,"
        f" in {row['one']} and {row['other']} for example."
        for row in rows[:_SHOWN]
    ]
    if len(rows) > _SHOWN:
        findings.notices.append(f"look-alike: {len(rows) - _SHOWN} more calls were repeated within 30 days.")
