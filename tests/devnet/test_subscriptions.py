"""What a WebSocket client is told without asking: geth's shapes, order and refusals, reorgs, and losses on order."""

import json
import time
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError

from tests.devnet.bytecode import assemble, deploying
from tests.devnet.connection import WebSocket
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, CAROL, GWEI
from tests.support.devnet import Devnet, RpcFailure

TWICE = assemble("1 PUSH0 PUSH0 LOG1 2 PUSH0 PUSH0 LOG1 STOP")
# core/types/gen_header_json.go of geth 1.17
HEADER_FIELDS = {
    "parentHash",
    "sha3Uncles",
    "miner",
    "stateRoot",
    "transactionsRoot",
    "receiptsRoot",
    "logsBloom",
    "difficulty",
    "number",
    "gasLimit",
    "gasUsed",
    "timestamp",
    "extraData",
    "mixHash",
    "nonce",
    "baseFeePerGas",
    "withdrawalsRoot",
    "blobGasUsed",
    "excessBlobGas",
    "parentBeaconBlockRoot",
    "requestsHash",
    "hash",
}


def topic(number: int) -> str:
    return f"0x{number:064x}"


def test_answer_then_arrival_then_logs_then_head_then_receipts(devnet: Devnet) -> None:
    """The order geth 1.17 --dev and anvil were seen to keep."""
    with WebSocket(devnet) as client:
        heads = client.rpc("eth_subscribe", "newHeads")
        receipts = client.rpc("eth_subscribe", "transactionReceipts")
        logs = client.rpc("eth_subscribe", "logs", {})
        hashes = client.rpc("eth_subscribe", "newPendingTransactions")
        whole = client.rpc("eth_subscribe", "newPendingTransactions", True)
        client.rpc("evm_setAutomine", True)
        signed = ALICE.create(0, assemble("1 PUSH0 PUSH0 LOG1 STOP"))
        call = client.ask("eth_sendRawTransaction", signed.raw)
        assert client.receive() == {"jsonrpc": "2.0", "id": call, "result": signed.hash}
        told = [client.told() for _ in range(5)]
    assert [name for name, _ in told] == [hashes, whole, logs, heads, receipts]
    (_, tx_hash), (_, tx), (_, log), (_, head), (_, included) = told
    block = devnet.rpc("eth_getBlockByNumber", "latest", False)
    assert tx_hash == signed.hash
    assert (tx["hash"], tx["blockHash"], tx["from"], tx["gasPrice"]) == (
        signed.hash,
        None,
        ALICE.address,
        hex(10 * GWEI),
    )
    assert [log] == devnet.rpc("eth_getLogs", {"fromBlock": "0x1"})
    assert set(head) == HEADER_FIELDS
    assert head == {name: block[name] for name in HEADER_FIELDS}
    assert included == [devnet.rpc("eth_getTransactionReceipt", signed.hash)]


def test_logs_are_chosen_by_address_and_topics(devnet: Devnet) -> None:
    for nonce in range(2):
        devnet.rpc("eth_sendRawTransaction", ALICE.create(nonce, deploying(TWICE)).raw)
    devnet.rpc("evm_mine")
    first, second = deployed(0), deployed(1)
    with WebSocket(devnet) as client:
        asked = {
            client.rpc("eth_subscribe", "logs", wanted): expected
            for wanted, expected in (
                ({}, [(first, 1), (first, 2), (second, 1), (second, 2)]),
                ({"address": second}, [(second, 1), (second, 2)]),
                ({"topics": [[topic(2), topic(9)]]}, [(first, 2), (second, 2)]),
                ({"address": [first, second], "topics": [topic(1)]}, [(first, 1), (second, 1)]),
                ({"topics": [None, topic(1)]}, []),
                ({"fromBlock": "0x3"}, []),
                ({"fromBlock": "0x0", "toBlock": "0x1"}, []),
                ({"fromBlock": "earliest", "toBlock": "latest", "address": first}, [(first, 1), (first, 2)]),
            )
        }
        for nonce, address in ((2, first), (3, second)):
            devnet.rpc("eth_sendRawTransaction", ALICE.call(nonce, address).raw)
        devnet.rpc("evm_mine")
        told = client.told_all()
    seen: dict[str, list[Any]] = {name: [] for name in asked}
    for name, log in told:
        seen[name].append((log["address"], int(log["topics"][0], 16)))
    assert seen == asked


