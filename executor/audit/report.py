"""What an audit found: counts, violations with the rows involved, notices, and what it could not look at."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

EXAMPLES = 20
"""How many violations of one kind are told with their rows; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: its number in the design (G1 … G10, G2b), one sentence, and the rows that prove it."""

    promise: str
    sentence: str
    rows: Mapping[str, Any]


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
    """Collects while the audit runs. At most `EXAMPLES` violations of one kind keep their rows."""

    counts: Counter[str] = field(default_factory=Counter)
    notices: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    _violations: list[Violation] = field(default_factory=list)
    _found: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, promise: str, sentence: str, row: Mapping[str, Any]) -> None:
        """Note one violation; `sentence` is a format string over the row and the kind of what was found."""
        self._found[promise, sentence] += 1
        if self._found[promise, sentence] <= EXAMPLES:
            told = plain(row)
            self._violations.append(Violation(promise, sentence.format_map(told), told))

    def violations(self) -> list[Violation]:
        """Everything noted, in the order of the promises, with one line for what was only counted."""
        rest = [
            Violation(promise, f"and {found - EXAMPLES} more like this: {sentence}", {"more": found - EXAMPLES})
            for (promise, sentence), found in self._found.items()
            if found > EXAMPLES
        ]
        return sorted([*self._violations, *rest], key=lambda v: _order(v.promise))


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
    return value


def _order(promise: str) -> tuple[int, str]:
    return int(promise.strip("Gb")), promise
