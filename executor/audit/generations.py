"""G6 in the rows: every write names a generation that existed, and no generation writes after a newer one."""

import sys

from executor.audit.reading import Check, Reader
from executor.audit.report import Findings, Kind

_ACKNOWLEDGED = """SELECT 'acknowledged_nonce', token, count(*), min(nonce::text) FROM acknowledged_nonce k
 WHERE account_id = :account GROUP BY token"""
_WRITERS = "\n UNION ALL ".join(
    f"SELECT '{table}' AS written, {column} AS token, count(*) AS found, min({key}) AS example FROM {table}"  # noqa: S608  (the names below)
    f" WHERE account_id = :account AND {column} IS NOT NULL GROUP BY {column}"
    for table, column, key in (
        ("execution", "token", "execution_id"),
        ("intent", "token", "execution_id"),
        ("nonce_reservation", "token", "nonce::text"),
        ("attempt", "token", "nonce::text"),
        ("attempt", "signed_token", "nonce::text"),
        ("attempt", "sent_token", "nonce::text"),
        ("broadcast", "token", "nonce::text"),
        ("receipt", "token", "nonce::text"),
        ("already_paid", "token", "execution_id"),
    )
)
ACCOUNT = (
    Check(
        f"""
        SELECT a.account_id, w.written, w.token, w.found, w.example, a.fence,
               CASE WHEN g.token IS NULL THEN 'unknown-generation' ELSE 'generation-above-mark' END AS fault
          FROM ({_WRITERS} UNION ALL {_ACKNOWLEDGED}) w JOIN account a ON a.account_id = :account
          LEFT JOIN lease_generation g ON (g.account_id, g.token) = (a.account_id, w.token)
         WHERE g.token IS NULL OR w.token > a.fence
        """,  # noqa: S608  (a constant)
        Kind(
            "G6",
            "unknown-generation",
            "{found} rows of {written} of account {account} (as {example}) carry token {token}, which no lease generation ever had: somebody wrote who never held the lease",
            ("account account_id",),
        ),
        Kind(
            "G6",
            "generation-above-mark",
            "{found} rows of {written} of account {account} (as {example}) carry token {token}, above the account's high-water mark {fence}: they were written past hold",
            ("account account_id", "lease_generation account_id token"),
        ),
    ),
    Check(
        """
        SELECT a.account_id, l.token, a.fence, l.holder,
               CASE WHEN l.token < a.fence OR (l.token > 0 AND g.token IS NULL) THEN 'lease-rewound' ELSE 'lease-of-nobody' END AS fault
          FROM account a JOIN lease l ON l.account_id = a.account_id
          LEFT JOIN lease_generation g ON (g.account_id, g.token) = (l.account_id, l.token)
         WHERE a.account_id = :account
           AND (l.token < a.fence OR (l.token > 0 AND g.token IS NULL) OR (l.holder IS NOT NULL AND g.lease_id <> l.lease_id))
        """,
        Kind(
            "G6",
            "lease-rewound",
            "the lease of account {account} stands at token {token}, below the high-water mark {fence} or without a generation: a token may be given out twice",
            ("lease account_id", "account account_id"),
        ),
        Kind(
            "G6",
            "lease-of-nobody",
            "the lease of account {account} is held by {holder} under an id that generation {token} never had: two holders may believe in it",
            ("lease account_id", "lease_generation account_id token"),
        ),
    ),
)
_WRITTEN = """
SELECT account_id, token, min(history_id) AS low, max(history_id) AS high FROM history
 WHERE {range history_id} AND account_id IS NOT NULL AND token IS NOT NULL GROUP BY account_id, token
"""
_GENERATIONS = "SELECT account_id, token, began_after FROM lease_generation ORDER BY account_id, token"
_WROTE = """
SELECT history_id, account_id, token, kind, subject, from_state, to_state, at FROM history
 WHERE account_id = :account AND token = :token AND (history_id <= :begun OR history_id > :ended) ORDER BY history_id LIMIT 21
"""
_KEYS = "SELECT history_id AS key FROM history WHERE history_id % (:every * 10) = 0 ORDER BY history_id"
_ROW = ("history history_id",)
_HISTORY_OF_NOBODY = Kind(
    "G6",
    "history-of-nobody",
    "{kind} {subject} of account {account} was moved by token {token}, which no lease generation ever had",
    _ROW,
)
_STALE_WRITE = Kind(
    "G6",
    "stale-write",
    "generation {token} moved {kind} {subject} of account {account} before it began or after a newer one had: somebody wrote who did not hold the lease",
    _ROW,
)
KINDS = (_HISTORY_OF_NOBODY, _STALE_WRITE)


def check_history(reader: Reader, findings: Findings) -> None:
    """History in the order it was written: each generation of an account wrote after it began and before the next one did.

    Ids of history grow in the order of an account's commits, and each generation noted where it began: no clock is believed.
    A generation from before that was noted is bounded by what newer ones wrote.
    """
    written: dict[tuple[int, int], tuple[int, int]] = {}
    for part in reader.ranges(_KEYS, 0):
        with reader.slice() as cut:
            for row in cut.rows(_WRITTEN, part):
                low, high = written.get((row["account_id"], row["token"]), (sys.maxsize, 0))
                written[row["account_id"], row["token"]] = min(low, row["low"]), max(high, row["high"])
    with reader.slice() as cut:  # after the history, so that each writer of it is among them
        began = {(row["account_id"], row["token"]): row["began_after"] for row in cut.rows(_GENERATIONS)}
    ended: dict[int, int] = {}  # by account, where the newer generation began
    for account, token in sorted({*began, *written}, reverse=True):
        low, high = written.get((account, token), (sys.maxsize, 0))
        unknown = (account, token) not in began
        begun = sys.maxsize if unknown else began[account, token] or 0
        last = ended.get(account, sys.maxsize)
        if high and (low <= begun or high > last):
            with reader.slice() as cut:
                for row in cut.rows(_WROTE, account=account, token=token, begun=begun, ended=last):
                    findings.add(_HISTORY_OF_NOBODY if unknown else _STALE_WRITE, row)
        if not unknown:
            ended[account] = min(last, low - 1 if began[account, token] is None else begun)
