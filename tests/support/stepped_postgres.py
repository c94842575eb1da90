"""A PostgreSQL server whose clock a test sets while it runs, by libfaketime: wall time is stepped, durations stay true.

One per pytest process that asks for it. Where the package cannot be had, tests with it are skipped and say why.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from executor import embedded, embedded_launch, migration
from tests.support.faked_clock import FakedClock
from tests.support.postgres import plain_connection

_START_SECONDS = 30.0


class SteppedServer:
    """Runs from construction until `close`; its clock is true until `set_offset`."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._clock = FakedClock(state_dir / "clock-offset")
        self.set_offset = self._clock.set_offset
        with embedded.start(state_dir, child=True) as server:
            self._server = server
            command = Path(f"/proc/{server.pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
        self._process = self._start(command)
        self._wait_until_ready()
        self._count = 0
        self._template = self._make_template()

    def database(self) -> str:
        """The SQLAlchemy URL of one more migrated database."""
        self._count += 1
        name = f"stepped_{self._count}"
        self._execute("CREATE DATABASE {} TEMPLATE {}", name, self._template)
        return self._server.url(name)

    def close(self) -> None:
        """End the server and remove it."""
        self.set_offset(0.0)
        self._process.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._state_dir, ignore_errors=True)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        library = self._state_dir / "libfaketime.so"  # where the server's user can read it
        shutil.copy(self._clock.environment["LD_PRELOAD"], library)
        library.chmod(0o755)
        faked = {**self._clock.environment, "LD_PRELOAD": str(library)}
        account = self._server.place.account
        launcher = [sys.executable, "-I", "-S", embedded_launch.__file__, "child", str(os.getpid())]
        # The library begins with the server itself: what it shares between processes belongs to the server's user.
        wrapped = ["/usr/bin/env", *(f"{name}={value}" for name, value in faked.items()), *command]
        with (self._state_dir / "stepped.log").open("ab") as log:
            return subprocess.Popen(
                [*launcher, str(account.uid), str(account.gid), *wrapped],
                env={"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                plain_connection(self._server.conninfo("postgres")).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise AssertionError((self._state_dir / "stepped.log").read_text()[-2000:]) from None
                time.sleep(0.02)
            else:
                return

    def _make_template(self) -> str:
        name = "template_stepped"
        self._execute("CREATE DATABASE {}", name)
        migration.upgrade(self._server.url(name))
        self._execute("ALTER DATABASE {} ALLOW_CONNECTIONS false", name)
        with plain_connection(self._server.conninfo("postgres")) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,)
            )
        return name

    def _execute(self, statement: str, *names: str) -> None:
        with plain_connection(self._server.conninfo("postgres")) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))  # type: ignore[arg-type]  # ours


@pytest.fixture(scope="session")
def _stepped_server() -> Iterator[SteppedServer]:
    state_dir = Path(tempfile.mkdtemp(prefix="fenced-stepped-"))
    state_dir.chmod(0o711)
    server = SteppedServer(state_dir)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def stepped_server(_stepped_server: SteppedServer) -> Iterator[SteppedServer]:
    """The server of this pytest process, at the true time when a test begins."""
    _stepped_server.set_offset(0.0)
    yield _stepped_server
    _stepped_server.set_offset(0.0)
