"""The default engine: py-evm's Prague opcodes on our world. Of py-evm nothing else is used: no chain, no state, no tries.

Worked round here: its debug texts built for every message (the executor class is not used), and its test for "outermost
computation", which a call back to the transaction's sender also passes.
"""

import logging
from typing import Any

from eth.exceptions import (
    FullStack,
    InsufficientFunds,
    InsufficientStack,
    InvalidInstruction,
    InvalidJumpDestination,
    OutOfBoundsRead,
    OutOfGas,
    Revert,
    StackDepthLimit,
    VMError,
    WriteProtection,
)
from eth.vm.forks.cancun.transaction_context import CancunTransactionContext
from eth.vm.forks.prague.computation import PragueComputation
from eth.vm.message import Message as EvmMessage

from devnet.codec.blocks import Log
from devnet.evm.engine import BlockContext, Execution, Message
from devnet.evm.evm_state import EvmState
from devnet.evm.gas import initcode_gas
from devnet.evm.world import World

logging.getLogger("eth").setLevel(logging.WARNING)
DELEGATION_PREFIX = b"\xef\x01\x00"  # EIP-7702

_HALTS: tuple[tuple[type[Exception], str], ...] = (
    (Revert, "execution reverted"),
    (OutOfGas, "out of gas"),
    (InvalidJumpDestination, "invalid jump destination"),
    (StackDepthLimit, "max call depth exceeded"),
    (WriteProtection, "write protection"),
    (FullStack, "stack limit reached 1024 (1023)"),
    (InsufficientStack, "stack underflow"),
    (InsufficientFunds, "insufficient balance for transfer"),
    (OutOfBoundsRead, "return data out of bounds"),
    (InvalidInstruction, "invalid opcode"),
)


# py-evm names its parameters by its own abstract classes; ours fit by shape, which a type checker cannot see.
_evm_message: Any = EvmMessage
_evm_context: Any = CancunTransactionContext


class _Computation(PragueComputation):
    @property
    def is_origin_computation(self) -> bool:
        return bool(self.msg.depth == 0)


class PyEvm:
    """Engine on py-evm's opcode table."""

    def execute(self, world: World, block: BlockContext, message: Message) -> Execution:
        """Run a message; see Engine.execute."""
        state = EvmState(world, block)
        self._warm(world, message)
        computation = self._create(state, message) if message.to is None else self._call(state, message)
        error = None if computation.is_success else computation.error
        return Execution(
            gas_left=computation.get_gas_remaining(),
            refund=computation.get_gas_refund(),
            output=computation.output,
            logs=tuple(
                Log(address, tuple(topic.to_bytes(32, "big") for topic in topics), data)
                for address, topics, data in computation.get_log_entries()
            ),
            destroyed=tuple(computation.get_accounts_for_deletion()),
            error=None if error is None else _describe(error),
            reverted=isinstance(error, Revert),
        )

    @staticmethod
    def _warm(world: World, message: Message) -> None:
        warm = world.warm
        warm[message.sender] = True
        warm[message.to or message.created] = True
        for address, slots in message.access_list:
            warm[address] = True
            for slot in slots:
                warm[address, int.from_bytes(slot, "big")] = True

    @staticmethod
    def _create(state: Any, message: Message) -> Any:
        assert message.created is not None, "a creation knows its address"
        return _Computation.apply_create_message(
            state,
            _evm_message(
                gas=message.gas + initcode_gas(message.data),  # py-evm takes it from the message
                to=b"",
                sender=message.sender,
                value=message.value,
                data=b"",
                code=message.data,
                create_address=message.created,
            ),
            _evm_context(gas_price=message.gas_price, origin=message.sender),
        )

    @staticmethod
    def _call(state: Any, message: Message) -> Any:
        assert message.to is not None, "a call has a recipient"
        code = state.get_code(message.to)
        delegated = code.startswith(DELEGATION_PREFIX)
        if delegated:
            target = code[len(DELEGATION_PREFIX) :]
            state.mark_address_warm(target)
            code = state.get_code(target)
        return _Computation.apply_message(
            state,
            _evm_message(
                gas=message.gas,
                to=message.to,
                sender=message.sender,
                value=message.value,
                data=message.data,
                code=code,
                is_delegation=delegated,
            ),
            _evm_context(gas_price=message.gas_price, origin=message.sender),
        )


def _describe(error: VMError) -> str:
    for kind, text in _HALTS:
        if isinstance(error, kind):
            return text
    return str(error)
