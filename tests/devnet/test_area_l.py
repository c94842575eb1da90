"""What other local chains were reported for, tried here as reported: entries B102 to B111 of the bug log.

B109, block time that runs away from the wall clock, is tried in test_clock.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.devnet.bytecode import assemble, deploying
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER, GWEI, SOMEONE, Signed, Wallet
from tests.support.devnet import Devnet, RpcFailure, start_devnet

UNKNOWN = "0x" + "77" * 20
MANUAL = ("--silent", "--no-mining", "--timestamp", "1700000000")


def send(devnet: Devnet, signed: Signed) -> str:
    return str(devnet.rpc("eth_sendRawTransaction", signed.raw))


def counts(devnet: Devnet, address: str) -> tuple[int, int]:
    """Latest and pending transaction count."""
    latest, pending = devnet.batch([("eth_getTransactionCount", [address, tag]) for tag in ("latest", "pending")])
    return int(latest, 16), int(pending, 16)


def block(devnet: Devnet, number: str = "latest") -> Any:
    return devnet.rpc("eth_getBlockByNumber", number, False)


def receipt(devnet: Devnet, tx_hash: str) -> Any:
    return devnet.rpc("eth_getTransactionReceipt", tx_hash)


def test_b102_the_pending_nonce_counts_the_pool_and_is_never_below_the_latest(devnet: Devnet) -> None:
    for nonce in (0, 1, 2):
        send(devnet, ALICE.sign(nonce))
    assert counts(devnet, ALICE.address) == (0, 3)
    devnet.rpc("evm_mine")
    assert counts(devnet, ALICE.address) == (3, 3)
    devnet.rpc("evm_setAutomine", True)
    send(devnet, ALICE.sign(3))
    devnet.rpc("anvil_mine", 5)
    assert counts(devnet, ALICE.address) == (4, 4)
    assert counts(devnet, UNKNOWN) == (0, 0)


def test_b103_a_gap_shows_in_the_pending_nonce_and_closes_by_itself(devnet: Devnet) -> None:
    devnet.rpc("anvil_setNonce", ALICE.address, hex(10))
    devnet.rpc("evm_setAutomine", True)
    ahead = ALICE.sign(15)
    send(devnet, ahead)
    assert counts(devnet, ALICE.address) == (10, 10)
    content = devnet.rpc("txpool_contentFrom", ALICE.address)
    assert (content["pending"], list(content["queued"])) == ({}, ["15"])
    before = int(devnet.rpc("eth_blockNumber"), 16)
    filled = [send(devnet, ALICE.sign(nonce)) for nonce in range(10, 15)]
    assert counts(devnet, ALICE.address) == (16, 16)
    assert [int(receipt(devnet, tx_hash)["blockNumber"], 16) - before for tx_hash in filled] == [1, 2, 3, 4, 5]
    assert block(devnet)["transactions"] == [filled[-1], ahead.hash]


def test_b104_every_ready_transaction_is_mined_in_nonce_order_and_known_from_acceptance_on(devnet: Devnet) -> None:
    draw = random.Random(104)
    kinds: list[dict[str, Any]] = [
        {"gasPrice": 9 * GWEI},
        {"type": 1, "accessList": [], "gasPrice": 7 * GWEI},
        {"maxFeePerGas": 30 * GWEI, "maxPriorityFeePerGas": 3 * GWEI},
        {"maxFeePerGas": 2 * GWEI, "maxPriorityFeePerGas": 1},
    ]
    signed = {nonce: ALICE.sign(nonce, **draw.choice(kinds)) for nonce in range(25)}
    devnet.rpc("evm_setBlockGasLimit", hex(9 * 21_000))
    try:
        for nonce in draw.sample(range(25), 25):
            assert send(devnet, signed[nonce]) == signed[nonce].hash
            assert devnet.rpc("eth_getTransactionByHash", signed[nonce].hash)["nonce"] == hex(nonce)
        with pytest.raises(RpcFailure, match="gas price below minimum: gas tip cap 0"):
            send(devnet, BOB.sign(0, gasPrice=0))
        for _ in range(3):
            devnet.rpc("evm_mine")
    finally:
        devnet.rpc("evm_setBlockGasLimit", hex(30_000_000))
    mined = [tx_hash for number in (1, 2, 3) for tx_hash in block(devnet, hex(number))["transactions"]]
    assert mined == [signed[nonce].hash for nonce in range(25)]
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}


def test_b105_count_and_acceptance_agree_after_a_restart_with_state(tmp_path: Path) -> None:
    state = str(tmp_path / "state.json")
    with start_devnet(*MANUAL, "--dump-state", state) as devnet:
        for nonce in range(5):
            send(devnet, ALICE.sign(nonce))
        devnet.rpc("evm_mine")
    with start_devnet(*MANUAL, "--load-state", state) as devnet:
        assert counts(devnet, ALICE.address) == (5, 5)
        with pytest.raises(RpcFailure, match="nonce too low: next nonce 5, tx nonce 4"):
            send(devnet, ALICE.sign(4))
        sent = send(devnet, ALICE.sign(5))
        devnet.rpc("evm_mine")
        assert receipt(devnet, sent)["status"] == "0x1"


@pytest.mark.parametrize("way", ["evm_revert", "anvil_reset"])
def test_b105_count_and_acceptance_agree_after_going_back(way: str) -> None:
    with start_devnet(*MANUAL) as devnet:
        snapshot = devnet.rpc("evm_snapshot")
        for nonce in range(5):
            send(devnet, ALICE.sign(nonce))
        devnet.rpc("evm_mine")
        send(devnet, ALICE.sign(5))
        devnet.rpc(way, *([snapshot] if way == "evm_revert" else []))
        assert counts(devnet, ALICE.address) == (0, 0)
        assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}
        sent = send(devnet, ALICE.sign(0))
        devnet.rpc("evm_mine")
        assert receipt(devnet, sent)["status"] == "0x1"


@pytest.mark.parametrize("nonce", [0, 5])
def test_b107_a_nonce_is_replaced_by_the_rule_whether_executable_or_queued(devnet: Devnet, nonce: int) -> None:
    def fees(cap: int, tip: int) -> dict[str, int]:
        return {"maxFeePerGas": cap * GWEI // 100, "maxPriorityFeePerGas": tip * GWEI // 100}

    first = ALICE.sign(nonce, **fees(1000, 100))
    send(devnet, first)
    refused: list[tuple[dict[str, int], str]] = [
        (fees(1090, 109), "replacement transaction underpriced"),
        (fees(1100, 100), "replacement transaction underpriced"),
        (fees(1000, 110), "replacement transaction underpriced"),
        (fees(1100, 0), "transaction gas price below minimum: gas tip cap 0, minimum needed 1"),
        ({"gasPrice": 1099 * GWEI // 100}, "replacement transaction underpriced"),
    ]
    for other, text in refused:
        with pytest.raises(RpcFailure) as caught:
            send(devnet, ALICE.sign(nonce, value=2, **other))
        assert caught.value.message == text
    with pytest.raises(RpcFailure, match=r"^-32000: already known$"):
        send(devnet, first)
    second, third = ALICE.sign(nonce, value=3, **fees(1100, 110)), ALICE.sign(nonce, gasPrice=1210 * GWEI // 100)
    send(devnet, second)
    send(devnet, third)
    status = {"pending": "0x1", "queued": "0x0"} if nonce == 0 else {"pending": "0x0", "queued": "0x1"}
    assert devnet.rpc("txpool_status") == status
    for before in range(nonce):
        send(devnet, ALICE.sign(before))
    devnet.rpc("evm_mine")
    assert receipt(devnet, third.hash)["status"] == "0x1"
    assert len(block(devnet)["transactions"]) == nonce + 1
    for gone in (first, second):
        assert receipt(devnet, gone.hash) is None
        assert devnet.rpc("eth_getTransactionByHash", gone.hash) is None


def test_b108_fee_history_has_the_rows_and_values_of_a_hand_calculation(devnet: Devnet) -> None:
    create = ALICE.create(1, deploying(b"\x00"), gas=60_000, maxPriorityFeePerGas=3 * GWEI)
    sent = [ALICE.sign(0, maxPriorityFeePerGas=2 * GWEI), create, BOB.sign(0), CAROL.sign(0, gasPrice=5 * GWEI)]
    for signed in sent:
        send(devnet, signed)
    devnet.rpc("evm_mine")
    devnet.rpc("evm_mine")
    send(devnet, BOB.sign(1))
    devnet.rpc("evm_mine")

    gas = int(receipt(devnet, create.hash)["gasUsed"], 16)
    used = 3 * 21_000 + gas
    fees = [GWEI, GWEI]  # genesis, and the first block of a devnet has the same
    for full in (used, 0, 21_000):  # EIP-1559 with the target at half of 30 million gas
        fees.append(fees[-1] - fees[-1] * (15_000_000 - full) // 15_000_000 // 8)
    # By tip: 1 gwei (Bob), 2 (Alice's first), 3 (the creation), 4 (Carol: 5 less the base fee), each over its gas.
    assert 21_000 < gas < 60_000
    whole = devnet.rpc("eth_feeHistory", "0x5", "latest", [0, 0.5, 50, 100])
    assert whole["oldestBlock"] == "0x0"
    assert [int(fee, 16) for fee in whole["baseFeePerGas"]] == fees
    assert whole["gasUsedRatio"] == [0, used / 30_000_000, 0, 21_000 / 30_000_000]
    assert [[int(tip, 16) // GWEI for tip in row] for row in whole["reward"]] == [
        [0, 0, 0, 0],
        [1, 1, 3, 4],
        [0, 0, 0, 0],
        [1, 1, 1, 1],
    ]
    assert 2 * 21_000 < used // 2 < 2 * 21_000 + gas  # the middle of the gas lies in the creation

    one = devnet.rpc("eth_feeHistory", 1, "latest", [])
    assert one["baseFeePerGas"] == [hex(fee) for fee in fees[3:]]
    assert (one["gasUsedRatio"], "reward" in one) == ([21_000 / 30_000_000], False)
    clipped = devnet.rpc("eth_feeHistory", 1024, "latest", [50])
    assert [len(clipped[name]) for name in ("baseFeePerGas", "gasUsedRatio", "reward")] == [5, 4, 4]
    assert devnet.rpc("eth_feeHistory", 0, "latest", []) == {"oldestBlock": "0x0", "gasUsedRatio": None}
    pending = devnet.rpc("eth_feeHistory", 5, "pending", [50])
    assert len(pending["baseFeePerGas"]) == len(pending["gasUsedRatio"]) + 1 == len(pending["reward"]) + 1
    for percentiles, text in {
        (50, 10): "invalid reward percentile: #0:50.000000 >= #1:10.000000",
        (101,): "invalid reward percentile: 101.000000",
        (-1,): "invalid reward percentile: -1.000000",
        (10, 10): "invalid reward percentile: #0:10.000000 >= #1:10.000000",
    }.items():
        with pytest.raises(RpcFailure) as caught:
            devnet.rpc("eth_feeHistory", 1, "latest", list(percentiles))
        assert (caught.value.code, caught.value.message) == (-32000, text)


def test_b110_a_sequence_of_one_sender_is_judged_by_the_block_being_built(devnet: Devnet) -> None:
    """The fifth spends what the fourth's receiver sends back in the same block; the ninth can really not be paid."""
    fee = 21_000 * 10 * GWEI

    def alice(nonce: int, value: int) -> Signed:
        return ALICE.sign(nonce, to=BOB.address, value=value, maxPriorityFeePerGas=(9 if nonce < 4 else 1) * GWEI)

    back = BOB.sign(0, to=ALICE.address, value=3 * ETHER, maxPriorityFeePerGas=5 * GWEI)
    own = [alice(nonce, {3: 4 * ETHER, 4: 2 * ETHER, 8: 5 * ETHER}.get(nonce, 1)) for nonce in range(10)]
    for signed in [*own, back]:
        send(devnet, signed)
    devnet.rpc("anvil_setBalance", ALICE.address, hex(4 * ETHER + 10 * fee))
    devnet.rpc("anvil_setBalance", BOB.address, hex(fee))
    devnet.rpc("evm_mine")
    assert block(devnet)["transactions"] == [item.hash for item in [*own[:4], back, *own[4:8]]]
    assert counts(devnet, ALICE.address)[0] == 8
    for left in own[8:]:
        assert devnet.rpc("eth_getTransactionByHash", left.hash)["blockHash"] is None
    assert list(devnet.rpc("txpool_contentFrom", ALICE.address)["pending"]) == ["8", "9"]
    devnet.rpc("anvil_setBalance", ALICE.address, hex(6 * ETHER))
    devnet.rpc("evm_mine")
    assert block(devnet)["transactions"] == [item.hash for item in own[8:]]