def test_a_reorg_takes_logs_back_oldest_first_and_tells_each_new_head(devnet: Devnet) -> None:
    """As geth 1.17 does: BlockChain.reorg sends the removed logs in the order they had, oldest block first."""
    devnet.rpc("eth_sendRawTransaction", ALICE.create(0, deploying(TWICE)).raw)
    devnet.rpc("evm_mine")
    for nonce in (1, 2):
        devnet.rpc("eth_sendRawTransaction", ALICE.call(nonce, deployed(0)).raw)
        devnet.rpc("evm_mine")
    old = devnet.rpc("eth_getLogs", {"fromBlock": "0x2"})
    assert [log["blockNumber"] for log in old] == ["0x2", "0x2", "0x3", "0x3"]
    with WebSocket(devnet) as client:
        heads, logs = client.rpc("eth_subscribe", "newHeads"), client.rpc("eth_subscribe", "logs", {})
        devnet.rpc("anvil_rollback", 2)
        assert client.told_all() == [(logs, log | {"removed": True}) for log in old]
        devnet.rpc("anvil_mine", 2)
        told = client.told_all()
    new = devnet.rpc("eth_getLogs", {"fromBlock": "0x2"})
    assert [log["blockNumber"] for log in new] == ["0x2"] * 4
    assert [result for name, result in told if name == logs] == new
    blocks = [devnet.rpc("eth_getBlockByNumber", number, False)["hash"] for number in ("0x2", "0x3")]
    assert [result["hash"] for name, result in told if name == heads] == blocks


def test_returning_to_a_snapshot_takes_logs_back_too(devnet: Devnet) -> None:
    snapshot = devnet.rpc("evm_snapshot")
    with WebSocket(devnet) as client:
        logs = client.rpc("eth_subscribe", "logs", {})
        devnet.rpc("eth_sendRawTransaction", ALICE.create(0, assemble("1 PUSH0 PUSH0 LOG1 STOP")).raw)
        devnet.rpc("evm_mine")
        [(_, log)] = client.told_all()
        devnet.rpc("evm_revert", snapshot)
        assert client.told_all() == [(logs, log | {"removed": True})]


def test_arrivals_are_told_when_they_become_executable(devnet: Devnet) -> None:
    signed = [ALICE.sign(nonce) for nonce in range(4)]
    dearer = ALICE.sign(1, maxFeePerGas=20 * GWEI, maxPriorityFeePerGas=2 * GWEI)
    with WebSocket(devnet) as client:
        client.rpc("eth_subscribe", "newPendingTransactions")

        def told_after(raw: str) -> list[Any]:
            devnet.rpc("eth_sendRawTransaction", raw)
            return [result for _, result in client.told_all()]

        assert told_after(signed[3].raw) == []
        assert told_after(signed[1].raw) == []
        assert told_after(signed[0].raw) == [signed[0].hash, signed[1].hash]
        assert told_after(dearer.raw) == [dearer.hash]
        assert told_after(signed[2].raw) == [signed[2].hash, signed[3].hash]
        devnet.rpc("evm_mine")
        devnet.rpc("anvil_rollback", 1)
        back = [signed[0].hash, dearer.hash, signed[2].hash, signed[3].hash]
        assert [result for _, result in client.told_all()] == back


def test_nothing_is_told_before_the_id_is(devnet: Devnet) -> None:
    with WebSocket(devnet) as client:
        calls = [("eth_subscribe", ["newHeads"]), ("evm_mine", []), ("eth_subscribe", ["newHeads"])]
        client.send(
            json.dumps(
                [
                    {"jsonrpc": "2.0", "id": at, "method": name, "params": params}
                    for at, (name, params) in enumerate(calls)
                ]
            )
        )
        first, _, second = [answer["result"] for answer in client.receive()]
        assert [(name, head["number"]) for name, head in client.told_all()] == [(first, "0x1")]
        devnet.rpc("evm_mine")
        assert [(name, head["number"]) for name, head in client.told_all()] == [(first, "0x2"), (second, "0x2")]


def test_a_call_that_breaks_its_own_connection_leaves_nothing_behind(devnet: Devnet) -> None:
    calls = [("eth_subscribe", ["newHeads"]), ("devnet_subscription", [{"close": True}])]
    with WebSocket(devnet) as client:
        client.send(
            json.dumps(
                [
                    {"jsonrpc": "2.0", "id": at, "method": name, "params": params}
                    for at, (name, params) in enumerate(calls)
                ]
            )
        )
        with pytest.raises(ConnectionClosedError):
            client.receive()
    assert devnet.rpc("devnet_subscription") == []
    devnet.rpc("evm_mine")
    assert "Traceback" not in devnet.output()


def test_unsubscribing_ends_it(devnet: Devnet) -> None:
    with WebSocket(devnet) as client, WebSocket(devnet) as other:
        heads = client.rpc("eth_subscribe", "newHeads")
        with pytest.raises(RpcFailure, match="-32000: subscription not found"):
            other.rpc("eth_unsubscribe", heads)
        assert client.rpc("eth_unsubscribe", heads) is True
        devnet.rpc("evm_mine")
        assert client.told_all() == []
        with pytest.raises(RpcFailure, match="-32000: subscription not found"):
            client.rpc("eth_unsubscribe", heads)


