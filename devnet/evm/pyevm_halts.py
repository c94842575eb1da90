"""How a message of py-evm ended, in geth's words (core/vm/errors.go)."""

import re
from typing import Any

from eth.exceptions import (
    ContractCreationCollision,
    FullStack,
    InsufficientFunds,
    InsufficientStack,
    InvalidInstruction,
    InvalidJumpDestination,
    OutOfBoundsRead,
    OutOfGas,
    ReservedBytesInCode,
    Revert,
    StackDepthLimit,
    VMError,
    WriteProtection,
)

from devnet.evm.opcodes import BY_NAME, OPERANDS, name_of

INSUFFICIENT_BALANCE = "insufficient balance for transfer"
CALL_DEPTH = "max call depth exceeded"
COLLISION = "contract address collision"
OUT_OF_GAS = "out of gas"
GAS_OVERFLOW = "gas uint64 overflow"

_TEXTS: tuple[tuple[type[Exception], str], ...] = (
    (Revert, "execution reverted"),
    (InvalidJumpDestination, "invalid jump destination"),
    (StackDepthLimit, CALL_DEPTH),
    (WriteProtection, "write protection"),
    (FullStack, "stack limit reached 1024 (1023)"),
    (InsufficientFunds, INSUFFICIENT_BALANCE),
    (OutOfBoundsRead, "return data out of bounds"),
    (ContractCreationCollision, COLLISION),
    (ReservedBytesInCode, "invalid code: must not begin with 0xef"),
)


# geth refuses these in a static call while it prices them, and calls that running out of gas.
_PRICED_WHEN_STATIC = {BY_NAME[name] for name in ("SSTORE", "CALL", "CREATE", "CREATE2", "SELFDESTRUCT")}
# A jump to a 0x5b that is data of a PUSH; py-evm has the same class for a byte that is no opcode.
_INTO_DATA = "Jump resulted in invalid instruction"
_NUMBER = re.compile(r"\d+")
_MEMORY_LIMIT = 0x1FFFFFFFE0  # bytes; the price of more does not fit 64 bits


def describe(error: VMError, computation: Any) -> str:
    """The error of a computation that failed, as geth names it."""
    if isinstance(error, InvalidInstruction) and _INTO_DATA in str(error):
        return "invalid jump destination"
    if isinstance(error, InvalidInstruction):
        return f"invalid opcode: {name_of(_last_opcode(computation))}"
    if isinstance(error, InsufficientStack):
        # Some opcodes take operands one by one: what there was at first is known where a tracer looks on.
        had = getattr(error, "had", len(computation._stack.values))
        return f"stack underflow ({had} <=> {OPERANDS[_last_opcode(computation)]})"
    if isinstance(error, WriteProtection) and _last_opcode(computation) in _PRICED_WHEN_STATIC:
        return f"{OUT_OF_GAS}: write protection"
    if isinstance(error, OutOfGas):
        return _out_of_gas(str(error.args[0]) if error.args else "")
    for kind, text in _TEXTS:
        if isinstance(error, kind):
            return text
    return str(error)


def _out_of_gas(text: str) -> str:
    """py-evm has one error for what geth tells apart; the cause is in its text only."""
    if "EIP170" in text:
        return "max code size exceeded"
    if "Write contract code" in text:
        return "contract creation code storage out of gas"
    if "EIP-2200" in text:
        return f"{OUT_OF_GAS}: not enough gas for reentrancy sentry"
    if "EIP-3860 limit" in text:
        limit, had = _NUMBER.findall(text)[-2:]
        return f"{OUT_OF_GAS}: max initcode size exceeded: code size {had} limit {limit}"
    if "Expanding memory" in text:
        size = int(_NUMBER.findall(text)[-1])
        if size >= 1 << 64:
            return GAS_OVERFLOW
        if size > _MEMORY_LIMIT:
            return f"{OUT_OF_GAS}: {GAS_OVERFLOW}"
    return OUT_OF_GAS


def _last_opcode(computation: Any) -> int:
    return int(computation.code[computation.code.program_counter - 1])
