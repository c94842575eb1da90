"""Who may look on while code runs, and how long it may run. An engine without a watch pays nothing for it.

The hooks are those of geth's core/tracing: frames are entered and left, opcodes are stepped through, logs are emitted.
What tracers make of them is in `tracers`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Final, Protocol

CALL: Final = "CALL"
CREATE: Final = "CREATE"
SELFDESTRUCT: Final = "SELFDESTRUCT"


class ExecutionAborted(Exception):
    """A message ran past the deadline of its watch. The world holds half of what it did: revert to a mark."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A frame begins: a call, a creation (`data` is init code), or a SELFDESTRUCT that moves `value` wei to `to`.

    `kind` is the opcode's name. `value` is None for STATICCALL, and the caller's own for DELEGATECALL, as geth has it.
    """

    kind: str
    sender: bytes
    to: bytes
    data: bytes
    gas: int
    value: int | None


@dataclass(frozen=True, slots=True)
class Exit:
    """A frame ends. `error` is None on success, else geth's words; `gas_used` includes what frames within it used."""

    gas_used: int
    output: bytes = b""
    error: str | None = None
    reverted: bool = False


@dataclass(slots=True)
class Step:
    """One opcode about to run in the frame of `address`. `depth` is 1 for the outermost frame, `refund` the whole message's.

    `stack` has its top last; `memory` is as it was before the opcode. Both live on: copy what is to be kept.
    `cost` and `error` are filled in once the opcode has run, `error` only where it could not be paid or lacked operands.
    """

    pc: int
    opcode: int
    gas: int
    depth: int
    address: bytes
    stack: Sequence[int | bytes]
    memory: bytes | bytearray
    return_data: bytes
    refund: int
    cost: int = 0
    error: str | None = None

    def operand(self, at: int) -> int:
        """An operand, 0 the topmost; 0 where there are not that many."""
        if at >= len(self.stack):
            return 0
        return as_number(self.stack[-1 - at])

    def address_operand(self, at: int) -> bytes:
        """An operand read as an address."""
        return (self.operand(at) & (1 << 160) - 1).to_bytes(20, "big")


class Tracer(Protocol):
    """Told of everything a message does, in order. `wants_steps` false spares the engine the single opcodes."""

    wants_steps: bool

    def enter(self, entry: Entry) -> None:
        """A frame begins."""

    def leave(self, result: Exit) -> None:
        """The innermost frame ends."""

    def step(self, step: Step) -> None:
        """An opcode is about to run."""

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """The innermost frame emits an event; it stands only if no frame around it fails."""


class Silent:
    """A tracer that notes nothing: the base of those that care for some of the hooks only."""

    wants_steps = False

    def enter(self, entry: Entry) -> None:
        """A frame begins."""

    def leave(self, result: Exit) -> None:
        """The innermost frame ends."""

    def step(self, step: Step) -> None:
        """An opcode is about to run."""

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        """The innermost frame emits an event."""


class Deadline:
    """When the messages that share it must have ended, this many seconds from now."""

    __slots__ = ("_at",)

    def __init__(self, seconds: float) -> None:
        self._at = monotonic() + seconds

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return monotonic() > self._at

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Time that is not to count, such as loading an engine."""
        began = monotonic()
        yield
        self._at += monotonic() - began


@dataclass(frozen=True, slots=True)
class Watch:
    """What goes along with one message."""

    tracer: Tracer | None = None
    deadline: Deadline | None = None


def as_number(value: int | bytes) -> int:
    """A stack entry, which the engine may hold as bytes, as a number."""
    return value if isinstance(value, int) else int.from_bytes(value, "big")
