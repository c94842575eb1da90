"""G6 in the rows: every write names a generation that existed, and no generation writes after a newer one began.

Before and after are numbers of the history, since the database's clock may have been set back; instants decide only for
generations that noted no number.
"""

from executor.audit.reading import Check, Reader
from executor.audit.report import Findings

_WRITERS = "\n UNION ALL ".join(
    f"SELECT '{table}' AS written, {column} AS token, count(*) AS found FROM {table} WHERE account_id = :account"  # noqa: S608  (the names below)
    f" AND {column} IS NOT NULL GROUP BY {column}"
    for table, column in (
        ("execution", "token"),
        ("intent", "token"),
        ("nonce_reservation", "token"),
        ("attempt", "token"),
        ("attempt", "signed_token"),
        ("attempt", "sent_token"),
        ("broadcast", "token"),
        ("receipt", "token"),
        ("already_paid", "token"),
    )
)
ACCOUNT = (
    Check(
        "G6",
        "{found} rows of {written} of account {account} carry token {token}, {why}",
        f"""
        SELECT a.name AS account, w.written, w.token, w.found,
               CASE WHEN g.token IS NULL THEN 'which no lease generation ever had'
                    ELSE 'above the high-water mark ' || a.fence || ' of the account' END AS why
          FROM ({_WRITERS}) w JOIN account a ON a.account_id = :account
          LEFT JOIN lease_generation g ON (g.account_id, g.token) = (a.account_id, w.token)
         WHERE g.token IS NULL OR w.token > a.fence
        """,  # noqa: S608  (a constant)
    ),
    Check(
        "G6",
        "generation {token} of account {account} began at {at} (history {began_after}), "
        "not after generation {before} at {before_at} (history {before_after})",
        """
        SELECT a.name AS account, token, at, began_after, before, before_at, before_after FROM (
          SELECT account_id, token, at, began_after, lag(token) OVER w AS before, lag(at) OVER w AS before_at, lag(began_after) OVER w AS before_after
            FROM lease_generation WHERE account_id = :account WINDOW w AS (ORDER BY token)) g JOIN account a USING (account_id)
         WHERE began_after < before_after OR (coalesce(began_after, before_after) IS NULL AND at <= before_at)
            OR (began_after IS NULL AND before_after IS NOT NULL)
        """,
    ),
    Check(
        "G6",
        "the lease of account {account} stands at token {token}, below the account's high-water mark {fence} or without a generation",
        """
        SELECT a.name AS account, l.token, a.fence FROM account a JOIN lease l USING (account_id)
          LEFT JOIN lease_generation g ON (g.account_id, g.token) = (l.account_id, l.token)
         WHERE a.account_id = :account AND (l.token < a.fence OR (l.token > 0 AND g.token IS NULL))
        """,
    ),
)
_STALE = """
WITH generation AS (
  SELECT account_id, token, began_after, lead(at) OVER w AS ended, lead(began_after) OVER w AS ended_after
    FROM lease_generation WINDOW w AS (PARTITION BY account_id ORDER BY token)),
written AS (
  SELECT h.history_id, h.account_id, h.token, h.kind, h.subject, h.from_state, h.to_state, h.at,
         max(h.token) OVER (PARTITION BY h.account_id ORDER BY h.history_id) AS highest
    FROM history h WHERE {range h.history_id} AND h.token IS NOT NULL AND h.account_id IS NOT NULL)
SELECT w.history_id, w.account_id, w.token, w.kind, w.subject, w.from_state, w.to_state, w.at, w.highest, g.began_after, g.ended, g.ended_after,
       g.token IS NULL AS unknown FROM written w LEFT JOIN generation g USING (account_id, token)
 WHERE g.token IS NULL OR w.token < w.highest OR w.history_id > g.ended_after OR w.history_id <= g.began_after
    OR (g.ended_after IS NULL AND w.at > g.ended)
"""
_HIGHEST = """
SELECT account_id, max(token) AS highest FROM history
 WHERE {range history_id} AND token IS NOT NULL AND account_id IS NOT NULL GROUP BY account_id
"""
_LOWEST = """
SELECT account_id, history_id, token, kind, subject FROM history
 WHERE {range history_id} AND account_id = :account AND token < :highest ORDER BY history_id LIMIT 20
"""
_KEYS = "SELECT history_id AS key FROM history WHERE history_id % (:every * 10) = 0 ORDER BY history_id"
_BEFORE = "before its generation had begun"
_AFTER = "after a newer generation had begun"
_SENTENCE = "token {token} wrote {kind} {subject} of account {account_id} {why} (history {history_id})"


def check_history(reader: Reader, findings: Findings) -> None:
    """History in the order it was written: per account the token never falls, and no generation outlives its end."""
    highest: dict[int, int] = {}
    for part in reader.ranges(_KEYS, 0):
        told: set[int] = set()
        with reader.slice() as cut:
            for row in cut.rows(_STALE, part):
                told.add(row["history_id"])
                early = row["began_after"] is not None and row["history_id"] <= row["began_after"]
                why = "and no lease generation ever had it" if row["unknown"] else _BEFORE if early else _AFTER
                findings.add("G6", _SENTENCE, {**row, "why": why})
            for row in cut.rows(_HIGHEST, part):
                account, mark = row["account_id"], highest.get(row["account_id"], 0)
                stale = cut.rows(_LOWEST, part, account=account, highest=mark) if mark else []
                for written in stale:
                    if written["history_id"] not in told:
                        findings.add("G6", _SENTENCE, {**written, "why": _AFTER})
                highest[account] = max(mark, row["highest"])
