"""PostgreSQL servers of a test's own: backed up, restored, followed by standbys, promoted; and one address that can be moved between them."""

import contextlib
import ctypes
import os
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import psycopg

from executor import embedded_place, migration
from tests.support.worker_process import wait_for

ROLE = "fenced"
DATABASE = "fenced"
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "wal_keep_size": "128MB",
    "max_connections": "60",
    "timezone": "UTC",
}


class Cluster:
    """One server on one data directory, reached through a Unix socket; it ends with pytest."""

    def __init__(self, home: Path, account: embedded_place.Account) -> None:
        self.home, self.account = home, account
        self.data = home / "data"
        self.process: subprocess.Popen[bytes] | None = None
        self._programs = embedded_place.binaries(account)

    @property
    def socket(self) -> Path:
        """The Unix socket it listens on."""
        return self.home / ".s.PGSQL.5432"

    def url(self, database: str = DATABASE) -> str:
        """SQLAlchemy's address of a database on it."""
        return f"postgresql+psycopg://{ROLE}@/{database}?host={self.home}"

    def run(self, program: str, *arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
        """Run one of PostgreSQL's programs as the server's user."""
        command = [str(self._programs / program), *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, cwd="/", **self._as_user(), **more)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """One statement, in autocommit."""
        with psycopg.connect(host=str(self.home), user=ROLE, dbname=database, autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]  # texts of these tests
            return cursor.fetchall() if cursor.description else []

    def start(self, **settings: str) -> Self:
        """Start and wait until it takes connections; a standby takes readers."""
        options = {**_SETTINGS, "unix_socket_directories": str(self.home), **settings}
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.data), *arguments],
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=_die_with_parent,  # noqa: PLW1509  (one system call, no lock is taken)
                start_new_session=True,
                **self._as_user(),
            )
        wait_for(self._answers, 60.0, f"PostgreSQL in {self.home} answers")
        return self

    def stop(self, sign: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT is a fast shutdown, SIGQUIT an immediate one, which is a crash."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(sign)
            self.process.wait(60)

    def promote(self) -> None:
        """Make a standby the primary, on a new timeline."""
        self.execute("SELECT pg_promote(true, 60)")
        wait_for(lambda: self.execute("SELECT pg_is_in_recovery()") == [(False,)], 60.0, "the standby is promoted")

    def wait_primary(self) -> None:
        """Wait until a restored server has finished its recovery."""
        wait_for(lambda: self.execute("SELECT pg_is_in_recovery()") == [(False,)], 60.0, "the recovery has ended")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.home / "log").read_text(errors="replace")[-2000:]
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _as_user(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        return {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}


class Servers:
    """Makes clusters below one directory, all from one pristine one that has the migrated database."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._account = embedded_place.locate(home).account
        self._stack = ExitStack()
        self._pristine = self._cluster("pristine")
        self._pristine.run(
            "initdb", "-D", self._pristine.data, "-U", ROLE, "-A", "trust", "--encoding=UTF8", "--locale=C", "--no-sync"
        )
        self._pristine.start(fsync="off")
        self._pristine.execute(f"CREATE DATABASE {DATABASE}")
        migration.upgrade(self._pristine.url())
        self._pristine.stop()
        self._count = 0

    def primary(self, **settings: str) -> Cluster:
        """A running server with the migrated database."""
        made = self._next("primary")
        self._copy(self._pristine.data, made.data)
        return made.start(**settings)

    def backup(self, of: Cluster) -> Cluster:
        """A base backup of a running server, with the log that makes it consistent; not started."""
        made = self._next("backup")
        made.run("pg_basebackup", "-h", of.home, "-U", ROLE, "-D", made.data, "-X", "stream", "-c", "fast", "--no-sync")
        return made

    def restored(self, backup: Cluster) -> Cluster:
        """A backup restored to its own end (point-in-time recovery): a primary on a new timeline."""
        settings = {"restore_command": "false", "recovery_target": "immediate", "recovery_target_action": "promote"}
        (backup.data / "recovery.signal").touch()
        backup.start(**settings).wait_primary()
        return backup

    def standby(self, of: Cluster, **settings: str) -> Cluster:
        """A running standby that follows `of`."""
        made = self._next("standby")
        made.run(
            "pg_basebackup", "-h", of.home, "-U", ROLE, "-D", made.data, "-X", "stream", "-c", "fast", "-R", "--no-sync"
        )
        made.start(**settings)
        wait_for(
            lambda: of.execute("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"),
            60.0,
            "the standby follows",
        )
        return made

    def close(self) -> None:
        """End all servers."""
        self._stack.close()

    def _next(self, kind: str) -> Cluster:
        self._count += 1
        return self._cluster(f"{kind}-{self._count}")

    def _cluster(self, name: str) -> Cluster:
        home = self._home / name
        home.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(home, self._account.uid, self._account.gid)
        made = Cluster(home, self._account)
        self._stack.callback(made.stop, signal.SIGQUIT)
        return made

    def _copy(self, source: Path, target: Path) -> None:
        user = {"user": self._account.uid, "group": self._account.gid, "extra_groups": []} if os.geteuid() == 0 else {}
        subprocess.run(["cp", "-a", str(source), str(target)], check=True, cwd="/", **user)  # type: ignore[call-overload]


@contextmanager
def servers() -> Iterator[Servers]:
    """A directory for servers, and a way to make them."""
    home = Path(tempfile.mkdtemp(prefix="fenced-rewind-"))
    home.chmod(0o711)
    made = Servers(home)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)


class Address:
    """One TCP address whose connections go to whatever server it points at: what a virtual address or a DNS name is in production."""

    def __init__(self, target: Cluster) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str = DATABASE) -> str:
        """SQLAlchemy's address."""
        return f"postgresql+psycopg://{ROLE}@127.0.0.1:{self.port}/{database}"

    def point(self, target: Cluster) -> None:
        """Cut every connection; the next ones go to `target`."""
        with self._lock:
            self._target = target
        self.cut()

    def cut(self) -> None:
        """Close every connection."""
        with self._lock:
            closing, self._open = self._open, set()
        _close(*closing)

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._target.socket))
            except OSError:
                _close(client, server)
                continue
            with self._lock:
                self._open |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
    _close(source, target)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def _die_with_parent() -> None:
    """The kernel ends the server with pytest's main thread (PR_SET_PDEATHSIG, after the change of user)."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(1, signal.SIGQUIT, 0, 0, 0)
