"""A misbehaving node: a real HTTP server that plays back what a test scripted, and keeps what it was sent."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = bytes | Callable[[Any], Any]
"""Raw bytes of a whole HTTP answer, or a function from the request's JSON to the answer's JSON (or raw bytes)."""


@dataclass
class Node:
    """Answers the n-th post by the n-th script entry, and further posts by the last."""

    script: list[Answer]
    url: str = ""
    posts: list[Any] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    @property
    def label(self) -> str:
        return self.url.removeprefix("http://")

    def take(self, body: Any, headers: Any) -> Answer:
        with self.lock:
            self.posts.append(body)
            self.headers.append(headers)
            return self.script[min(len(self.posts), len(self.script)) - 1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    node: Node

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        made = self.node.take(body, dict(self.headers))
        if callable(made):
            made = made(body)
        if not isinstance(made, bytes):
            made = http(200, json.dumps(made).encode())
        self.close_connection = True
        self.wfile.write(made)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


def http(status: int, body: bytes, *headers: str, length: int | None = None) -> bytes:
    lines = [
        f"HTTP/1.1 {status} Scripted",
        "content-type: application/json",
        f"content-length: {len(body) if length is None else length}",
        "connection: close",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def methods(table: dict[str, Any]) -> Callable[[Any], Any]:
    """Answer singles and batches by method; a callable gets the parameters, an Exception's args are an error."""

    def one(request: dict) -> dict:
        found = table.get(request["method"], ValueError(-32601, "Method not found"))
        if callable(found):
            found = found(request["params"])
        envelope = {"jsonrpc": "2.0", "id": request["id"]}
        if isinstance(found, Exception):
            return envelope | {"error": {"code": found.args[0], "message": found.args[1]}}
        return envelope | {"result": found}

    return lambda body: [one(item) for item in body] if isinstance(body, list) else one(body)


@contextmanager
def node(*script: Answer) -> Iterator[Node]:
    made = Node(list(script))
    handler = type("Handler", (_Handler,), {"node": made})
    server = _Server(("127.0.0.1", 0), handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