def test_b111_receipts_tell_each_transactions_own_gas_and_price(devnet: Devnet) -> None:
    reverting = deploying(assemble("PUSH0 PUSH0 REVERT"))
    setup = CAROL.create(0, reverting)
    send(devnet, setup)
    devnet.rpc("evm_mine")
    target = receipt(devnet, setup.hash)["contractAddress"]

    transfer = ALICE.sign(0, gasPrice=9 * GWEI)
    creation = ALICE.create(1, deploying(b"\x00"), gas=100_000, gasPrice=8 * GWEI, type=1, accessList=[])
    revert = ALICE.call(2, target, gas=50_000, maxFeePerGas=3 * GWEI, maxPriorityFeePerGas=2 * GWEI + 5)
    wallets: list[tuple[Wallet, Signed]] = [(ALICE, transfer), (ALICE, creation), (ALICE, revert)]
    before = int(devnet.rpc("eth_getBalance", ALICE.address, "latest"), 16)
    for _, signed in wallets:
        send(devnet, signed)
    devnet.rpc("evm_mine")

    head = block(devnet)
    base_fee = int(head["baseFeePerGas"], 16)
    receipts = [receipt(devnet, signed.hash) for _, signed in wallets]
    assert devnet.rpc("eth_getBlockReceipts", "latest") == receipts
    used = [int(item["gasUsed"], 16) for item in receipts]
    assert used[0] == 21_000
    assert [int(item["cumulativeGasUsed"], 16) for item in receipts] == [sum(used[: at + 1]) for at in range(3)]
    assert int(head["gasUsed"], 16) == sum(used)
    prices = [9 * GWEI, 8 * GWEI, base_fee + min(2 * GWEI + 5, 3 * GWEI - base_fee)]
    assert [int(item["effectiveGasPrice"], 16) for item in receipts] == prices
    assert [item["type"] for item in receipts] == ["0x0", "0x1", "0x2"]
    assert [item["status"] for item in receipts] == ["0x1", "0x1", "0x0"]
    assert [item["to"] for item in receipts] == [SOMEONE, None, target]
    assert [item["contractAddress"] is None for item in receipts] == [True, False, True]
    for at, item in enumerate(receipts):
        assert (item["from"], item["blockHash"], item["transactionIndex"]) == (ALICE.address, head["hash"], hex(at))
        assert item["logsBloom"] == "0x" + "00" * 256
    after = int(devnet.rpc("eth_getBalance", ALICE.address, "latest"), 16)
    assert before - after == 1 + sum(gas * price for gas, price in zip(used, prices, strict=True))
