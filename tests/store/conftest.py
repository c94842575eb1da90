"""A bare connection to a fresh database, and a builder of legal rows on it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from tests.store.rows import Lane, Rows

Connect = Callable[[], psycopg.Connection[Any]]


@pytest.fixture
def connect(database_url: str) -> Iterator[Connect]:
    """Open one more autocommit connection to this test's database."""
    with ExitStack() as stack:
        url = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        yield lambda: stack.enter_context(psycopg.connect(url, autocommit=True))


@pytest.fixture
def rows(connect: Connect) -> Rows:
    return Rows(connect())


@pytest.fixture
def lane(rows: Rows) -> Lane:
    """An open account whose first nonce is 7, with a strategy called payroll."""
    lane = rows.account(first_nonce=7)
    rows.strategy(lane)
    return lane
