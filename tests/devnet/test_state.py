"""Contracts: calls, estimates, logs and state at older blocks."""

from dataclasses import dataclass

import pytest

from tests.devnet.bytecode import BOOM, COUNTER, HALT, assemble, deploying
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI
from tests.support.devnet import Devnet, RpcFailure


@dataclass(frozen=True)
class Deployed:
    devnet: Devnet
    counter: str
    boom: str
    halt: str


@pytest.fixture
def contracts(devnet: Devnet) -> Deployed:
    for nonce, code in enumerate((COUNTER, BOOM, HALT)):
        devnet.rpc("eth_sendRawTransaction", ALICE.create(nonce, deploying(code)).raw)
    devnet.rpc("evm_mine")
    return Deployed(devnet, *(deployed(nonce) for nonce in range(3)))


def bump(contracts: Deployed, times: int) -> list[str]:
    """Count up, one block each; the hashes."""
    sent = []
    for _ in range(times):
        nonce = int(contracts.devnet.rpc("eth_getTransactionCount", ALICE.address, "pending"), 16)
        sent.append(contracts.devnet.rpc("eth_sendRawTransaction", ALICE.call(nonce, contracts.counter).raw))
        contracts.devnet.rpc("evm_mine")
    return sent


def test_code_and_storage_are_readable_at_any_block(contracts: Deployed) -> None:
    rpc = contracts.devnet.rpc
    assert rpc("eth_getCode", contracts.counter, "latest") == "0x" + COUNTER.hex()
    assert rpc("eth_getCode", contracts.counter, "0x0") == "0x"
    bump(contracts, 3)
    values = [int(rpc("eth_getStorageAt", contracts.counter, "0x0", hex(block)), 16) for block in range(1, 5)]
    assert values == [0, 1, 2, 3]
    rpc("anvil_setStorageAt", contracts.counter, "0x0", "0x" + (77).to_bytes(32, "big").hex())
    assert int(rpc("eth_getStorageAt", contracts.counter, "0x" + "00" * 32, "latest"), 16) == 77


def test_calls_run_at_older_blocks_and_leave_no_trace(contracts: Deployed) -> None:
    bump(contracts, 3)
    rpc = contracts.devnet.rpc
    root = rpc("eth_getBlockByNumber", "latest", False)["stateRoot"]
    call = {"from": BOB.address, "to": contracts.counter}
    results = [int(rpc("eth_call", call, hex(block)), 16) for block in range(1, 5)]
    assert results == [1, 2, 3, 4]
    override = {contracts.counter: {"stateDiff": {"0x" + "00" * 32: "0x" + (40).to_bytes(32, "big").hex()}}}
    assert int(rpc("eth_call", call, "latest", override), 16) == 41
    assert int(rpc("eth_call", call, "latest"), 16) == 4
    assert rpc("eth_getTransactionCount", BOB.address, "latest") == "0x0"
    rpc("anvil_rollback", 0)
    assert rpc("eth_getBlockByNumber", "latest", False)["stateRoot"] == root


def test_a_pending_call_sees_the_pool(contracts: Deployed) -> None:
    rpc = contracts.devnet.rpc
    rpc("eth_sendRawTransaction", ALICE.call(3, contracts.counter).raw)
    call = {"to": contracts.counter}
    assert int(rpc("eth_call", call, "latest"), 16) == 1
    assert int(rpc("eth_call", call, "pending"), 16) == 2


def test_a_revert_is_error_3_with_its_data(contracts: Deployed) -> None:
    for method in ("eth_call", "eth_estimateGas"):
        with pytest.raises(RpcFailure) as caught:
            contracts.devnet.rpc(method, {"from": ALICE.address, "to": contracts.boom})
        assert (caught.value.code, caught.value.message) == (3, "execution reverted: boom")
        assert caught.value.data.startswith("0x08c379a0")
        with pytest.raises(RpcFailure) as caught:
            contracts.devnet.rpc(method, {"to": contracts.halt, "gas": hex(100_000)})
        assert (caught.value.code, caught.value.data) == (-32000, None)
        assert caught.value.message.startswith("invalid opcode")


def test_a_call_needs_the_funds_it_names(contracts: Deployed) -> None:
    rich = {"from": ALICE.address, "to": BOB.address, "value": hex(20_000 * ETHER)}
    for method in ("eth_call", "eth_estimateGas"):
        with pytest.raises(RpcFailure, match="insufficient funds for gas") as caught:
            contracts.devnet.rpc(method, rich)
        assert caught.value.code == -32000


