"""Several lagging nodes behind one address: each answers consistently, together they contradict themselves."""

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from tests.devnet.bytecode import COUNTER, deploying
from tests.devnet.scenario import deployed
from tests.devnet.sending import Connection, ask, call
from tests.devnet.wallet import ALICE, SOMEONE
from tests.support.devnet import Devnet, RpcFailure

SEND = "eth_sendRawTransaction"


def at(devnet: Devnet, node: int, method: str, *params: Any) -> Any:
    answer = ask(devnet, call(method, *params), f"/node/{node}").json
    if "error" in answer:
        raise RpcFailure(answer["error"])
    return answer["result"]


@pytest.fixture
def nodes(devnet: Devnet) -> Iterator[Devnet]:
    """Five blocks with a transfer each; node 1 is two blocks behind."""
    for nonce in range(5):
        devnet.rpc(SEND, ALICE.sign(nonce).raw)
        devnet.rpc("evm_mine")
    devnet.rpc("devnet_nodes", {"n": 2, "lag": [0, 2]})
    return devnet


def test_taking_turns_makes_the_block_number_go_back(nodes: Devnet) -> None:
    assert [nodes.rpc("eth_blockNumber") for _ in range(4)] == ["0x5", "0x3", "0x5", "0x3"]


def test_a_seen_receipt_is_null_again_and_a_nonce_is_stale(nodes: Devnet) -> None:
    newest = ALICE.sign(4).hash
    assert nodes.rpc("eth_getTransactionReceipt", newest)["blockNumber"] == "0x5"
    assert nodes.rpc("eth_getTransactionReceipt", newest) is None
    assert [at(nodes, node, "eth_getTransactionCount", ALICE.address, "latest") for node in (0, 1)] == ["0x5", "0x3"]


def test_a_lagging_node_agrees_with_itself(nodes: Devnet) -> None:
    newest = ALICE.sign(4).hash
    block = at(nodes, 1, "eth_getBlockByNumber", "latest", False)
    assert block["number"] == "0x3"
    assert at(nodes, 1, "eth_getBlockByNumber", "0x4", False) is None
    hidden = at(nodes, 0, "eth_getBlockByNumber", "0x5", False)["hash"]
    assert at(nodes, 1, "eth_getBlockByHash", hidden, False) is None
    with pytest.raises(RpcFailure, match="header not found"):
        at(nodes, 1, "eth_getBalance", SOMEONE, "0x4")
    assert at(nodes, 1, "eth_getBalance", SOMEONE, "latest") == "0x3"
    assert at(nodes, 1, "eth_getBalance", SOMEONE, "0x2") == "0x2"
    assert at(nodes, 1, "eth_getTransactionByHash", newest)["blockHash"] is None
    assert at(nodes, 1, "eth_getTransactionCount", ALICE.address, "pending") == "0x5"
    assert at(nodes, 1, "txpool_status") == {"pending": "0x2", "queued": "0x0"}
    history = at(nodes, 1, "eth_feeHistory", 2, "latest", [])
    assert history["oldestBlock"] == "0x2"
    assert history["baseFeePerGas"][2] == at(nodes, 0, "eth_getBlockByNumber", "0x4", False)["baseFeePerGas"]
    pending = at(nodes, 1, "eth_getBlockByNumber", "pending", False)
    assert (pending["number"], len(pending["transactions"])) == ("0x4", 2)


