"""Tracers: geth's recorded answers for calls in every shape, and transactions of our own chain traced afterwards."""

import json
from typing import Any

import pytest
from eth_utils import keccak

from devnet.api.trace_options import parse_trace_options
from devnet.errors import RpcError
from tests.devnet.bytecode import BOOM, COUNTER, FACTORY, TOKEN, TRANSFER, assemble, deploying
from tests.devnet.conftest import GENESIS_TIME
from tests.devnet.geth_calls import RECORD, TRACERS, requests
from tests.devnet.scenario import blocks, deployed
from tests.devnet.wallet import ALICE, BOB, words
from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import Devnet, RpcFailure

ZERO = "0x" + "00" * 32
RECORDED: dict[str, Any] = json.loads(RECORD.read_text())


def without_ghosts(answer: Any) -> Any:
    """geth's prestateTracer lists touched accounts that are none as changed to a code hash of zeros; we do not."""
    post = answer["result"].get("post") if isinstance(answer.get("result"), dict) else None
    if post is not None:
        answer["result"]["post"] = {name: body for name, body in post.items() if body != {"codeHash": ZERO}}
    return answer


def ask(devnet: Devnet, method: str, params: list[Any]) -> Any:
    reply = devnet.request({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return {part: reply[part] for part in ("result", "error") if part in reply}


@pytest.mark.parametrize("tracer", TRACERS)
def test_calls_are_traced_as_geth_traces_them(devnet: Devnet, tracer: str) -> None:
    asked = [request for request in requests() if request[0].endswith(f" | {tracer or 'struct'}")]
    assert len(asked) > 30
    devnet.rpc("anvil_setBalance", "0x" + "00" * 19 + "02", "0x1")
    for name, method, params in asked:
        assert ask(devnet, method, params) == without_ghosts(RECORDED[name]), name


@pytest.fixture
def history(devnet: Devnet) -> list[str]:
    """The hashes of a chain of four blocks with transactions of every kind."""
    hashes = []
    for transactions in blocks():
        hashes += [devnet.rpc("eth_sendRawTransaction", signed.raw) for signed in transactions]
        devnet.rpc("evm_mine")
    return hashes


def test_traces_of_old_transactions_agree_with_their_receipts(devnet: Devnet, history: list[str]) -> None:
    root = devnet.rpc("eth_getBlockByNumber", "latest", False)["stateRoot"]
    for tx_hash in history:
        receipt = devnet.rpc("eth_getTransactionReceipt", tx_hash)
        frame = devnet.rpc(
            "debug_traceTransaction", tx_hash, {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
        )
        trace = devnet.rpc("debug_traceTransaction", tx_hash, None)
        assert (frame["gasUsed"], hex(trace["gas"])) == (receipt["gasUsed"], receipt["gasUsed"])
        assert trace["failed"] == ("error" in frame) == (receipt["status"] == "0x0")
        assert [(log["address"], log["data"], log["index"]) for log in logs_of(frame)] == [
            (log["address"], log["data"], log["logIndex"]) for log in receipt["logs"]
        ]
    devnet.rpc("anvil_rollback", 0)
    assert devnet.rpc("eth_getBlockByNumber", "latest", False)["stateRoot"] == root


def logs_of(frame: dict[str, Any]) -> list[dict[str, Any]]:
    inner = [log for call in frame.get("calls", []) for log in logs_of(call)]
    return sorted([*frame.get("logs", []), *inner], key=lambda log: int(log["index"], 16))


def test_a_block_is_traced_by_number_hash_and_bytes_alike(devnet: Devnet, history: list[str]) -> None:
    block = devnet.rpc("eth_getBlockByNumber", "0x2", False)
    options = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
    traces = devnet.rpc("debug_traceBlockByNumber", "0x2", options)
    assert traces == devnet.rpc("debug_traceBlockByHash", block["hash"], options)
    assert traces == devnet.rpc("debug_traceBlock", devnet.rpc("debug_getRawBlock", "0x2"), options)
    single = [devnet.rpc("debug_traceTransaction", tx_hash, options) for tx_hash in block["transactions"]]
    assert traces == [
        {"txHash": tx_hash, "result": result} for tx_hash, result in zip(block["transactions"], single, strict=True)
    ]


def test_a_call_is_traced_in_the_middle_of_a_block(devnet: Devnet, history: list[str]) -> None:
    # Block 2 counts up in its second and third transaction.
    counts = [
        int(devnet.rpc("debug_traceCall", {"to": deployed(0)}, "0x2", {"txIndex": hex(at)})["returnValue"], 16)
        for at in (1, 2, 3)
    ]
    assert counts == [1, 2, 3]
    assert int(devnet.rpc("debug_traceCall", {"to": deployed(0)}, "latest")["returnValue"], 16) == 3


def test_the_difference_of_a_transaction_is_what_the_state_shows(devnet: Devnet, history: list[str]) -> None:
    options = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
    [paid] = [tx for tx in history if devnet.rpc("eth_getTransactionByHash", tx)["from"] == BOB.address]
    number = devnet.rpc("eth_getTransactionByHash", paid)["blockNumber"]
    before = hex(int(number, 16) - 1)
    diff = devnet.rpc("debug_traceTransaction", paid, options)
    assert diff["pre"][BOB.address]["balance"] == devnet.rpc("eth_getBalance", BOB.address, before)
    assert diff["post"][BOB.address] == {"balance": devnet.rpc("eth_getBalance", BOB.address, number), "nonce": 1}


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("debug_traceTransaction", [ZERO], "transaction not found"),
        ("debug_traceBlockByNumber", ["0x0"], "genesis is not traceable"),
        ("debug_traceBlockByNumber", ["0x99"], "block #153 not found"),
        ("debug_traceBlockByHash", [ZERO], f"block {ZERO} not found"),
        ("debug_traceCall", [{}, "pending"], "tracing on top of pending is not supported"),
        ("debug_traceCall", [{}, "latest", {"tracer": "x"}], "ReferenceError: x is not defined at <eval>:1:2(0)"),
    ],
)
def test_what_cannot_be_traced_is_refused_in_geths_words(
    devnet: Devnet, method: str, params: list[Any], message: str
) -> None:
    with pytest.raises(RpcFailure) as caught:
        devnet.rpc(method, *params)
    assert (caught.value.code, caught.value.message) == (-32000, message)


def test_a_trace_ends_when_its_time_is_up_and_leaves_the_state_alone(devnet: Devnet) -> None:
    endless = "0x" + assemble("1 SLOAD 1 ADD 1 SSTORE :a @a JUMP").hex()
    devnet.rpc("anvil_setCode", BOB.address, endless)
    with pytest.raises(RpcFailure, match="execution timeout"):
        devnet.rpc("debug_traceCall", {"to": BOB.address}, "latest", {"tracer": "noopTracer", "timeout": "1ms"})
    assert devnet.rpc("eth_getStorageAt", BOB.address, "0x1", "latest") == ZERO


def test_durations_are_read_as_go_writes_them() -> None:
    seconds = [parse_trace_options({"timeout": text}).seconds for text in ("1.5s", "1m30s", "250ms")]
    assert seconds == [1.5, 90, 0.25]
    assert parse_trace_options({}).seconds == 5
    for text in ("5", "5x", "s", ""):
        with pytest.raises(RpcError, match="invalid duration"):
            parse_trace_options({"timeout": text})


def test_raw_bytes_hash_to_what_they_are(devnet: Devnet, history: list[str]) -> None:
    block = devnet.rpc("eth_getBlockByNumber", "0x2", False)
    header = bytes.fromhex(devnet.rpc("debug_getRawHeader", "0x2")[2:])
    assert "0x" + keccak(header).hex() == block["hash"]
    raw = devnet.rpc("debug_getRawBlock", block["hash"])
    assert len(raw) // 2 - 1 == int(block["size"], 16)
    assert header.hex() in raw
    assert len(devnet.rpc("debug_getRawReceipts", "0x2")) == len(block["transactions"])
    raw = devnet.rpc("debug_getRawTransaction", history[-1])
    assert raw == devnet.rpc("eth_getRawTransactionByHash", history[-1])
    assert devnet.rpc("debug_getRawTransaction", ZERO) == devnet.rpc("debug_getRawBlock", "0x99") == "0x"
    code_hash = "0x" + keccak(COUNTER).hex()
    assert devnet.rpc("debug_codeByHash", code_hash) == "0x" + COUNTER.hex()
    assert devnet.rpc("debug_codeByHash", ZERO) is None


def test_storage_is_listed_by_hash_as_a_transaction_met_it(devnet: Devnet, history: list[str]) -> None:
    block = devnet.rpc("eth_getBlockByNumber", "0x2", False)["hash"]
    token = deployed(1)
    assert devnet.rpc("debug_storageRangeAt", block, 3, token, "0x00", 10) == {"storage": {}, "nextKey": None}
    whole = devnet.rpc("debug_storageRangeAt", block, 4, token, "0x00", 10)
    keys = [int(entry["value"], 16) for entry in whole["storage"].values()]
    assert sorted(keys) == [7, 993]
    first, second = whole["storage"]
    assert first == "0x" + keccak(bytes.fromhex(whole["storage"][first]["key"][2:])).hex()
    page = devnet.rpc("debug_storageRangeAt", block, 4, token, "0x00", 1)
    assert (list(page["storage"]), page["nextKey"]) == ([first], second)
    rest = devnet.rpc("debug_storageRangeAt", block, 4, token, second, 1)
    assert (list(rest["storage"]), rest["nextKey"]) == ([second], None)


def test_setting_the_head_takes_blocks_off(devnet: Devnet, history: list[str]) -> None:
    devnet.rpc("debug_setHead", "0x1")
    assert devnet.rpc("eth_blockNumber") == "0x1"
    assert devnet.rpc("eth_getTransactionReceipt", history[-1]) is None
    assert devnet.rpc("eth_getTransactionByHash", history[-1])["blockHash"] is None


FIELDS = ("type", "from", "to", "value", "gas", "gasUsed", "input", "output", "revertReason", "logs")


def comparable(frame: dict[str, Any]) -> dict[str, Any]:
    """A frame without the numbers of its logs, which are the block's for us and the transaction's for anvil."""
    kept = {field: frame[field] for field in FIELDS if field in frame}
    for log in kept.get("logs", []):
        log.pop("index", None)
    return kept | {"failed": "error" in frame, "calls": [comparable(call) for call in frame.get("calls", [])]}


@pytest.mark.anvil
def test_the_tree_of_calls_is_anvils(devnet: Devnet) -> None:
    path, trouble = anvil_binary()
    if path is None:
        pytest.skip(trouble)
    caller = assemble(f"32 PUSH0 LOG0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 {deployed(2)} GAS CALL POP STOP")
    sent = [ALICE.create(at, deploying(code)) for at, code in enumerate((COUNTER, TOKEN, BOOM, FACTORY, caller))]
    transfer = TRANSFER + words([BOB.address, 7])
    sent += [
        ALICE.call(5, deployed(0)),
        ALICE.call(6, deployed(1), transfer),
        ALICE.call(7, deployed(2)),
        ALICE.call(8, deployed(3), value=5),
        ALICE.call(9, deployed(4)),
    ]
    options = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
    with start_anvil("--no-mining", "--timestamp", str(GENESIS_TIME)) as anvil:
        for node in (devnet, anvil):
            for signed in sent:
                node.rpc("eth_sendRawTransaction", signed.raw)
            node.rpc("evm_mine")
        for signed in sent:
            ours, theirs = (node.rpc("debug_traceTransaction", signed.hash, options) for node in (devnet, anvil))
            for field in ("gas", "gasUsed"):  # anvil's are the limit less the intrinsic gas, and the block's so far
                del ours[field], theirs[field]
            assert comparable(ours) == comparable(theirs)