def test_an_estimate_is_little_more_than_the_least_that_succeeds(contracts: Deployed) -> None:
    devnet = contracts.devnet
    gas = int(devnet.rpc("eth_estimateGas", {"from": ALICE.address, "to": contracts.counter}), 16)
    short = devnet.rpc("eth_sendRawTransaction", ALICE.call(3, contracts.counter, gas=int(gas * 0.985)).raw)
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", short)["status"] == "0x0"
    enough = devnet.rpc("eth_sendRawTransaction", ALICE.call(4, contracts.counter, gas=gas).raw)
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", enough)["status"] == "0x1"
    with pytest.raises(RpcFailure, match="gas required exceeds allowance"):
        devnet.rpc("eth_estimateGas", {"from": ALICE.address, "to": contracts.counter, "gas": hex(24_000)})


def test_logs_are_found_by_block_address_and_topic(contracts: Deployed) -> None:
    sent = bump(contracts, 3)
    rpc = contracts.devnet.rpc
    topic = "0x" + (42).to_bytes(32, "big").hex()
    logs = rpc("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest", "address": contracts.counter})
    assert [log["transactionHash"] for log in logs] == sent
    assert [int(log["data"], 16) for log in logs] == [1, 2, 3]
    assert logs[0]["topics"] == [topic]
    assert len(rpc("eth_getLogs", {"fromBlock": "0x0", "topics": [topic]})) == 3
    assert len(rpc("eth_getLogs", {"fromBlock": "0x0", "topics": [[topic, "0x" + "00" * 32]]})) == 3
    assert rpc("eth_getLogs", {"fromBlock": "0x0", "topics": [topic, None]}) == []
    assert rpc("eth_getLogs", {"fromBlock": "0x0", "address": [contracts.boom]}) == []
    assert rpc("eth_getLogs", {"blockHash": logs[1]["blockHash"]}) == [logs[1]]
    assert len(rpc("eth_getLogs", {"fromBlock": "0x3", "toBlock": "0x3"})) == 1


def test_block_receipts_are_the_single_ones(contracts: Deployed) -> None:
    rpc = contracts.devnet.rpc
    receipts = rpc("eth_getBlockReceipts", "0x1")
    assert receipts == [rpc("eth_getTransactionReceipt", item["transactionHash"]) for item in receipts]
    assert [item["contractAddress"] for item in receipts] == [contracts.counter, contracts.boom, contracts.halt]
    block = rpc("eth_getBlockByNumber", "0x1", True)
    assert block["transactions"][1] == rpc("eth_getTransactionByHash", receipts[1]["transactionHash"])
    assert block["transactions"][1] == rpc("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x1")
    raw = rpc("eth_getRawTransactionByHash", receipts[0]["transactionHash"])
    assert raw == ALICE.create(0, deploying(COUNTER)).raw


def test_deep_recursion_ends_by_gas_not_by_a_crash(devnet: Devnet) -> None:
    loop = assemble("PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 ADDRESS GAS CALL STOP")
    devnet.rpc("anvil_setCode", BOB.address, "0x" + loop.hex())
    assert devnet.rpc("eth_call", {"to": BOB.address, "gas": hex(30_000_000)}, "latest") == "0x"


def test_send_transaction_signs_for_the_development_accounts(devnet: Devnet) -> None:
    tx_hash = devnet.rpc("eth_sendTransaction", {"from": ALICE.address, "to": BOB.address, "value": "0x5"})
    tx = devnet.rpc("eth_getTransactionByHash", tx_hash)
    assert (tx["type"], tx["nonce"], tx["gas"], tx["from"]) == ("0x2", "0x0", "0x5208", ALICE.address)
    legacy = {"from": ALICE.address, "to": BOB.address, "gasPrice": hex(5 * GWEI)}
    assert devnet.rpc("eth_getTransactionByHash", devnet.rpc("eth_sendTransaction", legacy))["type"] == "0x0"
    listed = legacy | {"accessList": [{"address": BOB.address, "storageKeys": []}]}
    tx = devnet.rpc("eth_getTransactionByHash", devnet.rpc("eth_sendTransaction", listed))
    assert (tx["type"], tx["nonce"]) == ("0x1", "0x2")
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x3"
    with pytest.raises(RpcFailure, match="unknown account"):
        devnet.rpc("eth_sendTransaction", {"from": "0x" + "77" * 20, "to": BOB.address})


def test_fee_history_weighs_tips_by_gas(devnet: Devnet) -> None:
    devnet.rpc("eth_sendRawTransaction", ALICE.sign(0, maxPriorityFeePerGas=GWEI).raw)
    devnet.rpc("eth_sendRawTransaction", BOB.sign(0, maxPriorityFeePerGas=3 * GWEI).raw)
    devnet.rpc("evm_mine")
    history = devnet.rpc("eth_feeHistory", "0x5", "latest", [0, 49, 51, 100])
    assert history["reward"] == [["0x0"] * 4, [hex(GWEI), hex(GWEI), hex(3 * GWEI), hex(3 * GWEI)]]
    assert history["gasUsedRatio"] == [0.0, 42_000 / 30_000_000]
    assert len(history["baseFeePerGas"]) == 3
    assert devnet.rpc("eth_maxPriorityFeePerGas") == hex(GWEI)
