"""A TCP proxy before PostgreSQL that understands enough of the wire protocol to cut a connection around a chosen COMMIT.

Before: the COMMIT never reaches the server. After: it took effect, and the reply never reaches the client. To the client
both look the same, which is why it may believe neither (P12). Instead: the statement itself never reaches the server.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from executor import embedded
from executor.embedded_process import PORT, ROLE

_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102
Side = Literal["before", "after", "instead"]


@dataclass(eq=False)
class Cut:
    """The COMMIT of the next transaction with `text` in one of its statements, or that statement, by `actor` (None: anybody)."""

    text: str
    side: Side
    actor: str | None
    fired: threading.Event = field(default_factory=threading.Event)


class DatabaseProxy:
    """Listens on 127.0.0.1 and forwards to the socket of `server`. Use it as a context manager."""

    def __init__(self, server: embedded.Server) -> None:
        self._socket = server.place.socket_dir / f".s.PGSQL.{PORT}"
        self._lock = threading.Lock()
        self._cuts: list[Cut] = []
        self._open: set[_Session] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of `database` by way of the proxy."""
        return f"postgresql+psycopg://{ROLE}@127.0.0.1:{self.port}/{database}?sslmode=disable&gssencmode=disable"

    def cut(self, text: str, side: Side, actor: str | None = None) -> Cut:
        """Arm a cut; it fires once."""
        made = Cut(" ".join(text.split()).lower(), side, actor)
        with self._lock:
            self._cuts.append(made)
        return made

    def close(self) -> None:
        """Stop, and close every connection."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for session in list(self._open):
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _k: type[BaseException] | None, _v: BaseException | None, _t: TracebackType | None) -> None:
        self.close()

    def take(self, actor: str, statements: list[str], *sides: Side) -> Cut | None:
        """The armed cut on one of `sides` that fits these statements, disarmed."""
        with self._lock:
            for cut in self._cuts:
                fits = cut.side in sides and cut.actor in (None, actor)
                if fits and any(cut.text in statement for statement in statements):
                    self._cuts.remove(cut)
                    return cut
        return None

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            session = _Session(client, self._socket, self.take, self._open.discard)
            self._open.add(session)
            threading.Thread(target=session.serve, daemon=True).start()


class _Session:
    """One client's connection: a thread for each direction."""

    def __init__(
        self,
        client: socket.socket,
        upstream: Path,
        take: Callable[..., Cut | None],
        ended: Callable[["_Session"], None],
    ) -> None:
        self._client, self._upstream, self._take, self._ended = client, upstream, take, ended
        self._server = socket.socket(socket.AF_UNIX)
        self._actor = ""
        self._swallowing: Cut | None = None
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def serve(self) -> None:
        try:
            self._server.connect(str(self._upstream))
            if self._start():
                threading.Thread(target=self._answers, daemon=True).start()
                self._requests()
        except (OSError, EOFError):
            pass
        finally:
            self.close()
            self._ended(self)

    def close(self) -> None:
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _start(self) -> bool:
        """The messages before the first typed one; False for a cancel, which is passed on and done."""
        while True:
            head = _exactly(self._client, 8)
            length, code = struct.unpack("!ii", head)
            if code in (_SSL, _GSS):
                self._client.sendall(b"N")
                continue
            body = _exactly(self._client, length - 8)
            self._server.sendall(head + body)
            if code == _CANCEL:
                return False
            words = body.split(b"\0")
            named = dict(zip(words[::2], words[1::2], strict=False))
            self._actor = named.get(b"application_name", b"").decode()
            return True

    def _requests(self) -> None:
        prepared: dict[bytes, str] = {}
        statements: list[str] = []
        for kind, body, message in _messages(self._client):
            wanted = None
            if kind == b"P":
                name, query = body.split(b"\0")[:2]
                prepared[name] = _plain(query)
            elif kind == b"Q":
                wanted = _plain(body.rstrip(b"\0"))
            elif kind == b"B":
                wanted = prepared.get(body.split(b"\0")[1], "")
            if wanted is not None:
                cut = self._take(self._actor, [wanted], "instead")
                if wanted == "commit":
                    cut = cut or self._take(self._actor, statements, "before", "after")
                if cut is not None and cut.side != "after":
                    cut.fired.set()
                    self.close()
                    return
                if wanted == "commit":
                    self._swallowing = cut
                statements = [] if wanted in ("commit", "rollback") else [*statements, wanted]
            self._server.sendall(message)

    def _answers(self) -> None:
        try:
            for kind, _, message in _messages(self._server):
                cut = self._swallowing
                if cut is None:
                    self._client.sendall(message)
                elif kind == b"C":  # CommandComplete: it took effect
                    cut.fired.set()
                    self.close()
                    return
        except (OSError, EOFError):
            pass
        finally:
            self.close()


def _messages(source: socket.socket) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Typed messages: kind, body, and the whole as it came."""
    buffer = b""
    while True:
        while len(buffer) >= 5 and len(buffer) >= (size := 1 + struct.unpack_from("!i", buffer, 1)[0]):
            message, buffer = buffer[:size], buffer[size:]
            yield message[:1], message[5:], message
        more = source.recv(1 << 16)
        if not more:
            return
        buffer += more


def _exactly(source: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = source.recv(size - len(got))
        if not more:
            raise EOFError
        got += more
    return got


def _plain(query: bytes) -> str:
    return " ".join(query.decode(errors="replace").split()).lower()
