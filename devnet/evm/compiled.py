"""py-evm's computation with code that ran a few times turned into Python functions (`compiled_source`).

py-evm's interpreter runs code at first, counts where blocks begin, and is asked again for all that compiled code does not
do itself: calls and creations, rare opcodes, and whatever is about to fail.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

from eth.exceptions import Halt
from eth.vm.logic.invalid import InvalidOpcode

from devnet.evm.compiled_names import NAMES
from devnet.evm.compiled_source import Source, jump_destinations
from devnet.evm.opcodes import BY_NAME

_PROGRAMS: Final = 128  # codes whose functions are kept
_BRANCHES: Final = frozenset((BY_NAME["JUMP"], BY_NAME["JUMPI"]))
_JUMPDEST: Final = BY_NAME["JUMPDEST"]
_STOP: Final = BY_NAME["STOP"]

# Classes are made at run time over whatever computation the fork has: no type checker can follow.
_Class = Any


@cache
def compiled(base: _Class, after: int) -> _Class:
    """The class that computes the same as `base`, one of London or later, faster once a block has run `after` times."""
    table = base.opcodes
    program = lru_cache(_PROGRAMS)(lambda code: Program(code, table, after))

    class Compiled(base):  # type: ignore[misc]  # the base is chosen at run time
        between_blocks: Callable[[Any], None] | None = None

        @classmethod
        def apply_computation(cls, state: Any, message: Any, context: Any, parent_computation: Any = None) -> Any:
            with cls(state, message, context) as computation:
                if parent_computation is not None:
                    computation.contracts_created = parent_computation.contracts_created
                elif message.is_create:
                    cls.consume_initcode_gas_cost(computation)
                if message.is_create:
                    computation.contracts_created.append(message.storage_address)
                precompile = computation.precompiles.get(message.code_address)
                if precompile is None:
                    if message.code:
                        _run(computation, program(message.code))
                elif not message.is_delegation:
                    precompile(computation)
            return computation

    return Compiled


class Program:
    """The functions of one code, by the place they begin at."""

    def __init__(self, code: bytes, table: Any, after: int) -> None:
        self.blocks: dict[int, Callable[[Any], int | None]] = {}
        self._code = code
        self._table = table
        self._after = after
        self._runs: dict[int, int] = {}
        self._names: dict[str, Any] | None = None

    def warm(self, pc: int) -> Callable[[Any], int | None] | None:
        """Count a run from a place; its function if that was the last before it is worth while."""
        runs = self._runs[pc] = self._runs.get(pc, 0) + 1
        if runs <= self._after:
            return None
        if self._names is None:
            destinations = jump_destinations(self._code)
            self._names = NAMES | {"CODE": self._code, "DESTINATIONS": destinations, "OPCODES": self._table}
        source = Source(self._code, self._table, self._names["DESTINATIONS"], self._runs)
        exec(compile(source.write(pc), f"<code at {pc}>", "exec"), self._names)  # text made of opcodes only
        block: Callable[[Any], int | None] = self._names.pop("block")
        self.blocks[pc] = block
        return block


def _run(computation: Any, program: Program) -> None:
    blocks, warm = program.blocks, program.warm
    between_blocks = computation.between_blocks
    pc: int | None = 0
    while pc is not None:
        if pc < 0:
            pc = _interpret(computation, -1 - pc)
            continue
        if between_blocks is not None:
            between_blocks(computation.state)
        block = blocks.get(pc) or warm(pc)
        pc = _interpret(computation, pc) if block is None else block(computation)


def _interpret(computation: Any, pc: int) -> int | None:
    """Run opcode by opcode to where the next block may begin; None at the end."""
    stream, opcodes = computation.code, computation.opcodes
    code = stream._raw_code_bytes
    size = len(code)
    try:
        while True:
            opcode = code[pc] if pc < size else _STOP
            stream.program_counter = pc + 1
            (opcodes.get(opcode) or InvalidOpcode(opcode))(computation=computation)
            pc = stream.program_counter
            if opcode in _BRANCHES or (pc < size and code[pc] == _JUMPDEST):
                break
    except Halt:
        return None
    # py-evm keeps some entries as bytes.
    values = computation._stack.values
    values[:] = [value if type(value) is int else int.from_bytes(value, "big") for value in values]
    return pc
