"""Compiled code against py-evm's interpreter: the same messages on two equal worlds, everything compared after each.

FENCED_PROGRAMS sets how many histories (`FENCED_PROGRAMS=20000`), FENCED_PROGRAM_SEED what they are drawn from.
"""

import os
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, event, given, seed, settings
from hypothesis import strategies as st

from devnet.evm.engine import BlockContext, Execution, Message
from devnet.evm.forks import FORKS, Fork
from devnet.evm.pyevm import PyEvm
from devnet.evm.world import World
from tests.devnet.programs import ACCOUNTS, SENDER, codes

PROGRAMS = int(os.environ.get("FENCED_PROGRAMS", "100"))
SEED = int(os.environ.get("FENCED_PROGRAM_SEED", "11"))
AFTER_LONDON = [fork for fork in FORKS if fork.has_base_fee]
FORK = st.one_of(st.sampled_from(AFTER_LONDON), st.just(AFTER_LONDON[-1]))
PHASES = (Phase.generate, Phase.shrink)
ETHER = 10**18
MOST_GAS = 120_000  # loops end by it


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
    times=st.integers(1, 4),
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
    compile_after=st.sampled_from([0, 1, 1, 2, 4]),
    history=st.lists(rounds, min_size=1, max_size=4),
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
