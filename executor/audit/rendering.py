"""An audit as plain text: a short table, what was found, and one last line to look at first."""

from collections.abc import Iterator

from executor.audit.report import AuditReport


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
    yield from (f"VIOLATION of {violation.promise}: {violation.sentence}" for violation in report.violations)
    found = len(report.violations)
    yield (
        f"{report.counts.get('executions', 0)} executions, {report.counts.get('reservations', 0)} nonces,"
        f" {report.counts.get('attempts', 0)} attempts audited in {report.seconds:.1f} s:"
        f" {found} violation{'' if found == 1 else 's'}"
    )
