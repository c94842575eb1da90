"""Time: the machine's, shifted, or moving on order only; and the blocks made by it."""

import asyncio
import itertools
import time
from collections.abc import Iterator

import pytest

from devnet.clock import Clock
from devnet.node import Node
from devnet.settings import Settings
from tests.devnet.connection import WebSocket
from tests.devnet.wallet import ALICE
from tests.support.devnet import Devnet, RpcFailure, put_back, start_devnet

GENESIS = 1_700_000_000


def times(devnet: Devnet, first: int = 0) -> list[int]:
    """Timestamps of the blocks from a number on, in seconds after genesis."""
    head = int(devnet.rpc("eth_blockNumber"), 16)
    return [
        int(devnet.rpc("eth_getBlockByNumber", hex(number), False)["timestamp"], 16) - GENESIS
        for number in range(first, head + 1)
    ]


FLAGS = ("--silent", "--clock", "manual", "--timestamp", str(GENESIS))


@pytest.fixture(scope="module")
def shared_manual() -> Iterator[Devnet]:
    with start_devnet(*FLAGS, "--no-mining") as devnet:
        yield devnet


@pytest.fixture
def manual(shared_manual: Devnet) -> Iterator[Devnet]:
    """Time moves on order, and blocks come on order."""
    with put_back(shared_manual) as devnet:
        yield devnet


def test_calls_happen_in_order_and_at_their_own_moments() -> None:
    clock = Clock(manual=True)
    clock.start_at(GENESIS)
    seen: list[tuple[str, float, int]] = []

    def note(name: str) -> None:
        seen.append((name, clock.elapsed(), clock.now() - GENESIS))

    clock.call_every(2, lambda: note("two"))
    clock.call_at(4, lambda: note("four"))
    clock.call_at(3, lambda: clock.call_at(3.5, lambda: note("nested")))
    never = clock.call_at(1, lambda: note("never"))
    never.cancel()
    clock.advance(1.5)
    assert seen == []
    clock.advance(5)
    assert seen == [("two", 2, 2), ("nested", 3.5, 3), ("four", 4, 4), ("two", 4, 4), ("two", 6, 6)]
    assert (clock.elapsed(), clock.now()) == (6.5, GENESIS + 6)


def test_tenths_of_a_second_add_up() -> None:
    clock = Clock(manual=True)
    calls: list[float] = []
    clock.call_every(0.1, lambda: calls.append(clock.elapsed()))
    for _ in range(10):
        clock.advance(0.3)
    assert len(calls) == 30
    assert clock.elapsed() == 3.0


def test_shifting_the_chains_time_lets_no_delay_pass() -> None:
    clock = Clock(manual=True)
    calls: list[int] = []
    clock.call_at(10, lambda: calls.append(clock.now()))
    clock.start_at(GENESIS)
    clock.offset += 3600
    clock.skew = -600
    assert (calls, clock.now()) == ([], GENESIS + 3000)
    clock.advance(10)
    assert calls == [GENESIS + 3010]


def test_sleepers_wake_by_order_or_by_the_machine() -> None:
    async def sleep() -> list[str]:
        clock, woken = Clock(manual=True), []

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(name)

        tasks = [
            asyncio.create_task(sleeper(name, at)) for name, at in (("late", 3600), ("early", 1800), ("last", 3600.05))
        ]
        running = asyncio.create_task(clock.run())
        await asyncio.sleep(0)
        clock.advance(3600)
        await asyncio.gather(*tasks[:2])
        assert woken == ["early", "late"]
        clock.set_manual(manual=False)
        await asyncio.wait_for(tasks[2], 20)
        running.cancel()
        return woken

    assert asyncio.run(sleep()) == ["early", "late", "last"]


def test_what_a_call_raises_ends_the_run() -> None:
    async def run() -> None:
        clock = Clock()
        clock.call_at(0, lambda: 1 // 0)
        await clock.run()

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run())


