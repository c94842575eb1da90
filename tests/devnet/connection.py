"""Clients of a lasting connection for the tests: they call, and are told things between the answers."""

import itertools
import json
import socket
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import connect

from tests.support.devnet import NodeProcess, RpcFailure

SECONDS = 20.0  # no test should ever wait for so long


class Connection:
    """Calls with `rpc`; what was not asked for waits for `told`. A context manager."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self.messages: deque[Any] = deque()

    def send(self, message: str) -> None:
        raise NotImplementedError

    def receive(self, seconds: float = SECONDS) -> Any:
        """The next message, an answer or not. Raises TimeoutError."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def ask(self, method: str, *params: Any) -> int:
        """Send a call, await nothing."""
        call_id = next(self._ids)
        self.send(json.dumps({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params}))
        return call_id

    def rpc(self, method: str, *params: Any) -> Any:
        """Call a method; its result. Raises RpcFailure."""
        call_id = self.ask(method, *params)
        while (message := self.receive()).get("id") != call_id:
            self.messages.append(message)
        if "error" in message:
            raise RpcFailure(message["error"])
        return message["result"]

    def told(self) -> tuple[str, Any]:
        """The next notification: subscription and result."""
        message = self.messages.popleft() if self.messages else self.receive()
        assert message["method"] == "eth_subscription"
        return message["params"]["subscription"], message["params"]["result"]

    def told_all(self) -> list[tuple[str, Any]]:
        """Every notification there is by now: the node answers calls in order, notifications included."""
        self.rpc("eth_chainId")
        return [self.told() for _ in range(len(self.messages))]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


class WebSocket(Connection):
    """On the port of HTTP."""

    def __init__(self, node: NodeProcess, path: str = "/") -> None:
        super().__init__()
        self._open = ExitStack()
        self.socket = self._open.enter_context(
            connect(f"ws://{node.host}:{node.port}{path}", max_size=None, compression=None)
        )

    def send(self, message: str) -> None:
        self.socket.send(message)

    def receive(self, seconds: float = SECONDS) -> Any:
        return json.loads(self.socket.recv(seconds))

    def close(self) -> None:
        self._open.close()


class UnixSocket(Connection):
    """The IPC path, a line a message."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))
        self._lines = self.socket.makefile("rb")

    def send(self, message: str) -> None:
        self.socket.sendall(message.encode())

    def receive(self, seconds: float = SECONDS) -> Any:
        self.socket.settimeout(seconds)
        line = self._lines.readline()
        if not line:
            raise ConnectionError("the node hung up")
        return json.loads(line)

    def close(self) -> None:
        self._lines.close()
        self.socket.close()
