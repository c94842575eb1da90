"""What the demo prints: a story with the time in front, what is being waited for, a table."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from executor.errors import NotFine

T = TypeVar("T")
_POLL_SECONDS = 0.05
_QUIET_SECONDS = 1.5
_PIPE_WIDTH = 110


class Teller:
    """Writes to standard output. In a terminal a spinner says what is awaited; elsewhere a plain line does."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, width=_PIPE_WIDTH, no_color=True)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the demo began."""
        return time.monotonic() - self._began

    def say(self, text: str, style: str = "") -> None:
        """One paragraph of the story."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(justify="right", width=6, style="dim")
        grid.add_column(ratio=1, overflow="fold")
        grid.add_row(f"{self.seconds:.1f} s", Text(text, style=style))
        self._print(grid)

    def plain(self, text: str = "", style: str = "") -> None:
        """Lines without a time."""
        self._print(Text(text, style=style))

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table, one line per row."""
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")  # 80 columns are enough
        for heading in headings:
            table.add_column(heading, no_wrap=True, justify="right" if heading in ("nonce", "block") else "left")
        for row in rows:
            table.add_row(*row)
        self._print(table)

    def _print(self, what: RenderableType) -> None:
        if self._console.is_terminal:
            self._console.print(what)
            return
        with self._console.capture() as captured:
            self._console.print(what)
        lines = captured.get().splitlines()
        self._console.out("\n".join(line.rstrip() for line in lines))

    def wait(self, what: str, look: Callable[[], T | None], seconds: float, watch: Callable[[], None]) -> T:
        """Look again and again until what is seen is something (not None, False or empty); `watch` may raise in between.

        Raises:
            NotFine: it did not come in time.
        """
        deadline = time.monotonic() + seconds
        loud = time.monotonic() + _QUIET_SECONDS
        with self._console.status(Text(f"waiting for {what}", style="dim")):
            while True:
                found = look()
                if found:
                    return found
                watch()
                now = time.monotonic()
                if now > deadline:
                    raise NotFine(f"waited {seconds:.0f} s in vain for {what}.")
                if now > loud and not self._console.is_terminal:
                    self._console.print(f"        … waiting for {what}", soft_wrap=True)
                    loud = float("inf")
                time.sleep(_POLL_SECONDS)
