"""Random EVM programs for Hypothesis: mostly sound, so that they come far, with everything that can go wrong thrown in."""

from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

from devnet.evm.opcodes import BY_NAME, OPERANDS
from tests.devnet.bytecode import deploying

ACCOUNTS: Final = tuple(bytes([0xC0 + at]) * 20 for at in range(3))  # these hold programs
SENDER: Final = b"\x05" * 20
_OTHERS: Final = (SENDER, bytes(20), *(at.to_bytes(20, "big") for at in (1, 2, 4, 5, 9)), b"\xee" * 20)
_NAMES: Final = """
    ADD MUL SUB DIV SDIV MOD SMOD ADDMOD MULMOD EXP SIGNEXTEND LT GT SLT SGT EQ ISZERO AND OR XOR NOT BYTE SHL SHR SAR
    CLZ ADDRESS ORIGIN CALLER CALLVALUE CALLDATALOAD CALLDATASIZE CODESIZE GASPRICE RETURNDATASIZE COINBASE TIMESTAMP
    NUMBER DIFFICULTY GASLIMIT CHAINID SELFBALANCE BASEFEE BLOBHASH BLOBBASEFEE BLOCKHASH PC MSIZE GAS PUSH0"""
_PLAIN: Final = _NAMES.split()
_ACCOUNT: Final = ("BALANCE", "EXTCODESIZE", "EXTCODEHASH")
_COPIES: Final = ("CALLDATACOPY", "CODECOPY", "MCOPY")
_CALLS: Final = ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
_STACK: Final = ["POP", *(f"DUP{n}" for n in range(1, 17)), *(f"SWAP{n}" for n in range(1, 17))]


def _mostly(usual: st.SearchStrategy[Any], now_and_then: st.SearchStrategy[Any], one_in: int) -> st.SearchStrategy[Any]:
    return st.integers(1, one_in).flatmap(lambda drawn: now_and_then if drawn == one_in else usual)


_numbers = st.one_of(
    st.integers(0, 40),
    st.sampled_from([255, 256, 1 << 160, (1 << 255) - 1, 1 << 255, (1 << 256) - 1, (1 << 256) - 32]),
    st.integers(0, (1 << 256) - 1),
)
_offsets = _mostly(
    st.one_of(st.sampled_from([0, 0, 32, 64, 1, 31, 33, 95, 100]), st.integers(0, 700)),
    st.sampled_from([5_000, 1 << 20, 1 << 37, 1 << 64, (1 << 256) - 1]),
    one_in=150,
)
_sizes = _mostly(
    st.one_of(st.sampled_from([0, 1, 31, 32, 33, 64]), st.integers(0, 200)),
    st.sampled_from([3_000, 1 << 40, (1 << 256) - 1]),
    one_in=150,
)
_slots = st.integers(0, 2)
_addresses = st.sampled_from([int.from_bytes(address, "big") for address in (*ACCOUNTS, *ACCOUNTS, *_OTHERS)])


@dataclass(frozen=True)
class Label:
    """A push of where a label stands, or with `ahead` the next one; odd ones are off by a byte."""

    number: int
    ahead: bool = True
    slip: int = 0


Piece = bytes | Label
_labels = st.builds(
    Label, st.integers(0, 7), st.sampled_from([True] * 5 + [False]), _mostly(st.just(0), st.just(1), one_in=40)
)


def op(name: str) -> bytes:
    """One opcode."""
    return bytes((BY_NAME[name],))


