"""What the devnet asks of an EVM: run one message on a world. Everything around a message is in `transition`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from devnet.codec.blocks import Log
from devnet.codec.transaction import AccessList
from devnet.evm.world import World


@dataclass(frozen=True, slots=True)
class BlockContext:
    """The block a message runs in. Fees in wei per gas, `timestamp` in seconds since 1970."""

    number: int
    timestamp: int
    coinbase: bytes
    prevrandao: bytes
    gas_limit: int
    base_fee: int
    chain_id: int
    block_hash: Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Message:
    """A top-level call, or a creation where `to` is None (`data` is then init code, `created` the new address)."""

    sender: bytes
    to: bytes | None
    value: int
    data: bytes
    gas: int
    gas_price: int
    created: bytes | None = None
    access_list: AccessList = ()


@dataclass(frozen=True, slots=True)
class Execution:
    """How a message ended. `error` is None on success, "execution reverted" for REVERT, else geth's words for the halt.

    `refund` is the raw refund counter; the cap of EIP-3529 is the transition's business.
    """

    gas_left: int
    refund: int = 0
    output: bytes = b""
    logs: tuple[Log, ...] = ()
    destroyed: tuple[bytes, ...] = ()
    error: str | None = None
    reverted: bool = False


class Engine(Protocol):
    """An EVM. It writes to the world through `World.write`, and has undone what a failed message wrote."""

    def execute(self, world: World, block: BlockContext, message: Message) -> Execution:
        """Run a message: move its value, run the code, deposit created code."""
        ...
