"""What an audit found: counts, violations with the rows involved, notices, and what it could not look at."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

EXAMPLES = 20
"""How many violations of one kind are told with their rows; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One way in which a promise can be found broken.

    `name` is the same in every release. `sentence` is a format string over what was found: what is wrong, and what it
    means. Each of `rows` is a table and the columns of its key, as "intent execution_id step=wanted_step" where the
    value was found under another name; a value that is a list stands for as many rows.
    """

    promise: str
    name: str
    sentence: str
    rows: tuple[str, ...]

    def involved(self, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Table and key of every row that is involved."""
        for told in self.rows:
            table, *columns = told.split()
            key = {column.partition("=")[0]: found[column.partition("=")[2] or column] for column in columns}
            lists = [value for value in key.values() if isinstance(value, list)]
            if not lists:
                yield {"table": table, **key}
            for at in range(len(lists[0]) if lists else 0):
                yield {"table": table, **{k: v[at] if isinstance(v, list) else v for k, v in key.items()}}


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: its number in the design (G1 … G10, G2b), the kind, one sentence, the rows involved by table
    and key, and everything that was found out about them."""

    promise: str
    kind: str
    sentence: str
    rows: list[dict[str, Any]]
    found: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The whole finding. `seconds` is the wall time it took.

    `violations` is empty if and only if everything that was looked at keeps its promise; `not_checked` says what was not
    looked at, `notices` what a person may want to see.
    """

    counts: Mapping[str, Any]
    violations: list[Violation]
    notices: list[str]
    not_checked: list[str]
    seconds: float

    @property
    def clean(self) -> bool:
        """Whether no promise was found broken."""
        return not self.violations

    def to_json(self) -> str:
        """The report as a JSON document: bytes in hexadecimal, times in ISO 8601."""
        return json.dumps(asdict(self), indent=2, default=str)


@dataclass(slots=True)
class Findings:
    """Collects while the audit runs. At most `EXAMPLES` violations of one kind keep their rows.

    `accounts` are the names of accounts by id, for the sentences.
    """

    accounts: Mapping[int, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    notices: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    _violations: list[Violation] = field(default_factory=list)
    _found: Counter[Kind] = field(default_factory=Counter)

    def add(self, kind: Kind, row: Mapping[str, Any]) -> None:
        """Note one violation, from what was found."""
        self._found[kind] += 1
        if self._found[kind] <= EXAMPLES:
            found = plain(row)
            account = found.get("account_id")
            if isinstance(account, int):
                found.setdefault("account", self.accounts.get(account, str(account)))
            told = kind.sentence.format_map(found)
            self._violations.append(Violation(kind.promise, kind.name, told, list(kind.involved(found)), found))

    def merge(self, other: "Findings") -> None:
        """Take over what was collected elsewhere."""
        self.counts.update(other.counts)
        self.notices += other.notices
        self.not_checked += other.not_checked
        self._found.update(other._found)  # noqa: SLF001  (one of us)
        told = Counter(violation.kind for violation in self._violations)
        for violation in other._violations:  # noqa: SLF001  (one of us)
            told[violation.kind] += 1
            if told[violation.kind] <= EXAMPLES:
                self._violations.append(violation)

    def violations(self) -> list[Violation]:
        """Everything noted, in the order of the promises, with one line for what was only counted."""
        rest = [
            Violation(
                kind.promise,
                kind.name,
                f"and {found - EXAMPLES} more of the kind {kind.name}",
                [],
                {"more": found - EXAMPLES},
            )
            for kind, found in self._found.items()
            if found > EXAMPLES
        ]
        return sorted([*self._violations, *rest], key=lambda v: (_order(v.promise), v.kind, "more" in v.found))


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON values: bytes in hexadecimal, exact numbers, times in ISO 8601."""
    return {key: _plain(value) for key, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return "0x" + bytes(value).hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _order(promise: str) -> tuple[int, str]:
    return int(promise.strip("Gb")), promise
