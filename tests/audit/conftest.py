"""A fresh database with the builder of legal rows, and a chain of its own for the tests that compare with one."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tests.store.rows import Lane, Rows
from tests.support.devnet import Devnet, start_devnet


@pytest.fixture
def rows(database_url: str) -> Iterator[Rows]:
    url = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        yield Rows(connection)


@pytest.fixture
def lane(rows: Rows) -> Lane:
    """The first development account on chain 31337; its first nonce is 0. Its strategy is called payroll."""
    lane = rows.account()
    rows.strategy(lane)
    return lane


@pytest.fixture(scope="session")
def chain() -> Iterator[Devnet]:
    """One node for the session; each test takes it as it finds it, by its own account."""
    with start_devnet() as node:
        yield node
