"""Small contracts, assembled by hand: no compiler is needed to test an EVM."""

OPCODES = {
    name: code
    for code, names in {
        0x00: "STOP ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND",
        0x10: "LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR",
        0x20: "KECCAK256",
        0x30: "ADDRESS BALANCE ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CALLDATACOPY CODESIZE CODECOPY GASPRICE"
        " EXTCODESIZE EXTCODECOPY RETURNDATASIZE RETURNDATACOPY EXTCODEHASH",
        0x40: "BLOCKHASH COINBASE TIMESTAMP NUMBER PREVRANDAO GASLIMIT CHAINID SELFBALANCE BASEFEE BLOBHASH BLOBBASEFEE",
        0x50: "POP MLOAD MSTORE MSTORE8 SLOAD SSTORE JUMP JUMPI PC MSIZE GAS JUMPDEST TLOAD TSTORE MCOPY PUSH0",
        0x80: " ".join(f"DUP{n}" for n in range(1, 17)),
        0x90: " ".join(f"SWAP{n}" for n in range(1, 17)),
        0xA0: "LOG0 LOG1 LOG2 LOG3 LOG4",
        0xF0: "CREATE CALL CALLCODE RETURN DELEGATECALL CREATE2",
        0xFA: "STATICCALL",
        0xFD: "REVERT INVALID SELFDESTRUCT",
    }.items()
    for code, name in enumerate(names.split(), code)
}


def assemble(text: str) -> bytes:
    """Mnemonics to bytes. `0x…` or a decimal is the shortest PUSH; `:name` marks a jump target, `@name` pushes it."""
    code, marks, uses = bytearray(), {}, []
    for word in text.split():
        if word in OPCODES:
            code.append(OPCODES[word])
        elif word.startswith(":"):
            marks[word[1:]] = len(code)
            code.append(OPCODES["JUMPDEST"])
        elif word.startswith("@"):
            code += b"\x60\x00"
            uses.append((len(code) - 1, word[1:]))
        else:
            digits = word[2:] if word.startswith("0x") else f"{int(word):x}"
            value = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
            code += bytes((0x5F + len(value),)) + value
    for at, name in uses:
        code[at] = marks[name]
    return bytes(code)


def deploying(runtime: bytes) -> bytes:
    """Init code that returns this code."""
    head = assemble(f"0x{len(runtime):04x} 0x0000 PUSH0 CODECOPY 0x{len(runtime):04x} PUSH0 RETURN")
    return head.replace(b"\x61\x00\x00\x5f", bytes((0x61, 0, len(head), 0x5F)), 1) + runtime


# storage[0] += 1, emits it with topic 42, returns it
COUNTER = assemble("PUSH0 SLOAD 1 ADD DUP1 PUSH0 SSTORE PUSH0 MSTORE 42 32 PUSH0 LOG1 32 PUSH0 RETURN")

# transfer(to, amount) with calldata (selector, to, amount): balances at keccak(address . 0); Transfer event.
# An account that never received anything has 1000 minted on its first transfer.
TOKEN = assemble(
    "CALLER PUSH0 MSTORE 64 PUSH0 KECCAK256 DUP1 SLOAD DUP1 ISZERO @mint JUMPI @have JUMP "
    ":mint POP 1000 :have 36 CALLDATALOAD DUP1 DUP3 LT @poor JUMPI "
    "SWAP1 SUB SWAP1 SSTORE "
    "4 CALLDATALOAD PUSH0 MSTORE 64 PUSH0 KECCAK256 DUP1 SLOAD 36 CALLDATALOAD ADD SWAP1 SSTORE "
    "36 CALLDATALOAD 64 MSTORE 4 CALLDATALOAD CALLER "
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef 32 64 LOG3 "
    "1 PUSH0 MSTORE 32 PUSH0 RETURN "
    ":poor PUSH0 PUSH0 REVERT"
)
TRANSFER = bytes.fromhex("a9059cbb")

# always reverts with Error("boom")
BOOM = assemble(
    "0x08c379a000000000000000000000000000000000000000000000000000000000 PUSH0 MSTORE 32 4 MSTORE 4 36 MSTORE "
    "0x626f6f6d00000000000000000000000000000000000000000000000000000000 68 MSTORE 100 PUSH0 REVERT"
)

HALT = assemble("INVALID")

# sets slot 1 if it is zero, clears it otherwise: a refund
TOGGLE = assemble("1 SLOAD ISZERO 1 SSTORE STOP")

# CREATE2 of a contract that destroys itself when called, calls it, logs its code size and sha256 of memory; TSTORE used
FACTORY = assemble(
    "0x6133ff5f5260025ff3 PUSH0 MSTORE "  # init code 6133ff 5f 52 6002 5f f3 at memory 23..32
    "7 9 23 PUSH0 CREATE2 DUP1 1 TSTORE "
    "PUSH0 PUSH0 PUSH0 PUSH0 3 1 TLOAD 50000 CALL POP "
    "EXTCODESIZE PUSH0 MSTORE 32 32 32 PUSH0 2 GAS STATICCALL POP "
    "64 PUSH0 LOG0 STOP"
)
