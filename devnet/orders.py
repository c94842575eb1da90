"""What a tester has ordered of the blocks to come: none, empty ones, small ones, at scripted base fees, without some."""

from dataclasses import dataclass, field, replace
from typing import Literal

from devnet.codec.transaction import Transaction

Order = Literal["fees", "fifo"]


@dataclass(frozen=True, slots=True)
class Hold:
    """Keeps transactions out of blocks up to number `last`, or before the second `until` where that is given."""

    last: int = 0
    until: int | None = None

    def covers(self, number: int, timestamp: int) -> bool:
        """Whether it still applies to a block."""
        return number <= self.last if self.until is None else timestamp < self.until


@dataclass
class Orders:
    """Standing orders. `held` is keyed by transaction hash or sender; `base_fees` (wei) are those of the next blocks."""

    paused: bool = False
    empty: int = 0
    limit: int | None = None
    order: Order = "fees"
    held: dict[bytes, Hold] = field(default_factory=dict)
    base_fees: list[int] = field(default_factory=list)

    def holds(self, tx: Transaction, number: int, timestamp: int) -> bool:
        """Whether this transaction must stay out of a block of that height and time."""
        if not self.held:
            return False
        return any(
            hold is not None and hold.covers(number, timestamp)
            for hold in (self.held.get(tx.hash), self.held.get(tx.sender))
        )

    def room(self) -> int | None:
        """How many transactions the next block may have; None for as many as fit."""
        return 0 if self.empty else self.limit

    def block_made(self, number: int, timestamp: int) -> None:
        """Use up what was meant for the block just made."""
        self.empty = max(self.empty - 1, 0)
        del self.base_fees[:1]
        self.held = {key: hold for key, hold in self.held.items() if hold.covers(number + 1, timestamp)}

    def copy(self) -> "Orders":
        """An independent copy, for snapshots."""
        return replace(self, held=dict(self.held), base_fees=list(self.base_fees))
