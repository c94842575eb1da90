"""An audit as plain text: a short table, what was found, and one last line to look at first."""

from collections.abc import Iterator, Mapping
from typing import Any

from executor.audit.report import AuditReport, Violation

_ROWS_SHOWN = 6


def render(report: AuditReport) -> str:
    """The report as text without colours; it ends with a line that says `0 violations` when it is clean."""
    return "\n".join(_lines(report))


def _lines(report: AuditReport) -> Iterator[str]:
    rows = [
        (name.replace("_", " "), value) for name, value in report.counts.items() if not isinstance(value, dict) or value
    ]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        told = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else f"{value}"
        yield f"{name:<{width}}  {told}"
    for title, lines in (("notice", report.notices), ("not checked", report.not_checked)):
        yield from (f"{title}: {line}" for line in lines)
    for violation in report.violations:
        yield from _violation(violation)
    found = len(report.violations)
    yield (
        f"{report.counts.get('executions', 0)} executions, {report.counts.get('reservations', 0)} nonces,"
        f" {report.counts.get('attempts', 0)} attempts audited in {report.seconds:.1f} s:"
        f" {found} violation{'' if found == 1 else 's'}"
    )


def _violation(violation: Violation) -> Iterator[str]:
    yield f"VIOLATION of {violation.promise} ({violation.kind}): {violation.sentence}."
    shown = [_row(row) for row in violation.rows[:_ROWS_SHOWN]]
    if len(violation.rows) > _ROWS_SHOWN:
        shown.append(f"{len(violation.rows) - _ROWS_SHOWN} more (--json tells all)")
    if shown:
        yield "    rows: " + "; ".join(shown)


def _row(row: Mapping[str, Any]) -> str:
    return f"{row['table']} (" + ", ".join(f"{k} {v}" for k, v in row.items() if k != "table") + ")"
