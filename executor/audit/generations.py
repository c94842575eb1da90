"""G6 in the rows: every write names a generation that existed, and no generation writes after a newer one."""

import itertools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from executor.audit.reading import Check, Reader
from executor.audit.report import Findings, Kind

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
          FROM ({_WRITERS}) w JOIN account a ON a.account_id = :account
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
# One group for each writer in every thousand rows, so that nothing needs to be sorted.
_WRITTEN = """
SELECT history_id / 1000 AS place, account_id, token, min(history_id) AS low, max(history_id) AS high, min(at) AS first, max(at) AS last
  FROM history WHERE {range history_id} AND account_id IS NOT NULL AND token IS NOT NULL GROUP BY 1, 2, 3
"""
_GENERATIONS = "SELECT account_id, token, at FROM lease_generation ORDER BY account_id, token"
_NOW = "SELECT clock_timestamp() AS now"
_WROTE = """
SELECT history_id, account_id, token, kind, subject, from_state, to_state, at FROM history
 WHERE account_id = :account AND token = :token AND (history_id > :after OR at > :ended) ORDER BY history_id LIMIT 21
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
    "generation {token} moved {kind} {subject} of account {account} after a newer generation had begun: a passed holder wrote",
    _ROW,
)
KINDS = (_HISTORY_OF_NOBODY, _STALE_WRITE)


_STEP = timedelta(seconds=1)
"""How far times of different connections may lie apart while the clock runs as it should."""


@dataclass(slots=True)
class _Writer:
    """What one generation of one account wrote: between which ids of history, from when until when."""

    low: int
    high: int
    first: datetime
    last: datetime

    def widen(self, row: Mapping[str, Any]) -> None:
        """Take in what it wrote elsewhere."""
        self.low, self.high = min(self.low, row["low"]), max(self.high, row["high"])
        self.first, self.last = min(self.first, row["first"]), max(self.last, row["last"])


def check_history(reader: Reader, findings: Findings) -> None:
    """History in the order it was written: per account the token never falls, and no generation outlives its end.

    Ids of history grow in the order of commits of an account. Between the beginning of a generation and its first write
    only times can show a stale writer, so they are compared too, unless the database's clock went back.
    """
    with reader.slice() as cut:
        began = {(row["account_id"], row["token"]): row["at"] for row in cut.rows(_GENERATIONS)}
    writers: dict[tuple[int, int], _Writer] = {}
    fell = _falls(began)
    latest: datetime | None = None
    for part in reader.ranges(_KEYS, 0):
        with reader.slice() as cut:
            rows = sorted(cut.rows(_WRITTEN, part), key=lambda row: row["place"])
            now = cut.row(_NOW)["now"]
        for _, group in groupby(rows, key=lambda row: row["place"]):
            here = list(group)
            fell = fell or (latest is not None and min(row["first"] for row in here) < latest - _STEP)
            latest = max(row["last"] for row in here)
            fell = fell or latest > now + _STEP
            for row in here:
                one = _Writer(row["low"], row["high"], row["first"], row["last"])
                writers.setdefault((row["account_id"], row["token"]), one).widen(row)
    fell = fell or any(
        before[0] == after[0]
        and writers[after].low > writers[before].high
        and writers[after].first < writers[before].last
        for before, after in itertools.pairwise(sorted(writers))
    )
    if fell:
        findings.notices.append("the database's clock went back at some time: times in the rows prove no order.")
        findings.not_checked.append(
            "G6: a passed holder that wrote between the beginning and the first write of the next one; only times could show it."
        )
    _judge(reader, began, writers, findings, trusted=not fell)


def _falls(began: Mapping[tuple[int, int], datetime]) -> bool:
    """Whether a later generation of an account began earlier."""
    return any(
        before[0] == after[0] and began[after] < began[before] for before, after in itertools.pairwise(sorted(began))
    )


def _judge(
    reader: Reader,
    began: Mapping[tuple[int, int], datetime],
    writers: Mapping[tuple[int, int], _Writer],
    findings: Findings,
    *,
    trusted: bool,
) -> None:
    following = {before: after for before, after in itertools.pairwise(sorted(began)) if before[0] == after[0]}
    never = datetime.max.replace(tzinfo=UTC)
    newer: dict[int, int] = {}  # by account, the lowest id that a newer generation wrote
    for (account, token), one in sorted(writers.items(), reverse=True):
        unknown = (account, token) not in began
        after = newer.get(account, sys.maxsize)
        ended = began[following[account, token]] if trusted and (account, token) in following else never
        if unknown or one.high > after or one.last > ended:
            wanted: dict[str, Any] = {"after": 0 if unknown else after, "ended": ended}
            with reader.slice() as cut:
                for row in cut.rows(_WROTE, account=account, token=token, **wanted):
                    findings.add(_HISTORY_OF_NOBODY if unknown else _STALE_WRITE, row)
        if not unknown:
            newer[account] = min(after, one.low)
