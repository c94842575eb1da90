"""What a debug_trace method tells a tracer besides the hooks, and what all tracers have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from devnet.errors import InvalidParams
from devnet.evm.engine import BlockContext
from devnet.evm.tracing import Tracer
from devnet.evm.world import World

Json: TypeAlias = object
Options: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Subject:
    """The transaction or call that is traced. `to` is the new contract's address for a creation, `gas` its limit."""

    world: World
    block: BlockContext
    sender: bytes
    to: bytes
    gas: int
    first_log: int = 0
    authorities: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended, its refund taken off `gas_used`."""

    gas_used: int
    output: bytes
    error: str | None
    reverted: bool


class ResultTracer(Tracer, Protocol):
    """A tracer with an answer."""

    def result(self, ending: Ending) -> Json:
        """The answer of the debug_trace method. The world still is as the transaction left it."""


def option(options: Options, name: str) -> bool:
    """A switch among a tracer's options, off where it is missing. Raises InvalidParams."""
    value = options.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidParams(f"invalid argument 1: {name} is not a boolean")
    return value
