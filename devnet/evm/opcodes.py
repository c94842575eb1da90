"""The opcodes by geth's names, and how many operands each takes from the stack."""

from typing import Final

_TABLE: Final = {
    0x00: "STOP/0 ADD/2 MUL/2 SUB/2 DIV/2 SDIV/2 MOD/2 SMOD/2 ADDMOD/3 MULMOD/3 EXP/2 SIGNEXTEND/2",
    0x10: "LT/2 GT/2 SLT/2 SGT/2 EQ/2 ISZERO/1 AND/2 OR/2 XOR/2 NOT/1 BYTE/2 SHL/2 SHR/2 SAR/2 CLZ/1",
    0x20: "KECCAK256/2",
    0x30: "ADDRESS/0 BALANCE/1 ORIGIN/0 CALLER/0 CALLVALUE/0 CALLDATALOAD/1 CALLDATASIZE/0 CALLDATACOPY/3 CODESIZE/0"
    " CODECOPY/3 GASPRICE/0 EXTCODESIZE/1 EXTCODECOPY/4 RETURNDATASIZE/0 RETURNDATACOPY/3 EXTCODEHASH/1",
    0x40: "BLOCKHASH/1 COINBASE/0 TIMESTAMP/0 NUMBER/0 DIFFICULTY/0 GASLIMIT/0 CHAINID/0 SELFBALANCE/0 BASEFEE/0"
    " BLOBHASH/1 BLOBBASEFEE/0",
    0x50: "POP/1 MLOAD/1 MSTORE/2 MSTORE8/2 SLOAD/1 SSTORE/2 JUMP/1 JUMPI/2 PC/0 MSIZE/0 GAS/0 JUMPDEST/0 TLOAD/1"
    " TSTORE/2 MCOPY/3 " + " ".join(f"PUSH{n}/0" for n in range(33)),
    0x80: " ".join(f"DUP{n}/{n}" for n in range(1, 17)),
    0x90: " ".join(f"SWAP{n}/{n + 1}" for n in range(1, 17)),
    0xA0: " ".join(f"LOG{n}/{n + 2}" for n in range(5)),
    0xF0: "CREATE/3 CALL/7 CALLCODE/7 RETURN/2 DELEGATECALL/6 CREATE2/4",
    0xFA: "STATICCALL/6",
    0xFD: "REVERT/2 INVALID/0 SELFDESTRUCT/1",
}
_ENTRIES: Final = {
    code: entry.split("/") for start, text in _TABLE.items() for code, entry in enumerate(text.split(), start)
}
OPERANDS: Final = {code: int(operands) for code, (_, operands) in _ENTRIES.items()}
NAMES: Final = {code: name for code, (name, _) in _ENTRIES.items()}
BY_NAME: Final = {name: code for code, name in NAMES.items()}


def name_of(code: int) -> str:
    """The opcode as geth prints it, also where it is none."""
    return NAMES.get(code) or f"opcode {code:#x} not defined"
