"""The Unix socket, framed as geth frames it."""

import random
import socket
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hexbytes import HexBytes

from devnet.server.ipc import JsonStream
from tests.devnet.connection import UnixSocket
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER
from tests.support.devnet import ROOT, Devnet, start_devnet

VALUES = [
    b'{"a":1}',
    b"[]",
    b'[{"b":"}]{["}]',
    b'{"c":"\\"}\\\\"}',
    b'{\n  "d": [1, [2, {}]]\n}',
    '{"e":"Ω]"}'.encode(),
    b"{}",
]


def cut(stream: JsonStream, chunks: list[bytes]) -> list[bytes]:
    return [value for chunk in chunks for value in stream.feed(chunk)]


@pytest.mark.parametrize("between", [b"", b"\n", b" \r\n\t"])
def test_values_are_cut_wherever_the_stream_is(between: bytes) -> None:
    whole = between.join(VALUES)
    assert cut(JsonStream(), [whole]) == VALUES
    assert cut(JsonStream(), [bytes([byte]) for byte in whole]) == VALUES
    draw = random.Random(7)
    for _ in range(50):
        at = sorted(draw.sample(range(len(whole)), 4))
        chunks = [whole[first:last] for first, last in zip([0, *at], [*at, len(whole)], strict=True)]
        assert cut(JsonStream(), chunks) == VALUES


@pytest.mark.parametrize("text", [b"garbage\n", b"}", b"]", b'"text"', b"{}]", b"{}5 ", b"null"])
def test_what_is_no_object_or_array_ends_the_stream(text: bytes) -> None:
    with pytest.raises(ValueError, match="only objects and arrays"):
        JsonStream().feed(text)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Devnet, Path]]:
    path = tmp_path_factory.mktemp("ipc") / "node.ipc"
    with start_devnet("--silent", "--ipc", str(path)) as devnet:
        yield devnet, path


def test_calls_run_together_or_torn_apart_are_answered(served: tuple[Devnet, Path]) -> None:
    """What geth 1.17 was sent over its own socket, with the same answers, a line each."""
    devnet, path = served
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with UnixSocket(path) as client:
        client.send(
            '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}[{"jsonrpc":"2.0","id":2,"method":"eth_chainId"}]\n {'
        )
        answers = [{"jsonrpc": "2.0", "id": number, "result": "0x7a69"} for number in (1, 2, 3)]
        assert [client.receive(), client.receive()] == [answers[0], [answers[1]]]
        client.send('"jsonrpc":"2.0","id":3,"method":"eth_chainId"}')
        assert client.receive() == answers[2]
        client.send("garbage\n")
        assert client.receive()["error"]["code"] == -32700
        with pytest.raises(ConnectionError):
            client.receive()
    assert devnet.rpc("eth_chainId") == "0x7a69"


def test_subscriptions_work_over_it(served: tuple[Devnet, Path]) -> None:
    devnet, path = served
    with UnixSocket(path) as client:
        heads = client.rpc("eth_subscribe", "newHeads")
        before = int(client.rpc("eth_blockNumber"), 16)
        signed = BOB.sign(0)
        assert client.rpc("eth_sendRawTransaction", signed.raw) == signed.hash
        name, head = client.told()
        assert (name, head["number"]) == (heads, hex(before + 1))
        devnet.rpc("devnet_subscription", {"close": True})
        with pytest.raises(ConnectionError):
            client.receive()


def test_a_client_that_does_not_read_the_socket_is_cut_off(served: tuple[Devnet, Path]) -> None:
    devnet, path = served
    with UnixSocket(path) as client:
        for _ in range(200):
            client.rpc("eth_subscribe", "newPendingTransactions", True)
        for nonce in range(3):
            devnet.rpc("eth_sendRawTransaction", CAROL.sign(nonce, data="0x" + "00" * 60_000, gas=700_000).raw)
        assert devnet.rpc("devnet_subscription") == []
        assert "cut off a client" in devnet.output()


def test_web3_speaks_to_it(served: tuple[Devnet, Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from web3 import IPCProvider, Web3
    web3 = Web3(IPCProvider(str(served[1])))
    assert web3.is_connected()
    sent = web3.eth.send_raw_transaction(HexBytes(ALICE.sign(0).raw))
    receipt = web3.eth.get_transaction_receipt(sent)
    assert receipt["status"] == 1
    richest = web3.to_checksum_address(web3.eth.accounts[-1])
    with web3.batch_requests() as batch:
        batch.add(web3.eth.get_balance(richest))
        batch.add(web3.eth.get_block(receipt["blockNumber"]))
        answers: Any = batch.execute()
    assert (answers[0], list(answers[1]["transactions"])) == (10_000 * ETHER, [sent])


def start_again(path: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "devnet", "--port", "0", "--ipc", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stderr


def test_a_path_in_use_is_one_sentence(served: tuple[Devnet, Path], tmp_path: Path) -> None:
    devnet, path = served
    assert start_again(path) == (2, f"devnet: cannot listen on {path}: Address already in use\n")
    with UnixSocket(path) as client:
        assert client.rpc("eth_chainId") == devnet.rpc("eth_chainId")
    other = tmp_path / "letter"
    other.write_text("mine")
    assert start_again(other) == (2, f"devnet: cannot listen on {other}: it is no socket, give another path\n")
    assert other.read_text() == "mine"


def test_a_socket_left_behind_is_replaced_and_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "node.ipc"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with start_devnet("--silent", "--ipc", str(path)), UnixSocket(path) as client:
        assert client.rpc("eth_chainId") == "0x7a69"
    assert not path.exists()
