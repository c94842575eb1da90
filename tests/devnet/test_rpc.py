"""JSON-RPC 2.0 as clients see it: shapes of answers, batches and errors."""

import json
from typing import Any

import pytest

from tests.devnet.wallet import ALICE
from tests.support.devnet import Devnet, RpcFailure


def call(method: str, *params: Any, **extra: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)} | extra


def test_an_answer_has_the_callers_id(devnet: Devnet) -> None:
    for given in (7, "seven", None):
        answer = devnet.request(call("eth_chainId") | {"id": given})
        assert answer == {"jsonrpc": "2.0", "id": given, "result": "0x7a69"}


def test_params_may_be_missing(devnet: Devnet) -> None:
    assert devnet.request({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber"})["result"] == "0x0"


def test_a_batch_is_answered_in_order(devnet: Devnet) -> None:
    batch = [call("eth_chainId", id=5), call("eth_nonsense", id=3), call("eth_blockNumber", id=4)]
    answers = devnet.request(batch)
    assert [answer["id"] for answer in answers] == [5, 3, 4]
    assert [answer.get("result") for answer in answers] == ["0x7a69", None, "0x0"]
    assert answers[1]["error"]["code"] == -32601


def test_a_batch_of_submissions_gives_each_its_own_verdict(devnet: Devnet) -> None:
    signed = [ALICE.sign(nonce) for nonce in (0, 1, 1)]
    results = devnet.batch([("eth_sendRawTransaction", [item.raw]) for item in signed])
    assert results[:2] == [item.hash for item in signed[:2]]
    assert isinstance(results[2], RpcFailure)
    assert results[2].message == "already known"


def test_notifications_are_carried_out_and_not_answered(devnet: Devnet) -> None:
    note = {"jsonrpc": "2.0", "method": "evm_mine", "params": []}
    assert devnet.send(json.dumps(note).encode()) == (204, b"")
    answers = devnet.request([note, call("eth_blockNumber")])
    assert [answer["result"] for answer in answers] == ["0x2"]
    assert devnet.send(json.dumps([note]).encode()) == (204, b"")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"[]", -32600),
        (b"3", -32600),
        (b'{"id":1,"method":"eth_chainId"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"eth_chainId"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"} x', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":5}', -32602),
    ],
)
def test_malformed_requests_are_told_apart(devnet: Devnet, body: bytes, code: int) -> None:
    status, answer = devnet.send(body)
    assert status == 200
    assert json.loads(answer)["error"]["code"] == code
    assert "result" not in json.loads(answer)


def test_unknown_methods_are_named(devnet: Devnet) -> None:
    for method in ("eth_getWork", "ots_getApiLevel", "trace_block", "x"):
        with pytest.raises(RpcFailure, match=f"the method {method} does not exist/is not available") as caught:
            devnet.rpc(method)
        assert caught.value.code == -32601


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_getBalance", []),
        ("eth_getBalance", ["0x12", "latest"]),
        ("eth_getBalance", [ALICE.address, "newest"]),
        ("eth_getBlockByNumber", ["zz", False]),
        ("eth_getTransactionByHash", ["0x1234"]),
        ("eth_sendRawTransaction", [None]),
        ("eth_sendRawTransaction", ["abcd"]),
        ("eth_call", ["latest"]),
        ("eth_getLogs", [{"fromBlock": "0x5", "toBlock": "0x1"}]),
        ("eth_getLogs", [{"topics": [[], [], [], [], []]}]),
    ],
)
def test_bad_parameters_are_invalid_params(devnet: Devnet, method: str, params: list[Any]) -> None:
    with pytest.raises(RpcFailure) as caught:
        devnet.rpc(method, *params)
    assert caught.value.code == -32602


def test_blocks_beyond_the_head(devnet: Devnet) -> None:
    assert devnet.rpc("eth_getBlockByNumber", "0x99", False) is None
    assert devnet.rpc("eth_getBlockByHash", "0x" + "11" * 32, False) is None
    assert devnet.rpc("eth_getBlockReceipts", "0x99") is None
    with pytest.raises(RpcFailure, match="header not found") as caught:
        devnet.rpc("eth_getTransactionCount", ALICE.address, "0x99")
    assert caught.value.code == -32000
    with pytest.raises(RpcFailure, match="unknown block"):
        devnet.rpc("eth_getLogs", {"blockHash": "0x" + "11" * 32})
    with pytest.raises(RpcFailure, match="block range extends beyond current head block") as caught:
        devnet.rpc("eth_getLogs", {"fromBlock": "0x50", "toBlock": "0x60"})
    assert caught.value.code == -32602


def test_the_documentation_names_methods_that_exist() -> None:
    import re

    from devnet.server.rpc import METHODS
    from tests.support.devnet import ROOT

    section = (ROOT / "docs" / "devnet.md").read_text().partition("## Methods")[2].partition("##")[0]
    named = set(
        re.findall(r"`((?:eth|net|web3|txpool|anvil|evm|devnet|rpc|personal|debug)_[A-Za-z0-9_]+)[`(/]", section)
    )
    assert len(named) > 60
    assert named <= METHODS.keys()
    told = {METHODS[name] for name in named}
    untold = {name for name, function in METHODS.items() if function not in told}
    assert untold <= {
        "eth_getUncleByBlockHashAndIndex",
        "eth_getUncleByBlockNumberAndIndex",
        "eth_getUncleCountByBlockHash",
        "eth_getUncleCountByBlockNumber",
        "eth_getTransactionByBlockHashAndIndex",
        "eth_getTransactionByBlockNumberAndIndex",
    }
