"""A fresh database with the builder of legal rows, one that has a history already, and a chain of its own."""

import itertools
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from executor.embedded import Server
from tests.audit import histories
from tests.store.rows import Lane, Rows
from tests.support.devnet import Devnet, start_devnet

_numbers = itertools.count(1)


def plain(url: str) -> str:
    """The address as psycopg takes it."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)


@pytest.fixture
def rows(database_url: str) -> Iterator[Rows]:
    with closing(psycopg.connect(plain(database_url), autocommit=True)) as connection:
        yield Rows(connection)


@pytest.fixture
def lane(rows: Rows) -> Lane:
    """The first development account on chain 31337; its first nonce is 0. Its strategy is called payroll."""
    return _lane(rows)


def _lane(rows: Rows) -> Lane:
    lane = rows.account()
    rows.strategy(lane)
    return lane


@pytest.fixture(scope="session")
def history_template(postgres_server: Server, database_template: str) -> str:
    """The name of a database that holds histories.everything, orders and operated, to copy from."""
    name = "template_history"
    with closing(psycopg.connect(postgres_server.conninfo("postgres"), autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {database_template}")
    with closing(psycopg.connect(plain(postgres_server.url(name)), autocommit=True)) as connection:
        rows = Rows(connection)
        lane = _lane(rows)
        histories.everything(rows, lane)
        histories.orders(rows, lane)
        histories.operated(rows)
    return name


@pytest.fixture
def history_url(postgres_server: Server, history_template: str) -> Iterator[str]:
    """A copy of the history for one test."""
    name = f"history_{next(_numbers)}"
    with closing(psycopg.connect(postgres_server.conninfo("postgres"), autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {history_template} STRATEGY wal_log")
        yield postgres_server.url(name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def old_rows(history_url: str) -> Iterator[Rows]:
    """The builder on the copy of the history."""
    with closing(psycopg.connect(plain(history_url), autocommit=True)) as connection:
        yield Rows(connection)


@pytest.fixture(scope="session")
def chain() -> Iterator[Devnet]:
    """One node for the session; each test uses a development account of its own."""
    with start_devnet() as node:
        yield node
