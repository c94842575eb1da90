"""What happened, in order, for those who follow the chain: filters today, subscriptions when there are any."""

from dataclasses import dataclass
from typing import Literal

from devnet.codec.blocks import Block
from devnet.codec.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Notice:
    """A block became the head, or ceased to be part of the chain."""

    kind: Literal["block", "orphan"]
    block: Block


@dataclass(frozen=True, slots=True)
class Arrival:
    """A transaction entered the pool as executable."""

    tx: Transaction


class Feed(list[Notice | Arrival]):
    """Append-only; a follower remembers how far it has read."""
