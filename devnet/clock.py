"""What time blocks carry: the machine's clock with an offset that tests may move. It never goes back.

Blocks made within one second share its timestamp, as on anvil: a chain with a block every 50 ms would otherwise run
twenty times as fast as the clocks of those who test against it.
"""

import time
from dataclasses import dataclass


@dataclass
class Clock:
    """`offset` seconds are added to the wall clock; `next_exact` is the time ordered for the next block alone."""

    offset: int = 0
    next_exact: int | None = None

    def now(self) -> int:
        """The chain's present second."""
        return int(time.time()) + self.offset

    def start_at(self, timestamp: int) -> None:
        """Make this second the present one; time runs on from it."""
        self.offset = timestamp - int(time.time())

    def preview(self, parent: int) -> int:
        """The timestamp a block on top of `parent`'s would get: never earlier, and within one second the same."""
        wanted = self.now() if self.next_exact is None else self.next_exact
        return max(wanted, parent)

    def tick(self, parent: int) -> int:
        """As `preview`, and an ordered time is used up: the clock goes on from it."""
        timestamp = self.preview(parent)
        if self.next_exact is not None:
            self.next_exact = None
            self.start_at(timestamp)
        return timestamp
