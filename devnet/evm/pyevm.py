"""The default engine: py-evm's opcodes on our world. Of py-evm nothing else is used: no chain, no state, no tries.

Worked round here: its debug texts built for every message (the executor class is not used), and its test for "outermost
computation", which a call back to the transaction's sender also passes.
"""

import logging
from typing import Any, Final

from eth.exceptions import Revert
from eth.vm.forks.cancun.transaction_context import CancunTransactionContext
from eth.vm.message import Message as EvmMessage

from devnet.codec.authorization import delegation
from devnet.codec.blocks import Log
from devnet.evm.compiled import compiled
from devnet.evm.engine import BlockContext, Execution, Message
from devnet.evm.evm_state import EvmState
from devnet.evm.forks import Fork
from devnet.evm.gas import initcode_gas
from devnet.evm.pyevm_forks import computation_class
from devnet.evm.pyevm_halts import describe
from devnet.evm.pyevm_watch import WatchedState, watched
from devnet.evm.tracing import Watch
from devnet.evm.world import World

logging.getLogger("eth").setLevel(logging.WARNING)

# py-evm names its parameters by its own abstract classes; ours fit by shape, which a type checker cannot see.
_evm_message: Any = EvmMessage
_evm_context: Any = CancunTransactionContext


# Compiling a block takes as long as some ten runs of it by the interpreter.
COMPILE_AFTER: Final = 8


class PyEvm:
    """Engine on py-evm's opcode table. Code that ran `compile_after` times is turned into Python functions; None: never."""

    def __init__(self, compile_after: int | None = COMPILE_AFTER) -> None:
        self._compile_after = compile_after

    def execute(self, world: World, block: BlockContext, message: Message, watch: Watch | None = None) -> Execution:
        """Run a message; see Engine.execute."""
        kind = computation_class(block.fork)
        if self._compile_after is not None and block.fork.has_base_fee:
            kind = compiled(kind, self._compile_after)
        if watch is None and block.precompiles is None:
            state = EvmState(world, block)
        else:
            state = WatchedState(world, block)
            kind = watched(kind, state, watch, block.precompiles)
        self._warm(world, message)
        run = self._create if message.to is None else self._call
        computation = run(kind, state, message, block.fork)
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
            error=None if error is None else describe(error, computation),
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
    def _create(kind: Any, state: Any, message: Message, fork: Fork) -> Any:
        assert message.created is not None, "a creation knows its address"
        return kind.apply_create_message(
            state,
            _evm_message(
                gas=message.gas + initcode_gas(message.data, fork),  # py-evm takes it from the message
                to=b"",
                sender=message.sender,
                value=message.value,
                data=b"",
                code=message.data,
                create_address=message.created,
            ),
            _context(message),
        )

    @staticmethod
    def _call(kind: Any, state: Any, message: Message, fork: Fork) -> Any:
        assert message.to is not None, "a call has a recipient"
        code = state.get_code(message.to)
        target = delegation(code) if fork.has_requests else None
        if target is not None:
            state.mark_address_warm(target)
            code = state.get_code(target)
        return kind.apply_message(
            state,
            _evm_message(
                gas=message.gas,
                to=message.to,
                sender=message.sender,
                value=message.value,
                data=message.data,
                code=code,
                is_delegation=target is not None,
            ),
            _context(message),
        )


def _context(message: Message) -> Any:
    return _evm_context(gas_price=message.gas_price, origin=message.sender, blob_versioned_hashes=message.blob_hashes)
