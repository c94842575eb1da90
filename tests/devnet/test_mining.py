"""When blocks are made and what time and base fee they carry."""

import itertools
import time

from tests.devnet.wallet import ALICE, BOB, GWEI
from tests.support.devnet import Devnet, start_devnet


def head(devnet: Devnet) -> int:
    return int(devnet.rpc("eth_blockNumber"), 16)


def timestamp(devnet: Devnet) -> int:
    return int(devnet.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)


def test_automine_makes_the_block_before_the_answer() -> None:
    with start_devnet("--silent") as devnet:
        for nonce in range(5):
            tx_hash = devnet.rpc("eth_sendRawTransaction", ALICE.sign(nonce).raw)
            assert devnet.rpc("eth_getTransactionReceipt", tx_hash)["blockNumber"] == hex(nonce + 1)
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(6).raw)
        assert head(devnet) == 5
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(5).raw)
        assert head(devnet) == 6
        assert len(devnet.rpc("eth_getBlockByNumber", "latest", False)["transactions"]) == 2
        assert devnet.rpc("anvil_getAutomine") is True
        devnet.rpc("evm_setAutomine", False)
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(7).raw)
        assert head(devnet) == 6
        devnet.rpc("evm_setAutomine", True)
        assert head(devnet) == 7


def test_a_full_block_leaves_the_rest_to_the_next(devnet: Devnet) -> None:
    devnet.rpc("evm_setBlockGasLimit", hex(50_000))
    try:
        for nonce in range(3):
            devnet.rpc("eth_sendRawTransaction", ALICE.sign(nonce).raw)
        devnet.rpc("evm_mine")
        assert devnet.rpc("eth_getBlockTransactionCountByNumber", "latest") == "0x2"
        devnet.rpc("evm_mine")
        assert devnet.rpc("eth_getBlockTransactionCountByNumber", "latest") == "0x1"
    finally:
        devnet.rpc("evm_setBlockGasLimit", hex(30_000_000))


def test_interval_mining_makes_blocks_by_itself(devnet: Devnet) -> None:
    before = head(devnet)
    tx_hash = devnet.rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
    devnet.rpc("evm_setIntervalMining", 0.05)
    deadline = time.monotonic() + 10
    while head(devnet) < before + 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    devnet.rpc("evm_setIntervalMining", 0)
    stopped = head(devnet)
    time.sleep(0.15)
    assert head(devnet) == stopped
    assert devnet.rpc("eth_getTransactionReceipt", tx_hash)["blockNumber"] == hex(before + 1)


def test_anvil_mine_makes_many(devnet: Devnet) -> None:
    devnet.rpc("anvil_mine", "0x5", "0xa")
    assert head(devnet) == 5
    times = [int(devnet.rpc("eth_getBlockByNumber", hex(at), False)["timestamp"], 16) for at in range(1, 6)]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [10] * 4


def test_safe_and_finalized_follow_at_their_distance(devnet: Devnet) -> None:
    devnet.rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
    devnet.rpc("anvil_mine", 33)

    def count(tag: str) -> str:
        return str(devnet.rpc("eth_getTransactionCount", ALICE.address, tag))

    assert (count("latest"), count("safe"), count("finalized")) == ("0x1", "0x1", "0x0")
    devnet.rpc("anvil_mine", 31)
    assert devnet.rpc("eth_getBlockByNumber", "finalized", False)["number"] == "0x0"
    assert devnet.rpc("eth_getBlockByNumber", "safe", False)["number"] == "0x20"
    devnet.rpc("evm_mine")
    assert count("finalized") == "0x1"
    first = devnet.rpc("eth_getBlockByNumber", "0x1", False)["hash"]
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, {"blockHash": first}) == "0x1"
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, first) == "0x1"


def test_time_can_be_ordered(devnet: Devnet) -> None:
    start = timestamp(devnet)
    devnet.rpc("evm_setNextBlockTimestamp", start + 1000)
    devnet.rpc("evm_mine")
    assert timestamp(devnet) == start + 1000
    devnet.rpc("evm_mine")
    assert start + 1000 <= timestamp(devnet) <= start + 1010
    devnet.rpc("evm_increaseTime", 5000)
    devnet.rpc("evm_mine")
    assert start + 6000 <= timestamp(devnet) <= start + 6020
    devnet.rpc("evm_mine", {"timestamp": start + 9000, "blocks": 2})
    assert timestamp(devnet) >= start + 9000


def test_a_time_ordered_for_the_next_block_stands_where_blocks_are_made_an_interval_apart(devnet: Devnet) -> None:
    ordered = int(devnet.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16) + 500
    devnet.rpc("evm_setNextBlockTimestamp", ordered)
    devnet.rpc("hardhat_mine", "0x2", "0x1")
    times = [int(devnet.rpc("eth_getBlockByNumber", number, False)["timestamp"], 16) for number in ("0x1", "0x2")]
    assert times == [ordered, ordered + 1]


def test_the_base_fee_follows_eip_1559(devnet: Devnet) -> None:
    fees = []
    for _ in range(3):
        devnet.rpc("evm_mine")
        fees.append(int(devnet.rpc("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16))
    assert fees == [GWEI, 875_000_000, 765_625_000]
    devnet.rpc("anvil_setNextBlockBaseFeePerGas", hex(7 * GWEI))
    assert int(devnet.rpc("eth_gasPrice"), 16) == 8 * GWEI
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getBlockByNumber", "latest", False)["baseFeePerGas"] == hex(7 * GWEI)
    assert devnet.rpc("eth_feeHistory", 1, "latest", [])["baseFeePerGas"] == [hex(7 * GWEI), hex(6_125_000_000)]


def test_the_pending_block_shows_what_comes_next(devnet: Devnet) -> None:
    tx_hash = devnet.rpc("eth_sendRawTransaction", ALICE.sign(0, to=BOB.address, value=5).raw)
    block = devnet.rpc("eth_getBlockByNumber", "pending", False)
    assert (block["number"], block["hash"], block["transactions"]) == ("0x1", None, [tx_hash])
    assert head(devnet) == 0
    assert devnet.rpc("eth_getBalance", BOB.address, "latest") == hex(10_000 * 10**18)
    assert devnet.rpc("eth_getBalance", BOB.address, "pending") == hex(10_000 * 10**18 + 5)
