"""JSON-RPC over a Unix socket as geth has it: JSON values one after another, with or without white space between them."""

import asyncio
import re
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from devnet.errors import StartError
from devnet.node import Node
from devnet.server.session import Respond, Session

MAX_MESSAGE = 64 * 1024 * 1024
_CHUNK = 64 * 1024
_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE_STRING = re.compile(rb'["\\]')
_OPENING, _CLOSING = b"{[", b"}]"
_UNREADABLE = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}'


class JsonStream:
    """Cuts a stream of bytes into its JSON objects and arrays; whether each is well-formed is for others to say."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self._depth = 0
        self._in_string = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take more bytes; the values that are complete with them. Raises ValueError for what cannot be one."""
        self._buffer += chunk
        values: list[bytes] = []
        while (found := (_INSIDE_STRING if self._in_string else _OUTSIDE).search(self._buffer, self._at)) is not None:
            mark = found[0]
            self._at = found.end()
            if mark == b"\\":
                if self._at == len(self._buffer):  # what it escapes is still to come
                    self._at -= 1
                    return values
                self._at += 1
            elif mark == b'"':
                self._in_string = not self._in_string
            elif mark in _OPENING:
                self._depth += 1
            else:
                self._depth -= 1
            if self._depth == 0 and mark in _CLOSING:
                values.append(bytes(self._buffer[: self._at]).strip())
                del self._buffer[: self._at]
                self._at = 0
            elif self._depth <= 0:
                raise ValueError("only objects and arrays can be read")
        self._at = len(self._buffer)
        if self._depth == 0 and self._buffer.strip():
            raise ValueError("only objects and arrays can be read")
        if len(self._buffer) > MAX_MESSAGE:
            raise ValueError(f"a message has more than {MAX_MESSAGE} bytes")
        return values


@asynccontextmanager
async def ipc_server(
    node: Node, path: Path, respond: Callable[[], Respond], calls: set[asyncio.Task[None]]
) -> AsyncIterator[None]:
    """Serve on a Unix socket that only its owner can use, and remove it at the end. `respond` makes a new client's answerer.

    Raises StartError where the path is taken or no socket can be made there.
    """
    _make_way(path)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = _SocketWire(writer)
        try:
            await Session(node, respond(), wire, calls).run(_bodies(reader, wire))
        finally:
            writer.close()

    try:
        server = await asyncio.start_unix_server(serve, path)
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    except (OSError, ValueError) as problem:
        raise StartError(f"cannot listen on {path}: {getattr(problem, 'strerror', None) or problem}") from None
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


def _make_way(path: Path) -> None:
    """Remove a socket that nobody listens on any more. Raises StartError for one in use or any other file."""
    if not path.exists():
        return
    if not path.is_socket():
        raise StartError(f"cannot listen on {path}: it is no socket, give another path")
    with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
        probe.connect(str(path))
        raise StartError(f"cannot listen on {path}: Address already in use")
    path.unlink(missing_ok=True)


async def _bodies(reader: asyncio.StreamReader, wire: "_SocketWire") -> AsyncIterator[bytes]:
    stream = JsonStream()
    with suppress(ConnectionError):
        while chunk := await reader.read(_CHUNK):
            try:
                values = stream.feed(chunk)
            except ValueError:
                await wire.send(_UNREADABLE)  # geth too says so and hangs up
                return
            for value in values:
                yield value


class _SocketWire:
    """A line a message, as geth writes them."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, message: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(message + b"\n")
            with suppress(ConnectionError):
                await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()

    def cut(self) -> None:
        self._writer.transport.abort()

    def tear(self, message: bytes, count: int) -> None:
        self._writer.write(message[:count])
        self._writer.close()
