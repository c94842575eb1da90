"""Fixtures for tests on a real PostgreSQL: one embedded server per pytest process, a database without rows for each test.

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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from executor import embedded

_PREFIX = "fenced-test-"
_STALE_SECONDS = 600.0
_numbers = itertools.count(1)
_SCHEMA = """
SELECT md5(string_agg(item, E'\\n' ORDER BY item)) FROM (
  SELECT c.oid::text || ' ' || c.relname || ' ' || c.relkind::text || ' ' || coalesce(c.relacl::text, '') || ' ' || coalesce(c.reloptions::text, '') AS item
    FROM pg_class c WHERE c.oid >= 16384
  UNION ALL SELECT a::text FROM pg_attribute a WHERE a.attrelid >= 16384
  UNION ALL SELECT d::text FROM pg_attrdef d WHERE d.oid >= 16384
  UNION ALL SELECT c::text FROM pg_constraint c WHERE c.oid >= 16384
  UNION ALL SELECT i::text FROM pg_index i WHERE i.indexrelid >= 16384
  UNION ALL SELECT p::text FROM pg_proc p WHERE p.oid >= 16384
  UNION ALL SELECT t.oid::text || ' ' || pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE t.oid >= 16384
  UNION ALL SELECT v::text FROM alembic_version v
  UNION ALL SELECT n::text FROM pg_namespace n
  UNION ALL SELECT e::text FROM pg_extension e
  UNION ALL SELECT coalesce(datacl::text, '') || datconnlimit::text || datallowconn::text FROM pg_database WHERE datname = current_database()
) items
"""
"""Whatever a test may change of a database beside its rows; copies of one template agree in it."""
_EMPTY = """
DO $$
DECLARE
  found regclass;
  filled regclass[] := '{}';
  has_rows boolean;
  item record;
BEGIN
  FOR found IN
    SELECT format('%I.%I', schemaname, tablename)::regclass FROM pg_tables WHERE schemaname IN ('public', 'signer') AND tablename <> 'alembic_version'
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', found) INTO has_rows;
    IF has_rows THEN filled := filled || found; END IF;
  END LOOP;
  FOREACH found IN ARRAY filled LOOP EXECUTE format('ALTER TABLE %s DISABLE TRIGGER ALL', found); END LOOP;
  FOREACH found IN ARRAY filled LOOP EXECUTE format('DELETE FROM %s', found); END LOOP;
  INSERT INTO installation SELECT * FROM jsonb_populate_record(NULL::installation, current_setting('test.installation')::jsonb);
  INSERT INTO clock_guard SELECT * FROM jsonb_populate_record(NULL::clock_guard, current_setting('test.clock_guard')::jsonb);
  FOREACH found IN ARRAY filled LOOP EXECUTE format('ALTER TABLE %s ENABLE TRIGGER ALL', found); END LOOP;
  FOR item IN SELECT tgrelid::regclass AS owner, tgname AS name FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'A' LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', item.owner, item.name);
  END LOOP;
  FOR item IN SELECT format('%I.%I', schemaname, sequencename)::regclass AS name FROM pg_sequences WHERE last_value IS NOT NULL LOOP
    PERFORM setval(item.name, 1, false);
  END LOOP;
END $$
"""
"""Rows, numbers and triggers are again as the migrations left them."""


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


@pytest.fixture(scope="session")
def _kept_databases(postgres_server: embedded.Server, database_template: str) -> "Iterator[_KeptDatabases]":
    kept = _KeptDatabases(postgres_server, database_template)
    yield kept
    kept.drop()


@pytest.fixture
def make_database(_kept_databases: "_KeptDatabases") -> Iterator[Callable[[], str]]:
    """A function that returns the SQLAlchemy URL of one more migrated database without rows."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(_kept_databases.lend())


@pytest.fixture
def database_url(make_database: Callable[[], str]) -> str:
    """The SQLAlchemy URL of a migrated database without rows, for this test alone."""
    return make_database()


@pytest.fixture
def empty_database(postgres_server: embedded.Server) -> Iterator[str]:
    """The SQLAlchemy URL of a fresh database without migrations."""
    with _Database(postgres_server, "template0") as url:
        yield url


def plain_connection(url: str) -> psycopg.Connection:
    """An autocommit psycopg connection; takes a SQLAlchemy URL or a libpq connection string."""
    return psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), autocommit=True)


class _KeptDatabases:
    """Migrated databases that tests use one after the other: emptying one costs a fraction of making one.

    One that came back with another schema or other settings is dropped.
    """

    def __init__(self, server: embedded.Server, template: str) -> None:
        self._server, self._template = server, template
        self._free: list[_Database] = []
        self._schema = ""
        self._rows: dict[str, str] = {}

    @contextmanager
    def lend(self) -> Iterator[str]:
        """The URL of one, for the length of the context."""
        database = self._free.pop() if self._free else self._make()
        try:
            yield database.url
        finally:
            database.end_sessions()
            if database.has_settings() or not self._empty(database):
                database.__exit__()
            else:
                self._free.append(database)

    def drop(self) -> None:
        """Drop those that nobody has."""
        for database in self._free:
            database.__exit__()

    def _make(self) -> "_Database":
        database = _Database(self._server, self._template)
        with plain_connection(database.__enter__()) as connection:
            if not self._schema:
                self._schema = _only(connection.execute(_SCHEMA))
                for table in ("installation", "clock_guard"):
                    query = sql.SQL("SELECT to_jsonb(r)::text FROM {} r").format(sql.Identifier(table))
                    self._rows[table] = _only(connection.execute(query))
        return database

    def _empty(self, database: "_Database") -> bool:
        """Bring rows, numbers and triggers back; False, and nothing done, where the schema is another."""
        with plain_connection(database.url) as connection:
            if _only(connection.execute(_SCHEMA)) != self._schema:
                return False
            for table, row in self._rows.items():
                connection.execute("SELECT set_config(%s, %s, false)", (f"test.{table}", row))
            connection.execute(_EMPTY)
        return True


def _only(cursor: psycopg.Cursor[Any]) -> str:
    """The one value of the one row."""
    (row,) = cursor.fetchall()
    return str(row[0])


class _Database:
    """A copy of `template`, dropped with whatever is connected at the end."""

    def __init__(self, server: embedded.Server, template: str) -> None:
        self._server, self._template = server, template
        self._name = f"test_{next(_numbers)}"
        self.url = server.url(self._name)

    def __enter__(self) -> str:
        self._execute("CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log", self._name, self._template)
        return self.url

    def __exit__(self, *_: object) -> None:
        self.end_sessions()
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", self._name)

    def end_sessions(self) -> None:
        """End whatever is still connected."""
        # DROP alone looks for the end of the sessions every 100 ms only.
        deadline = time.monotonic() + 0.1
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        with plain_connection(self._server.conninfo("postgres")) as connection:
            while connection.execute(query, (self._name,)).fetchone() and time.monotonic() < deadline:
                time.sleep(0.002)

    def has_settings(self) -> bool:
        """Whether there are settings of this database, which also meet who looks at it."""
        query = "SELECT FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase WHERE datname = %s"
        with plain_connection(self._server.conninfo("postgres")) as connection:
            return connection.execute(query, (self._name,)).fetchone() is not None

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
