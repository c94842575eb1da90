"""A PostgreSQL of one test module alone, whose settings may be bent and which may be ended as a crash would end it."""

import itertools
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql

from executor import embedded, migration
from tests.support.worker_process import wait_for

_numbers = itertools.count(1)


class OwnServer:
    """Start it from the main thread, as a context manager. `server` changes at each restart; URLs stay."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="fenced-own-"))
        self.directory.chmod(0o711)
        self.server = embedded.start(self.directory, child=True)

    def database(self) -> str:
        """The SQLAlchemy URL of one more migrated database."""
        name = f"own_{next(_numbers)}"
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
        migration.upgrade(self.server.url(name))
        return self.server.url(name)

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """An autocommit connection that waits for no standby."""
        connection = psycopg.connect(self.server.conninfo(database), autocommit=True)
        connection.execute("SET synchronous_commit = local")
        connection.execute("SET default_transaction_read_only = off")
        return connection

    def configure(self, **settings: str) -> None:
        """ALTER SYSTEM and reload; an empty value resets. Returns when new connections see it."""
        with self.connect() as connection:
            for name, value in settings.items():
                change = sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
                reset = sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(name))
                connection.execute(change if value else reset)
            before: Any = connection.execute("SELECT pg_conf_load_time()").fetchone()
            connection.execute("SELECT pg_reload_conf()")
        wait_for(lambda: self._loaded() > before[0], 30, "the settings are loaded")

    def crash(self) -> None:
        """What `pg_ctl restart -m immediate` does: no checkpoint, no goodbye, and recovery at the next start."""
        process = self.server.process
        assert process is not None
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
        self.server = embedded.start(self.directory, child=True)

    def _loaded(self) -> Any:
        with self.connect() as connection:
            found: Any = connection.execute("SELECT pg_conf_load_time()").fetchone()
        return found[0]

    def close(self) -> None:
        self.server.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _k: type[BaseException] | None, _v: BaseException | None, _t: TracebackType | None) -> None:
        self.close()


class Canceller:
    """Cancels, from another session, every COMMIT that waits for a standby: each comes back with a warning (P12)."""

    def __init__(self, connect: Callable[[], psycopg.Connection]) -> None:
        self._connection = connect()
        self.cancelled: list[str] = []

    def cancel(self) -> list[str]:
        """Who waited just now, by application name."""
        rows = self._connection.execute(
            "WITH waiting AS MATERIALIZED (SELECT pid, application_name FROM pg_stat_activity WHERE wait_event = 'SyncRep')"
            " SELECT application_name FROM waiting WHERE pg_cancel_backend(pid)"
        ).fetchall()
        found = [str(row[0]) for row in rows]
        self.cancelled += found
        return found

    def cancel_until(self, condition: Callable[[], object], seconds: float, what: str) -> None:
        """Cancel all that wait until `condition` is true. Raises AssertionError naming `what`."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}; cancelled {self.cancelled}"
            self.cancel()
            time.sleep(0.02)

    def close(self) -> None:
        self._connection.close()
