"""eth_simulateV1 on our own chain. What geth answers to the 91 cases of execution-apis is in test_conformance."""

from typing import Any

import pytest

from tests.devnet.bytecode import BOOM, COUNTER, assemble, deploying
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER, GWEI, SOMEONE
from tests.support.devnet import Devnet, RpcFailure

POOR = "0x" + "77" * 20


def simulate(devnet: Devnet, *blocks: dict[str, Any], at: str = "latest", **options: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = devnet.rpc("eth_simulateV1", {"blockStateCalls": list(blocks)} | options, at)
    return found


def test_a_simulated_block_has_the_roots_of_the_mined_one(devnet: Devnet) -> None:
    devnet.rpc("eth_sendRawTransaction", ALICE.create(0, deploying(COUNTER)).raw)
    devnet.rpc("evm_mine")
    data = {"gas": hex(300_000), "maxFeePerGas": hex(10 * GWEI), "maxPriorityFeePerGas": hex(GWEI)}
    calls = [
        {"from": ALICE.address, "to": deployed(0), "nonce": "0x1"} | data,
        {"from": BOB.address, "to": CAROL.address, "value": "0x5", "nonce": "0x0"} | data,
    ]
    devnet.rpc("evm_increaseTime", 12)
    for signed in (ALICE.call(1, deployed(0)), BOB.sign(0, to=CAROL.address, value=5, gas=300_000)):
        devnet.rpc("eth_sendRawTransaction", signed.raw)
    devnet.rpc("evm_mine")
    mined = devnet.rpc("eth_getBlockByNumber", "0x2", False)
    overrides = {"time": mined["timestamp"], "prevRandao": mined["mixHash"], "feeRecipient": mined["miner"]}
    [block] = simulate(devnet, {"blockOverrides": overrides, "calls": calls}, at="0x1", validation=True)
    for field in ("number", "parentHash", "baseFeePerGas", "gasUsed", "receiptsRoot", "logsBloom", "stateRoot"):
        assert block[field] == mined[field], field
    assert [call["status"] for call in block["calls"]] == ["0x1", "0x1"]
    assert block["calls"][0]["logs"][0]["topics"] == ["0x" + (42).to_bytes(32, "big").hex()]


def test_nothing_of_a_simulation_stays(devnet: Devnet) -> None:
    devnet.rpc("eth_sendRawTransaction", ALICE.create(0, deploying(COUNTER)).raw)
    devnet.rpc("evm_mine")
    head = devnet.rpc("eth_getBlockByNumber", "latest", False)
    calls = [{"from": ALICE.address, "to": deployed(0)}] * 2
    for at in ("latest", "0x0"):
        simulate(devnet, {"calls": calls, "stateOverrides": {POOR: {"balance": "0x1"}}}, {"calls": calls}, at=at)
    with pytest.raises(RpcFailure):
        simulate(devnet, {"calls": [*calls, {"from": POOR, "to": BOB.address, "value": "0x1"}]})
    assert devnet.rpc("eth_getBlockByNumber", "latest", False) == head
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x1"
    assert int(devnet.rpc("eth_getStorageAt", deployed(0), "0x0", "latest"), 16) == 0
    assert devnet.rpc("eth_getBalance", POOR, "latest") == "0x0"
    devnet.rpc("evm_mine")
    [block] = simulate(devnet, {}, at="0x1", validation=True)
    mined = devnet.rpc("eth_getBlockByNumber", "0x2", False)
    assert block["baseFeePerGas"] == mined["baseFeePerGas"]
    assert block["parentHash"] == head["hash"]


def test_blocks_see_what_blocks_before_them_did(devnet: Devnet) -> None:
    counter = {POOR: {"code": "0x" + COUNTER.hex()}}
    calls = [{"to": POOR}, {"to": POOR}]
    first, gap, second = simulate(
        devnet,
        {"stateOverrides": counter, "calls": calls},
        {"blockOverrides": {"number": "0x3"}, "calls": calls},
    )
    counted = [int(call["returnData"], 16) for block in (first, second) for call in block["calls"]]
    assert counted == [1, 2, 3, 4]
    assert [block["number"] for block in (first, gap, second)] == ["0x1", "0x2", "0x3"]
    assert gap["calls"] == []
    times = [int(block["timestamp"], 16) for block in (first, gap, second)]
    assert times == [times[0], times[0] + 12, times[0] + 24]
    assert [gap["parentHash"], second["parentHash"]] == [first["hash"], gap["hash"]]
    # BLOCKHASH of the block before
    asks = {"code": "0x" + assemble("1 NUMBER SUB BLOCKHASH PUSH0 MSTORE 32 PUSH0 RETURN").hex()}
    first, second = simulate(devnet, {}, {"stateOverrides": {POOR: asks}, "calls": [{"to": POOR}]})
    assert second["calls"][0]["returnData"] == first["hash"]


def test_movements_of_ether_are_logged_on_request(devnet: Devnet) -> None:
    forwards = assemble(f"PUSH0 PUSH0 PUSH0 PUSH0 3 {SOMEONE} GAS CALL STOP")
    calls = [{"from": ALICE.address, "to": POOR, "value": "0x7"}]
    overrides = {POOR: {"code": "0x" + forwards.hex()}}
    [block] = simulate(devnet, {"calls": calls, "stateOverrides": overrides}, traceTransfers=True)
    logs = block["calls"][0]["logs"]
    assert [log["address"] for log in logs] == ["0x" + "ee" * 20] * 2
    assert [int(log["data"], 16) for log in logs] == [7, 3]
    moves = [("0x" + log["topics"][1][26:], "0x" + log["topics"][2][26:]) for log in logs]
    assert moves == [(ALICE.address, POOR), (POOR, SOMEONE)]
    assert block["logsBloom"] == "0x" + "00" * 256
    [block] = simulate(devnet, {"calls": calls, "stateOverrides": overrides})
    assert block["calls"][0]["logs"] == []


def test_a_failing_call_is_told_and_the_next_one_runs(devnet: Devnet) -> None:
    overrides = {POOR: {"code": "0x" + BOOM.hex()}, SOMEONE: {"code": "0xfe"}}
    calls = [{"to": POOR}, {"to": SOMEONE, "gas": hex(50_000)}, {"to": BOB.address}]
    [block] = simulate(devnet, {"stateOverrides": overrides, "calls": calls})
    reverted, halted, fine = block["calls"]
    assert (reverted["status"], reverted["error"]["code"]) == ("0x0", 3)
    assert reverted["error"]["message"] == "execution reverted: boom"
    assert reverted["error"]["data"].startswith("0x08c379a0")
    assert halted["error"] == {"code": -32015, "message": "invalid opcode: INVALID"}
    assert (fine["status"], "error" in fine) == ("0x1", False)


def test_precompiles_move_for_one_block(devnet: Devnet) -> None:
    sha, identity = "0x" + "00" * 19 + "02", "0x" + "00" * 19 + "04"
    call = {"input": "0x616263"}
    moved = {"stateOverrides": {sha: {"movePrecompileToAddress": POOR}}}
    calls = {"calls": [call | {"to": to} for to in (POOR, sha, identity)]}
    first, second = simulate(devnet, moved | calls, calls)
    digest = "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert [call["returnData"] for call in first["calls"]] == [digest, "0x", "0x616263"]
    assert [call["returnData"] for call in second["calls"]] == ["0x", digest, "0x616263"]


def test_transactions_are_given_in_full_on_request(devnet: Devnet) -> None:
    calls = [{"from": ALICE.address, "to": BOB.address, "value": "0x1", "gas": "0x5208"}]
    [block] = simulate(devnet, {"calls": calls}, returnFullTransactions=True)
    [tx] = block["transactions"]
    assert (tx["from"], tx["to"], tx["value"], tx["type"]) == (ALICE.address, BOB.address, "0x1", "0x2")
    assert (tx["r"], tx["s"], tx["yParity"], tx["blockHash"]) == ("0x0", "0x0", "0x0", block["hash"])
    [again] = simulate(devnet, {"calls": calls})
    assert again["transactions"] == [tx["hash"]]


FAT = {"from": ALICE.address, "to": BOB.address}


@pytest.mark.parametrize(
    ("blocks", "options", "code", "message"),
    [
        ([], {}, -32602, "empty input"),
        ([{"calls": [{"from": POOR, "to": BOB.address, "value": "0x1"}]}], {}, -38014, "insufficient funds"),
        ([{"calls": [FAT | {"gas": "0x1"}]}], {}, -38013, "intrinsic gas too low: have 1, want 21000"),
        ([{"calls": [FAT | {"gas": hex(40_000_000)}]}], {}, -38015, "block gas limit reached"),
        (
            [{"calls": [FAT | {"nonce": "0x5", "maxFeePerGas": hex(9**11)}]}],
            {"validation": True},
            -38011,
            "nonce too high",
        ),
        ([{"calls": [FAT]}], {"validation": True}, -38012, "max fee per gas less than block base fee"),
        ([{"blockOverrides": {"number": "0x0"}}], {}, -38020, "block numbers must be in order: 0 <= 0"),
        ([{"blockOverrides": {"time": "0x1"}}], {}, -38021, "block timestamps must be in order"),
        ([{"blockOverrides": {"number": hex(257)}}], {}, -38026, "too many blocks"),
        ([{"stateOverrides": {POOR: {"movePrecompileToAddress": SOMEONE}}}], {}, -32000, "is not a precompile"),
        ([{"stateOverrides": {POOR: {"state": {}, "stateDiff": {}}}}], {}, -32000, "has both 'state' and 'stateDiff'"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_its_code(
    devnet: Devnet, blocks: list[dict[str, Any]], options: dict[str, bool], code: int, message: str
) -> None:
    with pytest.raises(RpcFailure, match=message) as caught:
        simulate(devnet, *blocks, **options)
    assert caught.value.code == code


def test_without_validation_fees_and_nonces_do_not_count(devnet: Devnet) -> None:
    [block] = simulate(devnet, {"calls": [FAT | {"nonce": "0x63", "value": hex(ETHER)}]})
    assert (block["calls"][0]["status"], block["baseFeePerGas"]) == ("0x1", "0x0")