def test_a_machine_too_slow_for_the_interval_leaves_moments_out() -> None:
    async def run() -> list[float]:
        clock = Clock()
        calls: list[float] = []
        enough = asyncio.Event()

        def slow() -> None:
            calls.append(clock.elapsed())
            time.sleep(0.02)
            if len(calls) == 4:
                enough.set()

        clock.call_every(0.001, slow)
        running = asyncio.create_task(clock.run())
        await enough.wait()
        running.cancel()
        return calls

    calls = asyncio.run(run())
    assert all(later - earlier >= 0.02 for earlier, later in itertools.pairwise(calls))


def test_only_a_manual_clock_is_advanced() -> None:
    with pytest.raises(ValueError, match="manual"):
        Clock().advance(1)


def test_a_clock_let_go_runs_on_from_where_it_stood() -> None:
    clock = Clock(manual=True)
    clock.start_at(GENESIS)
    clock.advance(500)
    clock.set_manual(manual=False)
    assert GENESIS + 500 <= clock.now() <= GENESIS + 502
    clock.set_manual(manual=True)
    stood = clock.now()
    clock.advance(1)
    assert clock.now() == stood + 1


def test_a_manual_clock_makes_blocks_at_intervals_on_order_only(manual: Devnet) -> None:
    rpc = manual.rpc
    with WebSocket(manual) as client:
        client.rpc("eth_subscribe", "newHeads")
        rpc("evm_setIntervalMining", 2)
        assert times(manual) == [0]
        tx_hash = rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
        before = rpc("devnet_clock")
        told = rpc("devnet_clock", {"advance": 10})
        assert told == before | {"time": GENESIS + 10, "elapsed": before["elapsed"] + 10}
        assert times(manual) == [0, 2, 4, 6, 8, 10]
        assert [int(head["timestamp"], 16) - GENESIS for _, head in client.told_all()] == [2, 4, 6, 8, 10]
        assert rpc("eth_getTransactionReceipt", tx_hash)["blockNumber"] == "0x1"
    rpc("devnet_clock", {"advance": 1})
    rpc("evm_mine")
    rpc("devnet_clock", {"advance": 2.5})
    assert times(manual, 6) == [11, 12]
    rpc("evm_setIntervalMining", 5)
    rpc("devnet_clock", {"advance": 10})
    assert times(manual, 8) == [18, 23]


def test_equal_orders_give_equal_hashes_on_a_manual_clock() -> None:
    def history() -> list[bytes]:
        node = Node(Settings(automine=False, interval=3.0, timestamp=GENESIS, manual_clock=True))
        node.submit(bytes.fromhex(ALICE.sign(0).raw[2:]))
        node.clock.advance(7)
        node.submit(bytes.fromhex(ALICE.sign(1).raw[2:]))
        node.clock.advance(2)
        return [block.hash for block in node.chain.blocks]

    first = history()
    assert len(first) == 4
    assert history() == first


def test_a_snapshot_brings_back_the_manual_clocks_time() -> None:
    node = Node(Settings(automine=False, timestamp=GENESIS, manual_clock=True))
    snapshot = node.snapshot()
    hashes = []
    for _ in range(2):
        node.clock.advance(100)
        node.miner.mine()
        hashes.append(node.chain.head.hash)
        assert node.chain.head.header.timestamp == GENESIS + 100
        assert node.revert(snapshot)
        snapshot = node.snapshot()
        assert node.clock.now() == GENESIS
    assert node.clock.elapsed() == 200


def test_orders_of_a_clock_that_runs_by_itself(devnet: Devnet) -> None:
    with pytest.raises(RpcFailure, match="-32602: advance needs a manual clock"):
        devnet.rpc("devnet_clock", {"advance": 1})
    with pytest.raises(RpcFailure, match="no field 'forward'"):
        devnet.rpc("devnet_clock", {"forward": 1})
    stopped = devnet.rpc("devnet_clock", {"manual": True})
    assert devnet.rpc("devnet_clock", {"advance": 30})["time"] == stopped["time"] + 30
    assert devnet.rpc("devnet_clock", {"manual": False})["manual"] is False


def test_a_skewed_clock_shifts_blocks_but_never_below_their_parent(manual: Devnet) -> None:
    for orders in ({"skew": 15, "advance": 1}, {"skew": -15, "advance": 1}, {"advance": 60}):
        manual.rpc("devnet_clock", orders)
        manual.rpc("evm_mine")
    assert times(manual) == [0, 16, 16, 47]


