"""JSON-RPC over WebSocket on the port of HTTP, with real clients."""

import asyncio
import json
import warnings
from typing import Any

import pytest
from hexbytes import HexBytes
from websockets.exceptions import ConnectionClosed

from tests.devnet.connection import WebSocket
from tests.devnet.wallet import ALICE, ETHER, GWEI
from tests.support.devnet import Devnet, start_devnet


def test_every_kind_of_message_is_answered_as_over_http(devnet: Devnet) -> None:
    bodies: tuple[Any, ...] = (
        {"jsonrpc": "2.0", "id": 7, "method": "eth_chainId"},
        [
            {"jsonrpc": "2.0", "id": "a", "method": "eth_blockNumber"},
            {"jsonrpc": "2.0", "method": "eth_blockNumber"},
            {"jsonrpc": "2.0", "id": None, "method": "eth_nothing"},
        ],
        [],
        5,
        {"jsonrpc": "2.0", "id": 1},
    )
    with WebSocket(devnet) as client:
        for body in bodies:
            client.send(json.dumps(body))
            assert client.receive() == devnet.request(body)
        client.send("no JSON")
        assert client.receive()["error"]["code"] == -32700
        client.socket.send(json.dumps(bodies[0]).encode())
        assert client.receive() == {"jsonrpc": "2.0", "id": 7, "result": "0x7a69"}


def test_a_notification_of_the_client_is_carried_out_without_a_word(devnet: Devnet) -> None:
    with WebSocket(devnet) as client:
        client.send(json.dumps({"jsonrpc": "2.0", "method": "evm_mine", "params": []}))
        assert client.rpc("eth_blockNumber") == "0x1"


def test_calls_on_one_connection_keep_their_order(devnet: Devnet) -> None:
    signed = [ALICE.sign(nonce) for nonce in range(30)]
    with WebSocket(devnet) as client:
        asked = [client.ask("eth_sendRawTransaction", item.raw) for item in signed]
        answers = [client.receive() for _ in asked]
    assert [answer["id"] for answer in answers] == asked
    assert [answer["result"] for answer in answers] == [item.hash for item in signed]


def test_large_messages_go_both_ways(devnet: Devnet) -> None:
    data = "0x" + "ab" * 3_000_000
    with WebSocket(devnet) as client:
        assert len(client.rpc("web3_sha3", data)) == 66
        client.rpc("anvil_setCode", "0x" + "c0" * 20, data)
        assert client.rpc("eth_getCode", "0x" + "c0" * 20) == data


def receive_for_ever(client: WebSocket) -> None:
    while True:
        client.receive()


def test_a_client_that_does_not_read_is_cut_off() -> None:
    with start_devnet("--silent", "--no-mining") as devnet:
        client = WebSocket(devnet)
        for _ in range(200):
            client.rpc("eth_subscribe", "newPendingTransactions", True)
        for nonce in range(3):  # 200 notifications of 120 kB each: more than the sockets hold and the devnet keeps
            signed = ALICE.sign(nonce, data="0x" + "00" * 60_000, gas=700_000, maxFeePerGas=2 * GWEI)
            devnet.rpc("eth_sendRawTransaction", signed.raw)
        assert devnet.rpc("devnet_subscription") == []
        assert "cut off a client that left 16777216 bytes of messages unread" in devnet.output()
        with pytest.raises(ConnectionClosed):
            receive_for_ever(client)


def test_a_client_that_reads_late_gets_every_answer(devnet: Devnet) -> None:
    """Answers wait for the client, and so do its further calls, where notifications would not."""
    devnet.rpc("anvil_setCode", "0x" + "c0" * 20, "0x" + "ab" * 1_000_000)
    with WebSocket(devnet) as client:
        asked = [client.ask("eth_getCode", "0x" + "c0" * 20) for _ in range(30)]
        assert devnet.rpc("eth_chainId") == "0x7a69"
        assert [client.receive()["id"] for _ in asked] == asked


def test_one_call_held_up_holds_up_no_other(devnet: Devnet) -> None:
    devnet.rpc("devnet_fault", {"id": "slow", "match": {"method": "eth_gasPrice"}, "kind": "hang"})
    try:
        with WebSocket(devnet) as client:
            client.ask("eth_gasPrice")
            assert client.rpc("eth_chainId") == "0x7a69"
    finally:
        devnet.rpc("devnet_clearFaults")


@pytest.mark.parametrize("kind", ["drop_after", "reset_mid_body", "http"])
def test_a_fault_breaks_the_connection(devnet: Devnet, kind: str) -> None:
    devnet.rpc("devnet_fault", {"match": {"method": "eth_sendRawTransaction"}, "kind": kind, "times": 1})
    signed = ALICE.sign(0)
    with WebSocket(devnet) as client:
        client.ask("eth_sendRawTransaction", signed.raw)
        with pytest.raises(ConnectionClosed) as caught:
            client.receive()
    assert (caught.value.rcvd is not None and caught.value.rcvd.code == 1013) is (kind == "http")
    known = devnet.rpc("eth_getTransactionByHash", signed.hash)
    assert (known is not None) is (kind != "http")


def test_web3_follows_the_chain() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from web3 import AsyncWeb3, WebSocketProvider

    async def follow(devnet: Devnet) -> None:
        async with AsyncWeb3(WebSocketProvider(devnet.ws_url)) as web3:
            assert await web3.eth.get_balance(web3.to_checksum_address(ALICE.address)) == 10_000 * ETHER
            heads = await web3.eth.subscribe("newHeads")
            arrivals = await web3.eth.subscribe("newPendingTransactions")
            sent = await web3.eth.send_raw_transaction(HexBytes(ALICE.sign(0).raw))
            told = []
            async for message in web3.socket.process_subscriptions():
                told.append((message["subscription"], message["result"]))
                if len(told) == 2:
                    break
            assert told[0] == (arrivals, sent)
            assert (told[1][0], told[1][1]["number"]) == (heads, 1)
            assert await web3.eth.unsubscribe(heads)
            receipt = await web3.eth.wait_for_transaction_receipt(sent, timeout=20, poll_latency=0.02)
            assert receipt["status"] == 1

    with start_devnet("--silent") as devnet:
        asyncio.run(follow(devnet))


def test_it_ends_in_good_order_with_a_client_connected() -> None:
    with start_devnet("--silent") as devnet, WebSocket(devnet) as client:
        client.rpc("eth_subscribe", "newHeads")
        assert devnet.stop() == 0
