"""A way to PostgreSQL's Unix socket that a test can cut, one for each process that is to lose its database alone."""

import contextlib
import selectors
import socket
import threading
from pathlib import Path

from sqlalchemy.engine import make_url

_PORT = 5432


class DatabaseForwarder:
    """Listens in `directory` and passes on to the server of `url` until `cut`; `url` is then the way through it."""

    def __init__(self, directory: Path, url: str) -> None:
        directory.mkdir()
        target = make_url(url)
        self._target = f"{target.query['host']}/.s.PGSQL.{_PORT}"
        self._path = directory / f".s.PGSQL.{_PORT}"
        self.url = target.set(
            drivername="postgresql", query={"host": str(directory), "port": str(_PORT)}
        ).render_as_string(hide_password=False)
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.restore()

    def restore(self) -> None:
        """Let connections through."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self._path))
        listener.listen(64)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """End every connection and take no new one."""
        if self._listener is not None:
            self._path.unlink()
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.connect(self._target)
            threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        with self._lock:
            self._open |= {client, server}
        peer = {client: server, server: client}
        with client, server, selectors.DefaultSelector() as ready, contextlib.suppress(OSError):
            for one in peer:
                ready.register(one, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    given: socket.socket = key.fileobj  # type: ignore[assignment]  # a socket was registered
                    data = given.recv(65536)
                    if not data:
                        raise ConnectionResetError
                    peer[given].sendall(data)
        with self._lock:
            self._open -= {client, server}
