"""HTTP/1.1 as clients speak it, byte by byte (RFC 9112)."""

import json
import socket
from collections.abc import Iterator

import pytest

from devnet.server.listener import MAX_BODY
from tests.support.devnet import Devnet

CALL = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":"0x7a69"}'
TYPE = b"Content-Type: application/json"


def post(body: bytes, *headers: bytes, version: bytes = b"1.1") -> bytes:
    lines = [b"POST / HTTP/" + version, b"Host: devnet", TYPE, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def numbered(number: int, method: str = "eth_blockNumber") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": []}).encode()


class Client:
    """A connection that reads answers one after the other."""

    def __init__(self, devnet: Devnet) -> None:
        self.socket = socket.create_connection((devnet.host, devnet.port), 20)
        self._stream = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hear(self, *, bodiless: bool = False) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        status = int(self._stream.readline().split()[1])
        headers = {}
        while (line := self._stream.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, b"" if bodiless else self._stream.read(int(headers.get("content-length", 0)))

    def ended(self) -> bool:
        """Whether the node has closed it, with nothing more to read."""
        return self._stream.read() == b""


@pytest.fixture
def client(devnet: Devnet) -> Iterator[Client]:
    client = Client(devnet)
    yield client
    client.socket.close()


def test_a_connection_is_kept_for_the_next_request(client: Client) -> None:
    for _ in range(2):
        client.send(post(CALL))
        status, headers, body = client.hear()
        assert (status, body) == (200, ANSWER)
        assert headers["content-type"] == "application/json"
        assert headers["date"].endswith(" GMT")
        assert "connection" not in headers


def test_a_request_may_come_in_pieces(client: Client) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = post(CALL)
    for at in range(0, len(request), 7):
        client.send(request[at : at + 7])
    assert client.hear()[2] == ANSWER


def test_a_chunked_body_is_put_together(client: Client) -> None:
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (CALL[:10], CALL[10:]))
    client.send(b"POST / HTTP/1.1\r\nHost: devnet\r\n" + TYPE + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    client.send(b"0\r\n\r\n")
    assert client.hear()[2] == ANSWER


def test_a_chunked_body_above_the_limit_is_refused(client: Client) -> None:
    size = MAX_BODY // 2 + 1
    client.send(b"POST / HTTP/1.1\r\nHost: devnet\r\n" + TYPE + b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(2):
        client.send(b"%x\r\n%b\r\n" % (size, b" " * size))
    client.send(b"0\r\n\r\n")
    assert client.hear()[::2] == (413, b"http: request body too large\n")
    client.send(post(CALL))
    assert client.hear()[2] == ANSWER


def test_requests_sent_ahead_are_answered_in_their_order(devnet: Devnet, client: Client) -> None:
    devnet.rpc("devnet_fault", {"match": {"method": "eth_gasPrice"}, "kind": "delay", "arg": 30})
    methods = ["eth_blockNumber", "eth_gasPrice", "eth_chainId", "eth_gasPrice", "eth_blockNumber"]
    client.send(b"".join(post(numbered(number, method)) for number, method in enumerate(methods)))
    assert [json.loads(client.hear()[2])["id"] for _ in methods] == list(range(len(methods)))


def test_a_client_that_reads_late_gets_every_answer(devnet: Devnet, client: Client) -> None:
    devnet.rpc("anvil_setCode", "0x" + "c0" * 20, "0x" + "ab" * 1_000_000)
    call = {"jsonrpc": "2.0", "method": "eth_getCode", "params": ["0x" + "c0" * 20, "latest"]}
    client.send(b"".join(post(json.dumps(call | {"id": number}).encode()) for number in range(20)))
    assert devnet.rpc("eth_chainId") == "0x7a69"
    assert [json.loads(client.hear()[2])["id"] for _ in range(20)] == list(range(20))


def test_a_client_that_asks_before_it_sends_a_body_is_told_to_go_on(client: Client) -> None:
    head, _, body = post(CALL, b"Expect: 100-continue").partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    assert client.hear()[0] == 100
    client.send(body)
    assert client.hear()[2] == ANSWER


def test_head_has_no_body(client: Client) -> None:
    client.send(b"HEAD /nowhere HTTP/1.1\r\nHost: devnet\r\n\r\n")
    status, headers, _ = client.hear(bodiless=True)
    assert (status, headers["content-length"]) == (404, "19")
    client.send(post(CALL))
    assert client.hear()[2] == ANSWER


@pytest.mark.parametrize("request_", [post(CALL, b"Connection: close"), post(CALL, version=b"1.0")])
def test_a_connection_is_closed_for_a_client_that_wants_no_more(client: Client, request_: bytes) -> None:
    client.send(request_)
    _, headers, body = client.hear()
    assert (headers["connection"], body) == ("close", ANSWER)
    assert client.ended()


def test_what_is_no_http_is_refused_and_cut_off(client: Client) -> None:
    client.send(b"GARBAGE\r\n\r\n")
    status, headers, _ = client.hear()
    assert (status, headers["connection"]) == (400, "close")
    assert client.ended()


def test_an_offer_to_speak_http_2_is_passed_over(client: Client) -> None:
    """Java's client makes one with its first request."""
    offer = (
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAA",
    )
    client.send(post(CALL, *offer) + post(numbered(2)))
    assert client.hear()[2] == ANSWER
    assert json.loads(client.hear()[2])["id"] == 2


def test_a_kept_connection_may_become_a_websocket(client: Client) -> None:
    client.send(post(CALL))
    assert client.hear()[0] == 200
    lines = (b"GET / HTTP/1.1", b"Host: devnet", b"Connection: Upgrade", b"Upgrade: websocket")
    key = (b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    masked = bytes((0x81, 0x80 | len(CALL), 0, 0, 0, 0)) + CALL
    client.send(b"\r\n".join((*lines, *key)) + b"\r\n\r\n" + masked)
    status, headers, _ = client.hear()
    assert (status, headers["sec-websocket-accept"]) == (101, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")  # RFC 6455, section 1.3
    assert client._stream.read(2 + len(ANSWER)) == bytes((0x81, len(ANSWER))) + ANSWER
