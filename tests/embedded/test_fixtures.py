"""The fixtures the other tests stand on."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from executor import embedded
from tests.embedded.support_embedded import output, python
from tests.support.postgres import _Database, _KeptDatabases, plain_connection

CONNECT = "import sys, sqlalchemy as s; print(s.create_engine(sys.argv[1]).connect().scalar(s.text('SELECT 1')))"


@pytest.fixture
def server(cluster: Path) -> Iterator[embedded.Server]:
    with embedded.start(cluster, child=True) as server:
        yield server


def test_databases_are_apart_reachable_from_processes_and_dropped_while_in_use(server: embedded.Server) -> None:
    with ExitStack() as stack:
        one, two = (stack.enter_context(_Database(server, "template0")) for _ in range(2))
        assert one != two
        connection = plain_connection(one)
        connection.execute("CREATE TABLE only_here ()")
        assert connection.autocommit
        assert output(python(CONNECT, two)) == "1"
        with plain_connection(two) as other, pytest.raises(psycopg.errors.UndefinedTable):
            other.execute("SELECT FROM only_here")
    connection.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        plain_connection(one)


def test_a_database_that_was_used_is_lent_again_as_it_was_made(
    postgres_server: embedded.Server, database_template: str
) -> None:
    kept = _KeptDatabases(postgres_server, database_template)
    shown = (
        "SELECT (SELECT to_jsonb(i) FROM installation i), (SELECT to_jsonb(c) FROM clock_guard c),"
        " (SELECT count(*) FROM refused_write), nextval(pg_get_serial_sequence('refused_write', 'refused_id')),"
        " (SELECT array_agg(DISTINCT tgenabled::text) FROM pg_trigger WHERE NOT tgisinternal)"
    )
    try:
        with kept.lend() as first:
            connection = plain_connection(first)
            made = connection.execute(shown).fetchone()
            connection.execute("UPDATE installation SET service = 'somebody'")
            connection.execute("UPDATE clock_guard SET max_seen = max_seen + interval '1 hour'")
            connection.execute(
                "INSERT INTO refused_write (constraint_name, stage, worker, detail) VALUES ('one', 'sign', 'me', 'why')"
            )
            connection.execute("ALTER TABLE account DISABLE TRIGGER ALL")
        with kept.lend() as second, plain_connection(second) as again:
            assert second == first
            assert again.execute(shown).fetchone() == made
            again.execute("ALTER TABLE account DROP CONSTRAINT account_max_in_flight")
        with kept.lend() as third:
            assert third != first, "its schema is another"
        connection.close()
    finally:
        kept.drop()
