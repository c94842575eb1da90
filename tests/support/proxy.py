"""A recording proxy between workers and a node: what was sent, when, and whether it had been committed before (G4)."""

import json
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import rlp
import urllib3
from eth_account import Account

_SEND = "eth_sendRawTransaction"
_FORWARD_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Sent:
    """One raw transaction that arrived: its place in the order of arrival, seconds on the monotonic clock, what became of it."""

    order: int
    at: float
    raw: bytes
    forwarded: bool

    @property
    def nonce(self) -> int:
        """The nonce in the bytes (type 2 only)."""
        return int.from_bytes(rlp.decode(self.raw[1:])[1], "big")

    @property
    def sender(self) -> bytes:
        """Who signed the bytes."""
        return bytes.fromhex(Account.recover_transaction(self.raw)[2:])


class RecordingProxy:
    """Forwards JSON-RPC to `upstream` and records every raw transaction.

    `check` is called with the raw transactions of a post before they are forwarded, and returns complaints.
    """

    def __init__(self, upstream: str, check: Callable[[Sequence[bytes]], list[str]] = lambda _: []) -> None:
        self.sent: list[Sent] = []
        self.complaints: list[str] = []
        self._check = check
        self._upstream = upstream
        self._pool = urllib3.PoolManager(maxsize=16, retries=False, timeout=_FORWARD_SECONDS)
        self._delivered = threading.Condition()
        self._under_way = 0
        self._refusing = False
        self._dropping = 0
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def refuse_sends(self) -> None:
        """From now on a post with a transaction in it never reaches the node, and gets no reply."""
        self._refusing = True

    def allow_sends(self) -> None:
        """Forward again."""
        self._refusing = False

    def drop_replies(self, posts: int) -> None:
        """Let the node have the next `posts` posts with transactions, and close the connection instead of replying."""
        with self._delivered:
            self._dropping = posts

    def raws_by_nonce(self, *, forwarded: bool = False) -> dict[tuple[bytes, int], set[bytes]]:
        """The distinct bytes that arrived for each (sender, nonce); with `forwarded` only those the node was given."""
        found: dict[tuple[bytes, int], set[bytes]] = defaultdict(set)
        for item in list(self.sent):
            if item.forwarded or not forwarded:
                found[item.sender, item.nonce].add(item.raw)
        return dict(found)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
        self._pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def handle(self, body: bytes) -> tuple[int, bytes] | None:
        """Status and body of the answer, or None where the connection is to be closed without one."""
        raws = _raws(body)
        if raws:
            with self._delivered:
                self.complaints += self._check(raws)
                refused, dropped = self._refusing, not self._refusing and self._dropping > 0
                self._dropping -= dropped
                now = time.monotonic()
                self.sent += [Sent(len(self.sent) + i, now, raw, not refused) for i, raw in enumerate(raws)]
                self._under_way += not refused
            if refused:
                return None
            try:
                answer = self._forward(body)
            finally:
                with self._delivered:
                    self._under_way -= 1
                    self._delivered.notify_all()
            return None if dropped else answer
        return self._forward(body)

    def _forward(self, body: bytes) -> tuple[int, bytes]:
        answer = self._pool.request("POST", self._upstream, body=body, headers={"Content-Type": "application/json"})
        return answer.status, answer.data

    def wait_delivered(self) -> None:
        """Wait until the node has answered every transaction in `sent` that it was given. Raises TimeoutError."""
        with self._delivered:
            if not self._delivered.wait_for(lambda: not self._under_way, _FORWARD_SECONDS):
                raise TimeoutError("the node has not answered a transaction")


def _raws(body: bytes) -> list[bytes]:
    if _SEND.encode() not in body:
        return []
    parsed: Any = json.loads(body)
    calls = parsed if isinstance(parsed, list) else [parsed]
    return [bytes.fromhex(call["params"][0][2:]) for call in calls if call["method"] == _SEND]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Workers are killed in the middle of a request; that is no news."""


def _handler(proxy: RecordingProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                answer = proxy.handle(body)
            except urllib3.exceptions.HTTPError:
                answer = None  # the node is gone
            if answer is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            status, content = answer
            head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            self.wfile.write(head.encode() + content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's word)
            """Say nothing."""

    return Handler
