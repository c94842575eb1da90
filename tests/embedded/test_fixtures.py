"""The fixtures the other tests stand on."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from executor import embedded
from tests.embedded.support_embedded import output, python
from tests.support.postgres import _Database, plain_connection

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
