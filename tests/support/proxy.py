"""A proxy between workers and a node: what was sent, when, and whether it had been committed before (G4).

It is honest until a test gives it a script (`tests.support.proxy_script`), and then misbehaves as that says.
"""

import json
import os
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import urllib3

from tests.support.proxy_script import (
    SEND,
    Action,
    Answer,
    Call,
    Ending,
    ForCall,
    ForPost,
    Reply,
    Rule,
    nonce_of,
    on,
    parsed,
    raw_of,
    sender_of,
)

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
        return nonce_of(self.raw)

    @property
    def sender(self) -> bytes:
        """Who signed the bytes."""
        return sender_of(self.raw)


class RecordingProxy:
    """Forwards JSON-RPC to `upstream` and records every raw transaction.

    `check` is called with the raw transactions of a post before they are forwarded, and returns complaints.
    """

    def __init__(self, upstream: str, check: Callable[[Sequence[bytes]], list[str]] = lambda _: []) -> None:
        self.sent: list[Sent] = []
        self.complaints: list[str] = []
        self.posts = 0
        self._check = check
        self._upstream = upstream
        self._pool = urllib3.PoolManager(maxsize=16, retries=False, timeout=_FORWARD_SECONDS)
        self._delivered = threading.Condition()
        self._under_way = 0
        self._script: tuple[Rule, ...] = ()
        self._switch: Rule | None = None
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def script(self, *rules: Rule) -> None:
        """Behave as these rules say, from now on and instead of earlier ones; honestly without any.

        For each call the first rule that takes it acts; a rule for whole posts decides for every call and counts posts.
        """
        self._script = rules

    def refuse_sends(self) -> None:
        """From now on a post with a transaction in it never reaches the node, and gets no reply."""
        self._switch = on(SEND).refuse()

    def allow_sends(self) -> None:
        """Forward again."""
        self._switch = None

    def drop_replies(self, posts: int) -> None:
        """Let the node have the next `posts` posts with transactions, and close the connection instead of replying."""
        self._switch = on(SEND).times(posts).hide_reply()

    def raws_by_nonce(self, *, forwarded: bool = False) -> dict[tuple[bytes, int], set[bytes]]:
        """The distinct bytes that arrived for each (sender, nonce); with `forwarded` only those the node was given."""
        found: dict[tuple[bytes, int], set[bytes]] = defaultdict(set)
        for item in list(self.sent):
            if item.forwarded or not forwarded:
                found[item.sender, item.nonce].add(item.raw)
        return dict(found)

    def close(self) -> None:
        """Stop serving."""
        self._closing.set()
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

    def wait_delivered(self) -> None:
        """Wait until the node has answered every transaction in `sent` that it was given. Raises TimeoutError."""
        with self._delivered:
            if not self._delivered.wait_for(lambda: not self._under_way, _FORWARD_SECONDS):
                raise TimeoutError("the node has not answered a transaction")

    def handle(self, body: bytes) -> Reply:
        """What is written back for one post."""
        calls, is_batch = parsed(body)
        rules = self._choose(calls)
        whole = next((rule for rule in rules if rule is not None and isinstance(rule.action, ForPost)), None)
        if whole is not None:
            rules = [whole] * len(calls)
        has_sends = self._note(calls, rules)
        try:
            for call, rule in zip(calls, rules, strict=True):
                if rule is not None:
                    rule.before(call)
            return self._answer(body, calls, [rule and rule.action for rule in rules], is_batch)
        finally:
            with self._delivered:
                self._under_way -= has_sends
                self._delivered.notify_all()

    def wait_closing(self) -> None:
        """Return when the proxy ends."""
        self._closing.wait()

    def _choose(self, calls: Sequence[Call]) -> list[Rule | None]:
        """The rule for each call: the first that matches and takes it."""
        script = self._script if self._switch is None else (self._switch, *self._script)
        chosen: list[Rule | None] = []
        counted: set[Rule] = set()
        for call in calls:
            taken = None
            for rule in script:
                if rule in counted or not rule.matches(call):
                    continue
                if rule.for_post:
                    counted.add(rule)
                if rule.take():
                    if rule.for_post:
                        return [rule] * len(calls)
                    taken = rule
                    break
            chosen.append(taken)
        return chosen

    def _note(self, calls: Sequence[Call], rules: Sequence[Rule | None]) -> bool:
        """Record the transactions of a post; whether there are any for the node."""
        sends = [
            (raw_of(call), rule is None or rule.action.reaches)
            for call, rule in zip(calls, rules, strict=True)
            if call["method"] == SEND
        ]
        with self._delivered:
            self.posts += 1
            if sends:
                self.complaints += self._check([raw for raw, _ in sends])
                now = time.monotonic()
                self.sent += [Sent(len(self.sent) + i, now, *send) for i, send in enumerate(sends)]
            on_its_way = any(reaches for _, reaches in sends)
            self._under_way += on_its_way
        return on_its_way

    def _answer(self, body: bytes, calls: list[Call], actions: list[Action | None], is_batch: bool) -> Reply:
        if isinstance(actions[0], ForPost):
            return actions[0].make(self._forward(body).body if actions[0].reaches else b"")
        if not any(actions):
            return self._forward(body)
        untouched = [call for call, action in zip(calls, actions, strict=True) if action is None]
        given: dict[Any, Answer] = {}
        if untouched:
            given = {item["id"]: item for item in json.loads(self._forward(json.dumps(untouched).encode()).body)}
        acted = [(call, action) for call, action in zip(calls, actions, strict=True) if isinstance(action, ForCall)]
        backwards = [item for item in acted if item[1].last_first][::-1]
        for call, action in [item for item in acted if not item[1].last_first] + backwards:
            given[call["id"]] = action.act(call, self._forward_call)
        answers = [given[call["id"]] for call in calls]
        return Reply(json.dumps(answers if is_batch else answers[0]).encode())

    def _forward(self, body: bytes) -> Reply:
        answer = self._pool.request("POST", self._upstream, body=body, headers={"Content-Type": "application/json"})
        return Reply(answer.data, answer.status)

    def _forward_call(self, call: Call) -> Answer:
        answered: Answer = json.loads(self._forward(json.dumps(call).encode()).body)
        return answered


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
                reply = proxy.handle(body)
            except urllib3.exceptions.HTTPError:
                reply = Reply(ending=Ending.CLOSED)  # the node is gone
            if reply.ending is Ending.SILENT:
                proxy.wait_closing()
            if reply.ending is Ending.KEPT or reply.told_length is not None:
                self._write(reply)
            if reply.ending is Ending.RESET:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                os.close(self.connection.detach())
            elif reply.ending is not Ending.KEPT:
                self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = reply.ending is not Ending.KEPT

        def _write(self, reply: Reply) -> None:
            length = len(reply.body) if reply.told_length is None else reply.told_length
            lines = [f"HTTP/1.1 {reply.status} Answer", f"Content-Length: {length}", *reply.headers]
            self.wfile.write("\r\n".join(lines).encode() + b"\r\n\r\n" + reply.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's word)
            """Say nothing."""

    return Handler