def push(number: int) -> bytes:
    """The shortest PUSH of a number, PUSH1 at least."""
    size = max((number.bit_length() + 7) // 8, 1)
    return bytes((0x5F + size,)) + number.to_bytes(size, "big")


# Takes the topmost entry into a sum in memory, which the program returns in the end.
_noted: Final = push(480) + op("MLOAD") + push(3) + op("MUL") + op("ADD") + push(480) + op("MSTORE")


def _with(name: str, *operands: st.SearchStrategy[int], after: bytes = b"") -> st.SearchStrategy[list[Piece]]:
    """An opcode with operands of these kinds, the first topmost: constants, the same as a compiler cannot foresee them, and
    what the stack holds already."""
    kinds = [
        st.tuples(kind, st.sampled_from(["known", "known", "known", "unknown", "unknown", "held"])) for kind in operands
    ]

    def built(values: tuple[tuple[int, str], ...]) -> list[Piece]:
        return [b"".join(_operand(*value) for value in reversed(values)) + op(name) + after]

    return st.tuples(*kinds).map(built)


def _operand(number: int, kind: str) -> bytes:
    if kind == "held":
        return op("DUP2")
    return push(number) + (op("MSIZE") + push(0) + op("MUL") + op("XOR") if kind == "unknown" else b"")


def _call(name: str) -> st.SearchStrategy[list[Piece]]:
    gas = st.one_of(st.sampled_from([0, 100, 700, 2_000, 2_300, 9_000, (1 << 256) - 1]), st.integers(0, 20_000))
    value = [st.sampled_from([0, 0, 0, 1, 10**30])] if name in {"CALL", "CALLCODE"} else []
    return _with(name, gas, _addresses, *value, *(_offsets, _sizes) * 2)


def _creation(init: bytes, name: str, value: int) -> list[Piece]:
    """The init code put in memory, and a creation by it."""
    writes = b"".join(
        push(int.from_bytes(init[at : at + 32].ljust(32, b"\0"), "big")) + push(at) + op("MSTORE")
        for at in range(0, len(init), 32)
    )
    salt = push(7) if name == "CREATE2" else b""
    return [writes + salt + push(len(init)) + push(0) + push(value) + op(name)]


_inits = st.one_of(
    st.binary(max_size=24).map(deploying),
    st.binary(max_size=40),
    st.just(op("PUSH0") + op("PUSH0") + op("REVERT")),
    st.just(push(1) + op("PUSH0") + op("SSTORE") + op("CALLER") + op("SELFDESTRUCT")),
)
_TURNS: Final = (b"", b"", op("ISZERO"), op("ISZERO") * 2, op("NOT"), push(7) + op("LT"), op("DUP1") + op("MUL"))
_near = st.sampled_from([0, 0, 1, 31, 32, 32, 33, 64])
_writes = st.one_of(
    _with("MSTORE", _near, _numbers),
    _with("MSTORE8", _near, _numbers),
    _with("MCOPY", _near, _near, _near),
    _with("CALLDATACOPY", _near, _near, _near),
)
_reads = st.one_of(_with("MLOAD", _near, after=_noted), _with("KECCAK256", _near, _near, after=_noted))
_statements: st.SearchStrategy[list[Piece]] = st.one_of(
    # the same words of memory again and again, written in parts
    st.lists(st.one_of(_writes, _reads), min_size=3, max_size=8).map(
        lambda parts: [piece for part in parts for piece in part]
    ),
    st.integers(2, 6).map(lambda slot: [push(slot) + op("SSTORE")]),
    st.tuples(st.sampled_from(_PLAIN), st.sampled_from(_TURNS)).flatmap(
        lambda drawn: _with(drawn[0], *[_numbers] * OPERANDS[BY_NAME[drawn[0]]], after=drawn[1] + _noted)
    ),
    st.sampled_from(_PLAIN + _STACK).map(lambda name: [op(name)]),
    st.sampled_from(_STACK).map(lambda name: [op(name)]),
    _numbers.map(lambda number: [push(number)]),
    st.one_of(
        _with("MLOAD", _offsets, after=_noted),
        _with("MSTORE", _offsets, _numbers),
        _with("MSTORE8", _offsets, _numbers),
    ),
    st.one_of(_with("SLOAD", _slots, after=_noted), _with("SSTORE", _slots, _slots), _with("SSTORE", _slots, _numbers)),
    st.one_of(_with("TLOAD", _slots, after=_noted), _with("TSTORE", _slots, _numbers)),
    _with("KECCAK256", _offsets, _sizes, after=_noted),
    st.sampled_from(_COPIES).flatmap(lambda name: _with(name, _offsets, _offsets, _sizes)),
    st.integers(0, 4).flatmap(lambda topics: _with(f"LOG{topics}", _offsets, _sizes, *[_numbers] * topics)),
    st.sampled_from(_ACCOUNT).flatmap(lambda name: _with(name, _addresses, after=_noted)),
    _with("RETURNDATACOPY", _offsets, st.just(0), st.sampled_from([0, 0, 0, 1, 32])),
    _with("EXTCODECOPY", _addresses, _offsets, _offsets, _sizes),
    st.sampled_from(_CALLS).flatmap(_call),
    st.builds(_creation, _inits, st.sampled_from(["CREATE", "CREATE2"]), st.sampled_from([0, 0, 1])),
    # jumps: to a label, past one on a condition, to a routine that comes back, to nowhere
    st.tuples(_labels, st.just(op("JUMP"))).map(list),
    st.builds(
        lambda label, what: [what, label, op("JUMPI")],
        _labels,
        st.sampled_from(
            [
                push(0) + op("CALLDATALOAD") + push(1) + op("AND"),
                push(2) + op("SLOAD"),
                op("CALLVALUE"),
                push(1) + op("SLOAD") + push(1) + op("AND"),
                push(0) + op("MLOAD") + op("ISZERO"),
                op("GAS") + push(3) + op("AND"),
                op("DUP1"),
                push(1),
            ]
        ),
    ),
    st.builds(lambda back, label: [back, label, op("JUMP")], _labels, _labels),
)
_ends: st.SearchStrategy[list[Piece]] = st.one_of(
    _with("JUMP", _numbers),
    _with("JUMPI", _numbers, _slots),
    st.just([op("JUMP")]),
    _with("RETURN", _offsets, _sizes),
    _with("REVERT", _offsets, _sizes),
    _with("RETURNDATACOPY", _offsets, _offsets, _sizes),
    _with("SELFDESTRUCT", _addresses),
    st.sampled_from(["STOP", "INVALID", "RETURN"]).map(lambda name: [op(name)]),
    st.binary(min_size=1, max_size=3).map(lambda raw: [raw]),
)


def _ending(entries: int) -> bytes:
    """Returns the topmost entries of the stack, a hash of all memory, and how it began."""
    stored = b"".join(push(704 + 32 * at) + op("MSTORE") for at in range(entries))
    return op("MSIZE") + push(0) + op("KECCAK256") + stored + push(992) + push(0) + op("RETURN")


def _placed(statements: list[list[Piece]], labels: list[int], depth: int) -> bytes:
    """The code of these statements with eight labels set before some of them."""
    code, marks, uses = bytearray(push(0) * depth), {}, []
    for at, statement in enumerate(statements):
        for number, place in enumerate(labels):
            if place % len(statements) == at:
                marks[number] = len(code)
                code += op("JUMPDEST")
        for piece in statement:
            if isinstance(piece, Label):
                uses.append((len(code) + 1, piece))
                code += b"\x61\0\0"
            else:
                code += piece
    marks[8] = len(code)
    code += op("JUMPDEST") + _ending(8 if depth > 8 else 1)
    for at, label in uses:
        place = min(mark for mark in marks.values() if mark > at) if label.ahead else marks[label.number]
        code[at : at + 2] = (place + label.slip).to_bytes(2, "big")
    return bytes(code)


codes: st.SearchStrategy[bytes] = st.builds(
    _placed,
    st.lists(_mostly(_statements, _ends, one_in=30), min_size=1, max_size=25),
    st.lists(st.integers(0, 24), min_size=8, max_size=8),
    _mostly(st.sampled_from([20, 17]), st.sampled_from([0, 3, 1_000, 1_016, 1_024]), one_in=6),
)
