"""What the devnet asks of an EVM: run one message on a world. Everything around a message is in `transition`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from devnet.codec.blocks import Log
from devnet.codec.fields import AccessList
from devnet.evm.forks import DEFAULT, Fork
from devnet.evm.tracing import Watch
from devnet.evm.world import World


@dataclass(frozen=True, slots=True)
class BlockContext:
    """The block a message runs in. Fees in wei per gas, `timestamp` in seconds since 1970.

    `fork` gives the rules. `base_fee` is 0 before London; `difficulty` counts before Paris only, `prevrandao` from there on.
    `precompiles` is None for those of the fork; a call with overrides says which address runs the code of which.
    """

    number: int
    timestamp: int
    coinbase: bytes
    prevrandao: bytes
    gas_limit: int
    base_fee: int
    chain_id: int
    block_hash: Callable[[int], bytes]
    fork: Fork = DEFAULT
    blob_base_fee: int = 1
    excess_blob_gas: int = 0
    difficulty: int = 0
    precompiles: Mapping[bytes, bytes] | None = None

    def is_precompile(self, address: bytes) -> bool:
        """Whether the address is built into the EVM."""
        return address in (self.fork.precompiles if self.precompiles is None else self.precompiles)


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
    blob_hashes: tuple[bytes, ...] = ()


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

    def execute(self, world: World, block: BlockContext, message: Message, watch: Watch | None = None) -> Execution:
        """Run a message: move its value, run the code, deposit created code.

        Raises ExecutionAborted where the watch's deadline passes; the world is then to be reverted by the caller.
        """
        ...