def test_subscriptions_end_with_their_connection(devnet: Devnet) -> None:
    with WebSocket(devnet) as other:
        kept = other.rpc("eth_subscribe", "newHeads")
        with WebSocket(devnet) as client:
            client.rpc("eth_subscribe", "newHeads")
            assert len(devnet.rpc("devnet_subscription")) == 2
        deadline = time.monotonic() + 10
        while devnet.rpc("devnet_subscription") != [kept]:
            assert time.monotonic() < deadline
            time.sleep(0.005)


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        ([], -32602, "expected subscription name as first argument"),
        ([7], -32602, "expected subscription name as first argument"),
        (["foo"], -32601, 'no "foo" subscription in eth namespace'),
        (["logs"], -32602, "missing value for required argument 1"),
        (["logs", {"fromBlock": "pending"}], -32602, "pending logs are not supported"),
        (["logs", {"fromBlock": "0x1", "toBlock": "0x0"}], -32602, "invalid block range params"),
        (["logs", {"toBlock": "0x5"}], -32602, "invalid block range params"),
        (["logs", {"fromBlock": "safe"}], -32602, "invalid block range params"),
        (
            ["transactionReceipts", {"transactionHashes": [topic(1)] * 201}],
            -32000,
            "exceed max number of transaction hashes allowed per transactionReceipts subscription",
        ),
    ],
)
def test_refusals_are_those_of_geth(devnet: Devnet, params: list[Any], code: int, message: str) -> None:
    with WebSocket(devnet) as client, pytest.raises(RpcFailure) as caught:
        client.rpc("eth_subscribe", *params)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_http_cannot_notify(devnet: Devnet) -> None:
    with pytest.raises(RpcFailure, match="-32601: notifications not supported"):
        devnet.rpc("eth_subscribe", "newHeads")
    with pytest.raises(RpcFailure, match="-32000: subscription not found"):
        devnet.rpc("eth_unsubscribe", "0x1")


def test_receipts_and_syncing_can_be_subscribed_to(devnet: Devnet) -> None:
    mine, others = ALICE.sign(0), [BOB.sign(0), CAROL.sign(0)]
    with WebSocket(devnet) as client:
        client.rpc("eth_subscribe", "syncing")
        wanted = client.rpc("eth_subscribe", "transactionReceipts", {"transactionHashes": [mine.hash]})
        devnet.rpc("eth_sendRawTransaction", others[0].raw)
        devnet.rpc("evm_mine")
        assert client.told_all() == []
        for signed in (others[1], mine):
            devnet.rpc("eth_sendRawTransaction", signed.raw)
        devnet.rpc("evm_mine")
        [(name, receipts)] = client.told_all()
    assert (name, [receipt["transactionHash"] for receipt in receipts]) == (wanted, [mine.hash])


def heads_after(client: WebSocket, devnet: Devnet, blocks: int) -> list[int]:
    devnet.rpc("anvil_mine", blocks)
    return [int(head["number"], 16) for _, head in client.told_all()]


def test_notifications_are_lost_and_doubled_on_order(devnet: Devnet) -> None:
    with WebSocket(devnet) as client:
        heads = client.rpc("eth_subscribe", "newHeads")
        assert devnet.rpc("devnet_subscription", {"id": heads, "drop": 2}) == [heads]
        assert heads_after(client, devnet, 3) == [3]
        assert devnet.rpc("devnet_subscription", {"dup": 1}) == [heads]
        assert heads_after(client, devnet, 2) == [4, 4, 5]
        devnet.rpc("devnet_subscription", {"id": heads, "gap": 1, "dup": 1})
        assert heads_after(client, devnet, 2) == [7, 7]
        with pytest.raises(RpcFailure, match="subscription not found"):
            devnet.rpc("devnet_subscription", {"id": "0x1", "drop": 1})
        with pytest.raises(RpcFailure, match="no field 'lose'"):
            devnet.rpc("devnet_subscription", {"lose": 1})
        assert heads_after(client, devnet, 1) == [8]


def test_a_gap_takes_whole_blocks_where_a_drop_takes_single_logs(devnet: Devnet) -> None:
    devnet.rpc("eth_sendRawTransaction", ALICE.create(0, deploying(TWICE)).raw)
    devnet.rpc("evm_mine")
    with WebSocket(devnet) as client:
        logs = client.rpc("eth_subscribe", "logs", {})
        heads = client.rpc("eth_subscribe", "newHeads")

        def topics_after(nonce: int) -> list[int]:
            devnet.rpc("eth_sendRawTransaction", ALICE.call(nonce, deployed(0)).raw)
            devnet.rpc("evm_mine")
            return [int(result["topics"][0], 16) for name, result in client.told_all() if name == logs]

        devnet.rpc("devnet_subscription", {"id": logs, "drop": 1})
        assert topics_after(1) == [2]
        devnet.rpc("devnet_subscription", {"id": logs, "gap": 1})
        devnet.rpc("evm_mine")  # has no logs, so it is none of theirs
        assert [name for name, _ in client.told_all()] == [heads]
        assert topics_after(2) == []
        assert topics_after(3) == [1, 2]


def test_a_connection_is_broken_on_order(devnet: Devnet) -> None:
    with WebSocket(devnet) as client, WebSocket(devnet) as other:
        heads = client.rpc("eth_subscribe", "newHeads")
        kept = other.rpc("eth_subscribe", "newHeads")
        devnet.rpc("devnet_subscription", {"id": heads, "close": True})
        with pytest.raises(ConnectionClosedError) as caught:
            client.receive()
        assert caught.value.rcvd is None, "no close frame: the line went dead"
        assert devnet.rpc("devnet_subscription") == [kept]
        assert heads_after(other, devnet, 1) == [1]