def test_calls_and_logs_are_those_of_the_lagging_head(devnet: Devnet) -> None:
    devnet.rpc(SEND, ALICE.create(0, deploying(COUNTER)).raw)
    devnet.rpc("evm_mine")
    counter = deployed(0)
    for nonce in range(1, 4):
        devnet.rpc(SEND, ALICE.call(nonce, counter).raw)
        devnet.rpc("evm_mine")
    devnet.rpc("devnet_nodes", {"n": 2, "lag": [0, 2]})
    calls = [int(at(devnet, node, "eth_call", {"to": counter}, "latest"), 16) for node in (0, 1)]
    assert calls == [4, 2]
    logs = [at(devnet, node, "eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}) for node in (0, 1)]
    assert [len(found) for found in logs] == [3, 1]
    assert int(at(devnet, 1, "eth_getStorageAt", counter, "0x0", "latest"), 16) == 1
    assert at(devnet, 0, "eth_getBlockByNumber", "latest", False)["number"] == "0x4"


def test_looking_through_a_lagging_node_changes_nothing(nodes: Devnet) -> None:
    before = at(nodes, 0, "eth_getBlockByNumber", "latest", True)
    for method in ("eth_blockNumber", "txpool_content", "eth_gasPrice", "eth_getTransactionByHash"):
        at(nodes, 1, method, *([ALICE.sign(4).hash] if method.endswith("Hash") else []))
    assert at(nodes, 0, "eth_getBlockByNumber", "latest", True) == before
    nodes.rpc("evm_mine")
    assert at(nodes, 0, "eth_getBlockByNumber", "latest", False)["parentHash"] == before["hash"]
    assert at(nodes, 1, "eth_blockNumber") == "0x4"


def test_a_lagging_node_never_goes_back_by_itself_when_the_head_does(nodes: Devnet) -> None:
    nodes.rpc("anvil_rollback", 1)
    assert [at(nodes, node, "eth_blockNumber") for node in (0, 1)] == ["0x4", "0x3"]
    nodes.rpc("anvil_rollback", 2)
    assert [at(nodes, node, "eth_blockNumber") for node in (0, 1)] == ["0x2", "0x2"]


def test_filters_of_a_node_hear_of_blocks_when_it_does(nodes: Devnet) -> None:
    early, late = (at(nodes, node, "eth_newBlockFilter") for node in (0, 1))
    with pytest.raises(RpcFailure, match="filter not found"):
        at(nodes, 1, "eth_getFilterChanges", early)
    nodes.rpc("evm_mine")
    assert at(nodes, 0, "eth_getFilterChanges", early) == [at(nodes, 0, "eth_getBlockByNumber", "0x6", False)["hash"]]
    assert at(nodes, 1, "eth_getFilterChanges", late) == [at(nodes, 0, "eth_getBlockByNumber", "0x4", False)["hash"]]


def test_a_shared_pool_takes_submissions_at_the_head_whoever_is_asked(nodes: Devnet) -> None:
    with pytest.raises(RpcFailure, match="nonce too low: next nonce 5, tx nonce 4"):
        at(nodes, 1, SEND, ALICE.sign(4, value=2).raw)
    at(nodes, 1, SEND, ALICE.sign(5).raw)
    assert at(nodes, 0, "eth_getTransactionByHash", ALICE.sign(5).hash) is not None
    assert nodes.rpc("devnet_submissions")[-1]["node"] == 1


def test_gossip_keeps_a_submission_with_its_node_until_it_is_told_or_mined(nodes: Devnet) -> None:
    nodes.rpc("devnet_nodes", {"pool": "gossip", "lag": 0})
    first, second = ALICE.sign(5), ALICE.sign(6)
    assert at(nodes, 1, SEND, first.raw) == first.hash
    assert at(nodes, 0, "eth_getTransactionByHash", first.hash) is None
    assert at(nodes, 1, "eth_getTransactionByHash", first.hash)["blockHash"] is None
    assert [at(nodes, node, "eth_getTransactionCount", ALICE.address, "pending") for node in (0, 1)] == ["0x5", "0x6"]
    assert nodes.rpc("devnet_gossip") == 1
    assert at(nodes, 0, "eth_getTransactionByHash", first.hash) is not None
    at(nodes, 0, SEND, second.raw)
    nodes.rpc("evm_mine")
    assert [at(nodes, node, "eth_getTransactionReceipt", second.hash)["blockNumber"] for node in (0, 1)] == ["0x6"] * 2
    assert at(nodes, 1, "txpool_status") == {"pending": "0x0", "queued": "0x0"}


def test_nodes_that_do_not_gossip_accept_what_contradicts(nodes: Devnet) -> None:
    nodes.rpc("devnet_nodes", {"pool": "gossip", "lag": 0})
    one, other = ALICE.sign(5), ALICE.sign(5, value=2)
    at(nodes, 0, SEND, one.raw)
    with pytest.raises(RpcFailure, match="already known"):
        at(nodes, 0, SEND, one.raw)
    with pytest.raises(RpcFailure, match="replacement transaction underpriced"):
        at(nodes, 0, SEND, other.raw)
    assert at(nodes, 1, SEND, one.raw) == one.hash
    with pytest.raises(RpcFailure, match="replacement transaction underpriced"):
        at(nodes, 1, SEND, other.raw)


def test_two_nodes_may_hold_different_transactions_of_one_nonce(nodes: Devnet) -> None:
    nodes.rpc("devnet_nodes", {"pool": "gossip", "lag": 0})
    one, other = ALICE.sign(5), ALICE.sign(5, value=2)
    at(nodes, 0, SEND, one.raw)
    assert at(nodes, 1, SEND, other.raw) == other.hash
    row = nodes.rpc("devnet_submissions")[-1]
    assert (row["verdict"], row["node"]) == ("pending", 1)
    assert row["events"][-1]["event"] == "unpropagated: replacement_underpriced"
    nodes.rpc("evm_mine")
    assert at(nodes, 0, "eth_getTransactionReceipt", one.hash)["status"] == "0x1"
    assert at(nodes, 1, "eth_getTransactionByHash", other.hash) is None
    violations = nodes.rpc("devnet_invariants")["violations"]
    assert [item["kind"] for item in violations if item["nonce"] == "0x5"][-1:] == ["nonce_reuse"]


def test_a_lagging_node_accepts_a_nonce_that_is_used_up(nodes: Devnet) -> None:
    nodes.rpc("devnet_nodes", {"pool": "gossip"})
    late = ALICE.sign(3, value=7)
    assert at(nodes, 1, SEND, late.raw) == late.hash
    assert nodes.rpc("devnet_submissions")[-1]["events"][-1]["event"] == "unpropagated: nonce_too_low"
    nodes.rpc("anvil_mine", 2)
    assert at(nodes, 1, "eth_getTransactionByHash", late.hash) is None
    assert nodes.rpc("devnet_submissions")[-1]["events"][-1]["event"] == "overtaken"


def test_sticky_and_seeded_routes(nodes: Devnet) -> None:
    nodes.rpc("devnet_nodes", {"route": "sticky"})
    with Connection(nodes) as first, Connection(nodes) as second:
        numbers = [[each.ask(call("eth_blockNumber")).json["result"] for _ in range(3)] for each in (first, second)]
    assert sorted(set(map(tuple, numbers))) == [("0x3",) * 3, ("0x5",) * 3]
    nodes.rpc("devnet_nodes", {"route": "seeded"})
    snapshot = nodes.rpc("evm_snapshot")
    runs = [[nodes.rpc("eth_blockNumber") for _ in range(12)]]
    nodes.rpc("evm_revert", snapshot)
    runs.append([nodes.rpc("eth_blockNumber") for _ in range(12)])
    assert runs[0] == runs[1]
    assert set(runs[0]) == {"0x3", "0x5"}


def test_subscriptions_over_a_node_hear_of_blocks_when_it_does(nodes: Devnet) -> None:
    async def heads() -> list[str]:
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{nodes.url}/node/1") as socket:
            await socket.send_json(call("eth_subscribe", "newHeads"))
            await socket.receive_json(timeout=20)
            await socket.send_json(call("evm_mine"))
            found = []
            while len(found) < 1:
                message = await socket.receive_json(timeout=20)
                if "params" in message:
                    found.append(message["params"]["result"]["number"])
            return found

    assert asyncio.run(heads()) == ["0x4"]


def test_a_batch_is_answered_by_one_node(nodes: Devnet) -> None:
    for _ in range(2):
        answers = ask(nodes, [call("eth_blockNumber", call_id=number) for number in range(4)]).json
        assert len({answer["result"] for answer in answers}) == 1


def test_a_stale_answer_of_a_lagging_node_is_older_still(nodes: Devnet) -> None:
    for pool in ("shared", "gossip"):
        nodes.rpc("devnet_nodes", {"pool": pool})
        nodes.rpc("devnet_fault", {"id": "old", "kind": "stale", "match": {"method": "eth_*", "node": 1}})
        assert [at(nodes, node, "eth_blockNumber") for node in (0, 1)] == ["0x5", "0x2"]
        assert at(nodes, 1, "eth_getTransactionCount", ALICE.address, "latest") == "0x2"
        nodes.rpc("devnet_clearFaults")
        assert at(nodes, 1, "eth_blockNumber") == "0x3"


def test_rules_match_by_node(nodes: Devnet) -> None:
    nodes.rpc("devnet_fault", {"kind": "http", "match": {"method": "eth_chainId", "node": 1}})
    assert [ask(nodes, call("eth_chainId"), f"/node/{node}").status for node in (0, 1)] == [200, 503]


def test_snapshots_keep_the_nodes(nodes: Devnet) -> None:
    snapshot = nodes.rpc("evm_snapshot")
    nodes.rpc("anvil_mine", 3)
    nodes.rpc("devnet_nodes", {"n": 0})
    assert nodes.rpc("eth_blockNumber") == "0x8"
    nodes.rpc("evm_revert", snapshot)
    assert nodes.rpc("devnet_nodes") == {"n": 2, "lag": [0, 2], "heads": [5, 3], "pool": "shared", "route": "rr"}


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ({"n": 65}, "n must be at most 64"),
        ({"n": 2, "lag": [0, 1, 2]}, "lag has 3 numbers for 2 nodes"),
        ({"pool": "own"}, "pool must be one of shared, gossip"),
        ({"route": "random"}, "route must be one of rr, seeded, sticky"),
        ({"nodes": 2}, "devnet_nodes has no field 'nodes'"),
    ],
)
def test_bad_orders_are_refused(devnet: Devnet, order: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RpcFailure, match=sentence) as caught:
        devnet.rpc("devnet_nodes", order)
    assert caught.value.code == -32602


def test_a_node_that_does_not_exist_says_so(nodes: Devnet) -> None:
    with pytest.raises(RpcFailure, match="there is no node 2: devnet_nodes has made 2"):
        at(nodes, 2, "eth_blockNumber")
