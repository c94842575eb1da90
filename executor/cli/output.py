"""What reaches the terminal: plain lines, tables, JSON, progress. Text from outside is cleaned of control characters."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Any

import typer


def clean(text: str) -> str:
    """`text` without what could move the cursor or colour the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else "�" for char in text)


def say(text: str = "") -> None:
    """A line on standard output."""
    typer.echo(clean(text))


def complain(text: str) -> None:
    """A line on standard error."""
    typer.echo(clean(text), err=True)


def say_json(value: Any) -> None:
    """One JSON document. Bytes are 0x…, instants ISO 8601, and keys that end in _wei hold text: wei overflows readers."""
    typer.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def say_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table with one line per row; nothing is wrapped or cut where the output is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean("-" if cell is None else str(cell))) for cell in row))
    width = None if sys.stdout.isatty() else 1_000
    console = Console(file=sys.stdout, width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")))


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on the terminal that something is going on; nothing where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    # Not Rich's status: it takes standard output over, and what is piped into a file would land on the terminal.
    spinner = Spinner("dots", text=Text(clean(what)))
    with Live(spinner, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False):
        yield


def instant(at: datetime | None) -> str:
    """An instant in UTC to the second, "-" for none."""
    return "-" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def count(number: int, thing: str) -> str:
    """A number with its noun: 1 slot, 2 slots."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _plain(value: Any, key: str = "") -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {name: _plain(item, str(name)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, key) for item in value]
    if isinstance(value, (bytes, memoryview)):
        return "0x" + bytes(value).hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, int) and key.endswith("_wei"):
        return str(value)
    return value
