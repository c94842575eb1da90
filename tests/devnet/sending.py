"""A client over a bare socket: what a sender sees of an answer, byte by byte, and of a connection that breaks."""

import json
import socket
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tests.support.devnet import Devnet

PATIENCE = 20.0


@dataclass
class Heard:
    """What came back until the announced length was there or the connection ended. `end` says how it ended, if it did."""

    head: str = ""
    body: bytes = b""
    end: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return int(self.head.split()[1])

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """One HTTP connection to a devnet, kept alive between calls."""

    def __init__(self, devnet: Devnet) -> None:
        self._socket = socket.create_connection((devnet.host, devnet.port), PATIENCE)

    def say(self, payload: Any, path: str = "/", **headers: str) -> None:
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        lines = [
            f"POST {path} HTTP/1.1",
            "Host: devnet",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def hear(self) -> Heard:
        heard, received = Heard(), b""
        while True:
            try:
                chunk = self._socket.recv(65536)
            except ConnectionResetError:
                heard.end = "reset"
                break
            if not chunk:
                heard.end = "closed"
                break
            received += chunk
            head, parted, heard.body = received.partition(b"\r\n\r\n")
            if parted:
                heard.head, *lines = head.decode().split("\r\n")
                heard.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                if len(heard.body) == int(heard.headers.get("content-length", 0)):
                    break
        return heard

    def silent_for(self, seconds: float) -> bool:
        """Whether nothing comes for so long, and the connection stays open."""
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(PATIENCE)

    def ask(self, payload: Any, path: str = "/", **headers: str) -> Heard:
        self.say(payload, path, **headers)
        return self.hear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._socket.close()


def call(method: str, *params: Any, call_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "method": method, "params": list(params)}


def ask(devnet: Devnet, payload: Any, path: str = "/", **headers: str) -> Heard:
    """One request on a connection of its own."""
    with Connection(devnet) as connection:
        return connection.ask(payload, path, **headers)