def test_a_thousand_blocks_do_not_run_away_from_the_clock(devnet: Devnet) -> None:
    """Blocks within one second share its timestamp, as on anvil."""
    started = devnet.rpc("devnet_clock")["time"]
    devnet.rpc("evm_setAutomine", True)
    for first in range(0, 1000, 100):
        devnet.batch([("eth_sendRawTransaction", [ALICE.sign(nonce).raw]) for nonce in range(first, first + 100)])
    assert devnet.rpc("eth_blockNumber") == hex(1000)
    blocks = devnet.batch([("eth_getBlockByNumber", [hex(number), False]) for number in range(1, 1001)])
    stamps = [int(block["timestamp"], 16) for block in blocks]
    assert all(earlier <= later for earlier, later in itertools.pairwise(stamps))
    assert started <= stamps[0]
    assert stamps[-1] <= devnet.rpc("devnet_clock")["time"]


def test_ordered_times_behave_as_on_anvil(manual: Devnet) -> None:
    """Seen on anvil 1.7.1; each later block goes on from the ordered time."""
    rpc = manual.rpc
    offset = rpc("evm_increaseTime", 3600)
    rpc("evm_mine")
    assert rpc("evm_increaseTime", "0x10") == offset + 16
    rpc("evm_mine")
    assert times(manual, 1) == [3600, 3616]
    with pytest.raises(RpcFailure) as caught:
        rpc("evm_setNextBlockTimestamp", GENESIS + 3615)
    text = f"Timestamp error: {GENESIS + 3615} is lower than previous block's timestamp"
    assert (caught.value.code, caught.value.message) == (-32602, text)
    rpc("evm_setNextBlockTimestamp", GENESIS + 3616)
    rpc("evm_mine")
    rpc("evm_setNextBlockTimestamp", GENESIS + 3626)
    rpc("evm_mine")
    rpc("evm_mine")
    assert times(manual, 3) == [3616, 3626, 3626]
    assert rpc("anvil_setTime", GENESIS + 4000) == 374
    rpc("evm_mine")
    assert rpc("evm_setTime", (GENESIS + 5000) * 1000) == 1000
    rpc("evm_mine")
    assert times(manual, 6) == [4000, 5000]
    rpc("anvil_mine", 3, 10)
    assert times(manual, 8) == [5010, 5020, 5030]
    assert rpc("anvil_getGenesisTime") == GENESIS


def test_a_timestamp_interval_makes_times_strictly_rise(manual: Devnet) -> None:
    """Seen on anvil 1.7.1: the parent's time counts, whatever the clock says, and an ordered time goes first."""
    rpc = manual.rpc
    rpc("anvil_setBlockTimestampInterval", 10)
    rpc("anvil_mine", 2)
    rpc("evm_setNextBlockTimestamp", GENESIS + 120)
    rpc("anvil_mine", 2)
    rpc("evm_increaseTime", 50)
    rpc("evm_mine")
    assert times(manual, 1) == [10, 20, 120, 130, 140]
    assert rpc("anvil_removeBlockTimestampInterval") is True
    assert rpc("anvil_removeBlockTimestampInterval") is False
    rpc("evm_mine")
    assert times(manual, 6) == [170]


def test_mixed_mining_makes_blocks_by_both() -> None:
    with start_devnet(*FLAGS, "--block-time", "10", "--mixed-mining") as devnet:
        tx_hash = devnet.rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
        assert devnet.rpc("eth_getTransactionReceipt", tx_hash)["blockNumber"] == "0x1"
        devnet.rpc("devnet_clock", {"advance": 4})
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(1).raw)
        devnet.rpc("devnet_clock", {"advance": 16})
        assert times(devnet) == [0, 0, 4, 10, 20]
        assert devnet.rpc("anvil_getIntervalMining") == 10
        devnet.rpc("evm_setAutomine", True)
        devnet.rpc("devnet_clock", {"advance": 60})
        assert times(devnet) == [0, 0, 4, 10, 20]
