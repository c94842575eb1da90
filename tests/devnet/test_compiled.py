"""Compiled code against py-evm's interpreter: the same messages on two equal worlds, everything compared after each.

FENCED_PROGRAMS sets how many histories (`FENCED_PROGRAMS=20000`), FENCED_PROGRAM_SEED what they are drawn from.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, seed, settings
from hypothesis import strategies as st

from devnet.evm.engine import BlockContext, Execution, Message
from devnet.evm.forks import FORKS, Fork
from devnet.evm.opcodes import BY_NAME, OPERANDS
from devnet.evm.pyevm import PyEvm
from devnet.evm.world import World
from tests.devnet.bytecode import assemble, deploying
from tests.devnet.programs import ACCOUNTS, SENDER, codes, push

PROGRAMS = int(os.environ.get("FENCED_PROGRAMS", "80"))
SEED = int(os.environ.get("FENCED_PROGRAM_SEED", "11"))
AFTER_LONDON = [fork for fork in FORKS if fork.has_base_fee]
FORK = st.one_of(st.sampled_from(AFTER_LONDON), *[st.just(AFTER_LONDON[-1])] * 3)
PHASES = (Phase.generate, Phase.shrink)
ETHER = 10**18
MOST_GAS = 80_000  # loops end by it


@dataclass(frozen=True)
class Round:
    """A message run `times` times, then once for each part of the gas it used, and once for each little more than it used.

    With some 2,300 more than it used it comes to a last SSTORE with little more or less than the least it must have.
    """

    to: bytes
    data: bytes
    value: int
    gas: int
    times: int
    parts: list[float]
    surplus: list[int]
    undone: bool


rounds = st.builds(
    Round,
    to=st.sampled_from(ACCOUNTS),
    data=st.one_of(st.binary(max_size=70), st.integers(0, 3).map(lambda number: number.to_bytes(32, "big"))),
    value=st.sampled_from([0, 0, 1]),
    gas=st.one_of(st.just(MOST_GAS), st.integers(0, MOST_GAS)),
    times=st.integers(1, 5),
    parts=st.lists(st.floats(0, 1), max_size=4),
    surplus=st.lists(st.one_of(st.integers(-120, 10), st.integers(2_200, 2_320)), max_size=4),
    undone=st.booleans(),
)


def block(fork: Fork) -> BlockContext:
    return BlockContext(
        number=1_000,
        timestamp=1_700_000_000,
        coinbase=b"\xc1" * 20,
        prevrandao=b"\x77" * 32,
        gas_limit=30_000_000,
        base_fee=7,
        chain_id=31337,
        block_hash=lambda number: number.to_bytes(32, "big"),
        fork=fork,
        blob_base_fee=3,
    )


def world_of(programs: list[bytes]) -> World:
    world = World()
    for address, code in zip(ACCOUNTS, programs, strict=True):
        world.write(world.codes, address, code)
        world.write(world.balances, address, 5)
        world.set_slot(address, 1, 1)
    world.write(world.balances, SENDER, ETHER)
    world.seal(0)
    return world


def state(world: World) -> dict[str, Any]:
    """All that a message may change. Zero and absent are the same."""
    storages = {(address, slot): value for address, column in world.storages.items() for slot, value in column.items()}
    columns = {
        "balances": world.balances,
        "nonces": world.nonces,
        "codes": world.codes,
        "kept": world.kept,
        "storage": storages,
        "warm": world.warm,
        "transient": world.transient,
    }
    return {name: {key: value for key, value in column.items() if value} for name, column in columns.items()}


class Pair:
    """py-evm alone and with compiled code, on worlds that stay equal."""

    def __init__(self, programs: list[bytes], fork: Fork, compile_after: int) -> None:
        self.block = block(fork)
        self.sides = [
            (PyEvm(compile_after=None), world_of(programs)),
            (PyEvm(compile_after=compile_after), world_of(programs)),
        ]

    def run(self, message: Message, *, undone: bool) -> Execution:
        results = []
        for engine, world in self.sides:
            mark = world.snapshot()
            world.begin_transaction()
            results.append((engine.execute(world, self.block, message), state(world)))
            if undone:
                world.revert(mark)
        (expected, after), (found, after_found) = results
        assert found == expected
        assert after_found == after
        return found


@seed(SEED)
@settings(max_examples=PROGRAMS, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(
    programs=st.lists(codes, min_size=3, max_size=3),
    fork=FORK,
    compile_after=st.sampled_from([0, 1, 2, 3, 5]),
    history=st.lists(rounds, min_size=1, max_size=3),
)
def test_compiled_code_does_what_the_interpreter_does_at_every_limit_of_gas(
    programs: list[bytes], fork: Fork, compile_after: int, history: list[Round]
) -> None:
    pair = Pair(programs, fork, compile_after)
    for turn in history:

        def message(gas: int, turn: Round = turn) -> Message:
            return Message(SENDER, turn.to, turn.value, turn.data, gas, 10**9)

        for _ in range(turn.times):
            result = pair.run(message(turn.gas), undone=turn.undone)
        event(result.error.split(":")[0] if result.error else "succeeded")
        used = turn.gas - result.gas_left
        for gas in [*(int(part * used) for part in turn.parts), *(used + more for more in turn.surplus)]:
            pair.run(message(max(gas, 0)), undone=turn.undone)


# Every kind of price: memory, words hashed and copied, an exponent, a log's bytes, slots, accounts, calls, a loop.
PRICED = assemble(
    "7 200 MSTORE 100 10 KECCAK256 PUSH0 MSTORE 40 3 300 CALLDATACOPY 33 PUSH0 400 MCOPY 1000 3 EXP 32 MSTORE "
    "PUSH0 SLOAD POP 1 SLOAD POP 0xee BALANCE POP ADDRESS EXTCODESIZE POP 9 50 450 LOG1 5 1 TSTORE "
    "3 :again 1 SWAP1 SUB DUP1 @again JUMPI "
    "32 500 64 PUSH0 4 900 STATICCALL GAS ADD 600 MSTORE 640 PUSH0 RETURN"
)


def test_a_message_ends_alike_whatever_its_limit_of_gas_up_to_what_it_needs() -> None:
    pair = Pair([PRICED] * 3, AFTER_LONDON[-1], compile_after=0)

    def end(gas: int) -> Execution:
        return pair.run(Message(SENDER, ACCOUNTS[0], 0, b"data", gas, 0), undone=True)

    plenty = end(30_000)
    assert plenty.error is None
    assert {end(gas).error for gas in range(0, 29_000 - plenty.gas_left, 7)} == {"out of gas"}


@pytest.mark.parametrize(
    "place", [4, 5, 0, 500, 1 << 255], ids=["in a PUSH", "its end", "no JUMPDEST", "beyond the end", "far beyond"]
)
def test_a_jump_to_where_none_may_lead_is_called_what_geth_calls_it(place: int) -> None:
    pair = Pair([push(place) + b"\x56\x61\x5b\x5b"] * 3, AFTER_LONDON[-1], compile_after=0)
    result = pair.run(Message(SENDER, ACCOUNTS[0], 0, b"", 1_000, 0), undone=True)
    assert (result.error, result.gas_left) == ("invalid jump destination", 0)  # core/vm/errors.go, ErrInvalidJump


@pytest.mark.parametrize(
    "write",
    ["0x77777777777777 {at} MSTORE", "0x77 {at} MSTORE8", "20 100 {at} MCOPY", "20 PUSH0 {at} CALLDATACOPY"],
    ids=["MSTORE", "MSTORE8", "MCOPY", "CALLDATACOPY"],
)
def test_a_word_of_memory_is_read_as_it_is_after_writes_that_overlap_it(write: str) -> None:
    for at in range(90, 170):
        overlapping = write.format(at=at)
        read = (
            f"0x{'12' * 32} 128 MSTORE {overlapping} 128 MLOAD 300 MSTORE 64 128 KECCAK256 340 MSTORE 400 PUSH0 RETURN"
        )
        pair = Pair([assemble(read)] * 3, AFTER_LONDON[-1], compile_after=0)
        pair.run(Message(SENDER, ACCOUNTS[0], 0, b"data" * 9, 100_000, 0), undone=True)


def run_with_entries(name: str, held: int) -> None:
    """An opcode at the begin of a function of its own: code jumps there as data tell it."""
    place = 64 if held < 32 else 2_048
    filled = assemble("PUSH0") * held + (assemble("PUSH0 CALLDATALOAD JUMP") if held < 1_024 else b"")
    code = filled.ljust(place, b"\x5b") + b"\x5b" + bytes((BY_NAME[name],)) + assemble("PUSH0 STOP")
    pair = Pair([code] * 3, AFTER_LONDON[-1], compile_after=0)
    pair.run(Message(SENDER, ACCOUNTS[0], 0, place.to_bytes(32, "big"), 100_000, 0), undone=True)


@pytest.mark.parametrize("name", [name for name in BY_NAME if not name.startswith("PUSH")])
def test_too_few_entries_on_the_stack_are_told_as_the_interpreter_tells_them(name: str) -> None:
    operands = OPERANDS[BY_NAME[name]]
    for held in {max(operands - 1, 0), operands}:
        run_with_entries(name, held)


@pytest.mark.parametrize("held", [1_022, 1_023, 1_024])
@pytest.mark.parametrize(
    "name", ["PUSH0", "CALLER", "DUP1", "SWAP16", "GAS", "MSIZE", "PC", "DIFFICULTY", "ADD", "POP"]
)
def test_too_many_entries_on_the_stack_are_told_as_the_interpreter_tells_them(name: str, held: int) -> None:
    run_with_entries(name, held)


CALLED = "PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 4 GAS CALL POP "
ASKING = f"PUSH0 PUSH0 PUSH0 PUSH0 0x{ACCOUNTS[1].hex()} GAS STATICCALL PUSH0 MSTORE 32 PUSH0 RETURN"
PASSING = deploying(assemble("CALLER SELFDESTRUCT"))
PLACES = {
    "its own balance": "SELFBALANCE PUSH0 MSTORE 32 PUSH0 RETURN",
    "that an account is new": (  # and so may be destroyed (EIP-6780)
        f"0x{PASSING.hex():0<64} PUSH0 MSTORE {len(PASSING)} PUSH0 PUSH0 CREATE "
        "PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 DUP6 GAS CALL POP PUSH0 MSTORE 32 PUSH0 RETURN"
    ),
    "entries of the stack after a call": (
        f"5 6 {CALLED} DUP2 DUP2 ADD PUSH0 MSTORE POP POP 7 8 {CALLED} DUP2 DUP2 ADD 32 MSTORE 64 PUSH0 RETURN"
    ),
    "memory that a call wrote": (
        "1 PUSH0 MSTORE 2 32 MSTORE 32 PUSH0 32 32 4 GAS STATICCALL POP PUSH0 MLOAD 64 MSTORE 96 PUSH0 RETURN"
    ),
    "an area that begins where data tells": "40 CALLDATASIZE 99 MUL PUSH0 MCOPY MSIZE PUSH0 MSTORE 32 PUSH0 RETURN",
    "what came back": (
        "7 PUSH0 MSTORE PUSH0 PUSH0 32 PUSH0 4 GAS STATICCALL RETURNDATASIZE PUSH0 64 RETURNDATACOPY 96 PUSH0 RETURN"
    ),
    "one of two ways": "CALLDATASIZE 3 GT @left JUMPI 1 PUSH0 MSTORE @end JUMP :left 2 PUSH0 MSTORE :end 32 PUSH0 RETURN",
}


@pytest.mark.parametrize("text", PLACES.values(), ids=PLACES)
def test_what_was_known_is_known_only_as_long_as_it_holds(text: str) -> None:
    pair = Pair([assemble(text)] * 3, AFTER_LONDON[-1], compile_after=1)
    for data in (b"", b"data", b"", b"data", b""):
        result = pair.run(Message(SENDER, ACCOUNTS[0], 0, data, 100_000, 0), undone=False)
        assert result.error is None


@pytest.mark.parametrize("write", ["1 1 SSTORE", "1 1 TSTORE", "PUSH0 PUSH0 LOG0", "PUSH0 1 1 SLOAD LOG1"])
def test_nothing_is_written_in_a_static_call(write: str) -> None:
    pair = Pair([assemble(ASKING), assemble(write), b""], AFTER_LONDON[-1], compile_after=0)
    asked = pair.run(Message(SENDER, ACCOUNTS[0], 0, b"", 100_000, 0), undone=False)
    assert asked.output == bytes(32)  # the call failed
    assert pair.run(Message(SENDER, ACCOUNTS[1], 0, b"", 100_000, 0), undone=False).error is None


NUMBERS = (0, 1, 2, 30, 31, 32, 255, 256, (1 << 255) - 1, 1 << 255, (1 << 256) - 1)
UNARY = ("NOT", "ISZERO", "ISZERO ISZERO", "ISZERO NOT", "CLZ")
BINARY = "ADD MUL SUB DIV SDIV MOD SMOD EXP SIGNEXTEND LT GT SLT SGT EQ AND OR XOR BYTE SHL SHR SAR"
SUMS = [
    *UNARY,
    *BINARY.split(),
    *(f"{name} {turn}" for name in ("LT", "SGT", "EQ") for turn in UNARY[:4]),
    "ADDMOD",
    "MULMOD",
]


@pytest.mark.parametrize("sum_", SUMS)
def test_numbers_at_the_edges_are_reckoned_with_whether_they_are_known_before_or_not(sum_: str) -> None:
    first = sum_.split(maxsplit=1)[0]
    pairs = [(one, other) for one in NUMBERS for other in (NUMBERS if first not in UNARY else (0,))]
    code, data = b"", b""
    for at, pair in enumerate(pairs):
        third = push(NUMBERS[at % len(NUMBERS)]) if first.endswith("MOD") and len(first) == 6 else b""
        for place, operands in enumerate(
            (push(pair[1]) + push(pair[0]), assemble(f"{64 * at + 32} CALLDATALOAD {64 * at} CALLDATALOAD"))
        ):
            code += third + operands + b"".join(bytes((BY_NAME[name],)) for name in sum_.split())
            code += assemble(f"{64 * at + 32 * place} MSTORE") + (b"\x50" if first in UNARY else b"")
        data += b"".join(number.to_bytes(32, "big") for number in pair)
    code += assemble(f"{64 * len(pairs)} PUSH0 RETURN")
    result = Pair([code] * 3, AFTER_LONDON[-1], compile_after=0).run(
        Message(SENDER, ACCOUNTS[0], 0, data, 1_000_000, 0), undone=True
    )
    words = [result.output[at : at + 32] for at in range(0, len(result.output), 32)]
    assert words[::2] == words[1::2]


VALUES = (0, 1, 2)


@pytest.mark.parametrize("held", [0, 1])
@pytest.mark.parametrize("values", list(product(VALUES, repeat=3)))
def test_a_slot_costs_and_gives_back_the_same_whatever_is_written_to_it_in_turn(
    values: Sequence[int], held: int
) -> None:
    code = assemble(" ".join(f"{value} {held} SSTORE" for value in values) + " 9 9 ADD POP")
    pair = Pair([code] * 3, AFTER_LONDON[-1], compile_after=0)

    def end(gas: int) -> Execution:
        return pair.run(Message(SENDER, ACCOUNTS[0], 0, b"", gas, 0), undone=True)

    used = 100_000 - end(100_000).gas_left
    for more in range(2_180, 2_200):  # the last SSTORE may find the 2300 it must have more than (EIP-2200)
        end(used + more)
