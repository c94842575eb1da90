"""Fixtures for tests on a real PostgreSQL: one embedded server per pytest process, one database per test.

The server is a direct child of pytest and ends with it, even when pytest is killed. Connection strings work in child
processes. It runs as in production, with fsync: copies and drops cost the same without. FENCED_TEST_FSYNC=0 turns it
off where disks are slow; nothing in the product may be measured that way.
"""

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from executor import embedded

_PREFIX = "fenced-test-"
_STALE_SECONDS = 600.0
_numbers = itertools.count(1)
_EMPTY = """
DO $$
DECLARE
  tables regclass[] := ARRAY(
    SELECT format('%I.%I', schemaname, tablename)::regclass FROM pg_tables
     WHERE schemaname IN ('public', 'signer') AND tablename NOT IN ('installation', 'alembic_version', 'clock_guard'));
  found regclass;
  always record;
BEGIN
  CREATE TEMPORARY TABLE always_fires ON COMMIT DROP AS
    SELECT tgrelid::regclass AS owner, tgname AS name FROM pg_trigger WHERE tgenabled = 'A';
  FOREACH found IN ARRAY tables LOOP EXECUTE format('ALTER TABLE %s DISABLE TRIGGER ALL', found); END LOOP;
  FOREACH found IN ARRAY tables LOOP EXECUTE format('DELETE FROM %s', found); END LOOP;
  FOREACH found IN ARRAY tables LOOP EXECUTE format('ALTER TABLE %s ENABLE TRIGGER ALL', found); END LOOP;
  FOR always IN SELECT * FROM always_fires LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', always.owner, always.name);
  END LOOP;
END $$
"""
"""Every row goes but those that describe the installation itself; triggers come back as they were."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[embedded.Server]:
    """The embedded server of this pytest process."""
    _remove_stale()
    # Not below pytest's own directory: that is closed to the user the server runs as when pytest is root.
    state_dir = Path(tempfile.mkdtemp(prefix=_PREFIX))
    state_dir.chmod(0o711)
    try:
        with embedded.start(state_dir, child=True, fsync=os.environ.get("FENCED_TEST_FSYNC") != "0") as server:
            yield server
    finally:
        shutil.rmtree(state_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def database_template(postgres_server: embedded.Server) -> str:
    """The name of a database at the newest migration, to copy from; nobody can connect to it."""
    from executor import migration

    name = "template_migrated"
    with plain_connection(postgres_server.conninfo("postgres")) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        migration.upgrade(postgres_server.url(name))
        # A pooled connection left open would make every copy fail.
        connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(name)))
        connection.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,))
    return name


@pytest.fixture
def make_database(postgres_server: embedded.Server, database_template: str) -> Iterator[Callable[[], str]]:
    """A function that creates one more migrated database and returns its SQLAlchemy URL."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(_Database(postgres_server, database_template))


@pytest.fixture
def database_url(make_database: Callable[[], str]) -> str:
    """The SQLAlchemy URL of a fresh migrated database of this test alone."""
    return make_database()


@pytest.fixture(scope="session")
def used_databases(postgres_server: embedded.Server, database_template: str) -> Iterator[Callable[[int], list[str]]]:
    """A function that gives so many migrated databases without rows, the same ones each time: emptying costs less than making."""
    urls: list[str] = []
    with ExitStack() as stack:

        def get(count: int) -> list[str]:
            while len(urls) < count:
                urls.append(stack.enter_context(_Database(postgres_server, database_template)))
            for url in urls[:count]:
                _empty(url)
            return urls[:count]

        yield get


@pytest.fixture
def empty_database(postgres_server: embedded.Server) -> Iterator[str]:
    """The SQLAlchemy URL of a fresh database without migrations."""
    with _Database(postgres_server, "template0") as url:
        yield url


def plain_connection(url: str) -> psycopg.Connection:
    """An autocommit psycopg connection; takes a SQLAlchemy URL or a libpq connection string."""
    return psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), autocommit=True)


def _empty(url: str) -> None:
    """End other sessions and take the rows away."""
    with plain_connection(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute(_EMPTY)


class _Database:
    """A copy of `template`, dropped with whatever is connected at the end."""

    def __init__(self, server: embedded.Server, template: str) -> None:
        self._server, self._template = server, template
        self._name = f"test_{next(_numbers)}"

    def __enter__(self) -> str:
        self._execute("CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log", self._name, self._template)
        return self._server.url(self._name)

    def __exit__(self, *_: object) -> None:
        self._terminate()
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", self._name)

    def _terminate(self) -> None:
        # DROP alone looks for the end of the sessions every 100 ms only.
        deadline = time.monotonic() + 0.1
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        with plain_connection(self._server.conninfo("postgres")) as connection:
            while connection.execute(query, (self._name,)).fetchone() and time.monotonic() < deadline:
                time.sleep(0.002)

    def _execute(self, statement: str, *names: str) -> None:
        with plain_connection(self._server.conninfo("postgres")) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _remove_stale() -> None:
    """Remove directories of pytest processes that were killed: ours, old, and without a running server."""
    for state_dir in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        try:
            found = state_dir.lstat()
            old = time.time() - found.st_mtime > _STALE_SECONDS
            if old and found.st_uid == os.geteuid() and embedded.status(state_dir) is None:
                shutil.rmtree(state_dir, ignore_errors=True)
        except (OSError, embedded.EmbeddedError):
            continue
