"""py-evm's computations with someone looking on: the hooks of a tracer, a deadline, precompiles that were moved.

Each is a subclass made once for a class of computation, so that code nobody looks at runs as before.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from eth.exceptions import FullStack, Halt, InsufficientStack, Revert, VMError
from eth.vm.computation import BaseComputation
from eth.vm.gas_meter import GasMeter
from eth.vm.logic.invalid import InvalidOpcode

from devnet.codec import rlp_coding
from devnet.codec.keccak import keccak
from devnet.evm.evm_state import EvmState
from devnet.evm.forks import Fork
from devnet.evm.gas import initcode_gas
from devnet.evm.opcodes import BY_NAME, NAMES
from devnet.evm.pyevm_halts import CALL_DEPTH, COLLISION, GAS_OVERFLOW, INSUFFICIENT_BALANCE, OUT_OF_GAS, describe
from devnet.evm.tracing import (
    CALL,
    CREATE,
    SELFDESTRUCT,
    Deadline,
    Entry,
    ExecutionAborted,
    Exit,
    Step,
    Tracer,
    Watch,
    as_number,
)

_JUMPS: Final = (BY_NAME["JUMP"], BY_NAME["JUMPI"])
_CREATES: Final = {BY_NAME["CREATE"], BY_NAME["CREATE2"]}
_CALLS: Final = {BY_NAME[name] for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")}
_SSTORE: Final = BY_NAME["SSTORE"]
_SELFDESTRUCT: Final = BY_NAME["SELFDESTRUCT"]
_DEPTH_LIMIT: Final = 1024
_ADDRESS: Final = (1 << 160) - 1
_plain_loop: Any = BaseComputation.__dict__["apply_computation"].__func__

# Classes are made at run time over whatever computation the fork has: no type checker can follow.
_Class = Any


class WatchedState(EvmState):
    """The world as opcodes see it, and who looks on."""

    deadline: Deadline
    hooks: "_Hooks"
    built_in: Mapping[bytes, Any]


def watched(base: _Class, state: WatchedState, watch: Watch | None, moved: Mapping[bytes, bytes] | None) -> _Class:
    """The class of computation that this watch, and these moved precompiles, ask for."""
    if moved is not None:
        codes = base.get_precompiles()
        state.built_in = {address: codes[source] for address, source in moved.items()}
        base = _with_moved_precompiles(base)
    if watch is None:
        return base
    if watch.deadline is not None:
        state.deadline = watch.deadline
        base = _guarded(base)
    if watch.tracer is None:
        return base
    state.hooks = _Hooks(watch.tracer, state.execution_context.fork)
    return _traced(base)


@cache
def _with_moved_precompiles(base: _Class) -> _Class:
    class Overridden(base):  # type: ignore[misc]  # the base is chosen at run time
        @property
        def precompiles(self) -> Mapping[bytes, Any]:
            return self.state.built_in  # type: ignore[no-any-return]  # py-evm ships no types

    return Overridden


@cache
def _guarded(base: _Class) -> _Class:
    """Looks at the clock at each jump and call: no code runs for long without either."""

    def check(state: Any) -> None:
        if state.deadline.passed:
            raise ExecutionAborted

    def checked(inner: Callable[..., Any]) -> Callable[..., Any]:
        def run(computation: Any) -> None:
            check(computation.state)
            inner(computation=computation)

        return run

    class Guarded(base):  # type: ignore[misc]  # the base is chosen at run time
        between_blocks = staticmethod(check)
        opcodes = base.opcodes | {code: checked(base.opcodes[code]) for code in _JUMPS}

        @classmethod
        def apply_message(cls, state: Any, *rest: Any, **named: Any) -> Any:
            check(state)
            return super().apply_message(state, *rest, **named)

    return Guarded


class _Hooks:
    """The tracer of one message, and what the hooks need to remember between them."""

    def __init__(self, tracer: Tracer, fork: Fork) -> None:
        self.tracer = tracer
        self.fork = fork
        self.refund = 0
        self.entered = 0
        self.caller: _Opcodes | None = None


class _Meter(GasMeter):
    """Knows what the running opcode was charged, and counts refunds for the whole message."""

    charged = 0
    latest = 0
    returned = 0
    hooks: _Hooks

    def consume_gas(self, amount: int, reason: str) -> None:
        self.charged += amount
        self.latest = amount
        super().consume_gas(amount, reason)

    def return_gas(self, amount: int) -> None:
        self.returned = amount
        super().return_gas(amount)

    def refund_gas(self, amount: int) -> None:
        self.hooks.refund += amount
        super().refund_gas(amount)


class _Opcodes:
    """The opcode table of one frame. Looked up for each opcode, it runs the real one between the hooks."""

    def __init__(self, computation: Any, table: Mapping[int, Any]) -> None:
        self._computation = computation
        self._table = table
        self._hooks: _Hooks = computation.state.hooks
        self._meter: _Meter = computation._gas_meter
        self._opcode = 0
        self._pc = 0
        self.operands: list[int] = []

    def __getitem__(self, opcode: int) -> Callable[..., None]:
        self._opcode = opcode
        return self._run

    @property
    def kind(self) -> str:
        """The name of the running opcode."""
        return NAMES[self._opcode]

    def _run(self, computation: Any) -> None:
        opcode, hooks, meter = self._opcode, self._hooks, self._meter
        meter.charged = meter.returned = 0
        step = self._announce() if hooks.tracer.wants_steps and computation.msg.code else None
        frames = opcode in _CALLS or opcode in _CREATES
        held = 0
        if frames or opcode == _SELFDESTRUCT:
            self.operands = [as_number(value) for value in computation._stack.values[:-8:-1]]
            held = computation.state.get_balance(computation.msg.storage_address)
        entered, had = hooks.entered, len(computation._stack.values)
        try:
            hooks.caller = self
            (self._table.get(opcode) or InvalidOpcode(opcode))(computation=computation)
            if frames and hooks.entered == entered:
                self._refused(held)
        except Halt:
            if opcode == _SELFDESTRUCT:
                heir = (self.operands[0] & _ADDRESS).to_bytes(20, "big")
                hooks.tracer.enter(Entry(SELFDESTRUCT, computation.msg.storage_address, heir, b"", 0, held))
                hooks.tracer.leave(Exit(0))
            raise
        except VMError as problem:
            if isinstance(problem, InsufficientStack):
                problem.had = had  # type: ignore[attr-defined]  # a note on py-evm's exception, read by describe
            text = describe(problem, computation)
            if text.endswith(GAS_OVERFLOW):
                meter.charged -= meter.latest
            if step is not None and (isinstance(problem, (InsufficientStack, FullStack)) or _is_price(text)):
                step.error = text
            raise
        finally:
            self._pc = computation.code.program_counter
            if step is not None:
                step.cost = meter.charged
                if opcode == _SSTORE:
                    step.refund = hooks.refund  # geth prices the opcode, refund included, before it shows it

    def _announce(self) -> Step:
        computation = self._computation
        step = Step(
            pc=self._pc,
            opcode=self._opcode,
            gas=self._meter.gas_remaining,
            depth=computation.msg.depth + 1,
            address=computation.msg.storage_address,
            stack=computation._stack.values,
            memory=computation._memory._bytes,
            return_data=computation.return_data,
            refund=self._hooks.refund,
        )
        self._hooks.tracer.step(step)
        return step

    def _refused(self, held: int) -> None:
        """A call or creation that py-evm gave up before it became a frame; geth shows one that failed at once."""
        computation, operands, meter = self._computation, self.operands, self._meter
        message = computation.msg
        creates = self._opcode in _CREATES
        if creates:
            value, area = operands[0], operands[1:3]
            given = meter.gas_remaining - meter.gas_remaining // 64
        else:
            value, area = operands[2], operands[3:5]
            given = meter.returned
            if self.kind in {"DELEGATECALL", "STATICCALL"}:
                value, area = 0, operands[2:4]
        used = 0
        if message.depth >= _DEPTH_LIMIT:
            error = CALL_DEPTH
        elif held < value:
            error = INSUFFICIENT_BALANCE
        else:
            error = COLLISION
            used = given = meter.latest
            meter.charged -= given
        data = computation.memory_read_bytes(*area)
        to = self._created(data) if creates else (operands[1] & _ADDRESS).to_bytes(20, "big")
        self._hooks.tracer.enter(Entry(self.kind, message.storage_address, to, data, given, value))
        self._hooks.tracer.leave(Exit(used, error=error))

    def _created(self, code: bytes) -> bytes:
        sender = self._computation.msg.storage_address
        if self.kind == CREATE:
            nonce = self._computation.state.get_nonce(sender)
            return keccak(rlp_coding.encode((sender, rlp_coding.integer(nonce))))[12:]
        salt = self.operands[3].to_bytes(32, "big")
        return keccak(b"\xff" + sender + salt + keccak(code))[12:]


def _is_price(text: str) -> bool:
    """Whether an error came up while geth priced the opcode, before it ran it."""
    return text.startswith((OUT_OF_GAS, GAS_OVERFLOW))


@cache
def _traced(base: _Class) -> _Class:
    table = base.opcodes

    class Traced(base):  # type: ignore[misc]  # the base is chosen at run time
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.opcodes = _Opcodes(self, table)

        def _configure_gas_meter(self) -> GasMeter:
            plain = super()._configure_gas_meter()
            meter = _Meter(plain.start_gas, plain.refund_strategy)
            meter.hooks = self.state.hooks
            return meter

        def add_log_entry(self, account: bytes, topics: tuple[int, ...], data: bytes) -> None:
            super().add_log_entry(account, topics, data)
            self.state.hooks.tracer.log(account, tuple(topic.to_bytes(32, "big") for topic in topics), data)

        @classmethod
        def apply_computation(cls, *arguments: Any, **named: Any) -> Any:
            # py-evm's own loop: a faster one may not ask the table for every opcode.
            return _plain_loop(cls, *arguments, **named)

        @classmethod
        def apply_message(cls, state: Any, message: Any, context: Any, parent_computation: Any = None) -> Any:
            hooks = state.hooks
            refund = hooks.refund
            hooks.entered += 1
            hooks.tracer.enter(_entry(hooks, message, parent_computation))
            computation = super().apply_message(state, message, context, parent_computation=parent_computation)
            if computation.is_error:
                hooks.refund = refund
            if not message.is_create:
                hooks.tracer.leave(_exit(computation))
            return computation

        @classmethod
        def apply_create_message(cls, state: Any, message: Any, context: Any, parent_computation: Any = None) -> Any:
            if parent_computation is not None:
                # geth shows the price of the opcode alone: the gas handed on is none of it.
                parent_computation._gas_meter.charged -= message.gas
            refund = state.hooks.refund
            computation = super().apply_create_message(state, message, context, parent_computation=parent_computation)
            if computation.is_error:
                state.hooks.refund = refund
            state.hooks.tracer.leave(_exit(computation))
            return computation

    return Traced


def _entry(hooks: _Hooks, message: Any, parent: Any) -> Entry:
    if parent is None:
        kind, sender, to = CREATE if message.is_create else CALL, message.sender, message.storage_address
    else:
        caller = hooks.caller
        assert caller is not None, "a frame within another was called by an opcode of it"
        kind, sender, to = caller.kind, parent.msg.storage_address, message.storage_address
        if not message.is_create:
            to = (caller.operands[1] & _ADDRESS).to_bytes(20, "big")
    gas = message.gas - (initcode_gas(message.code, hooks.fork) if parent is None and message.is_create else 0)
    data = message.code if message.is_create else bytes(message.data)
    return Entry(kind, sender, to, data, gas, None if kind == "STATICCALL" else message.value)


def _exit(computation: Any) -> Exit:
    message = computation.msg
    used = message.gas - computation.get_gas_remaining()
    if message.is_create and message.depth == 0:
        used -= initcode_gas(message.code, computation.state.hooks.fork)
    error = None if computation.is_success else computation.error
    return Exit(
        gas_used=used,
        output=bytes(computation.output),
        error=None if error is None else describe(error, computation),
        reverted=isinstance(error, Revert),
    )
