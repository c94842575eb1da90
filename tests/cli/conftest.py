"""Desks to run the command line on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.cli.desk import Desk, furnished
from tests.store.rows import Lane, Rows
from tests.support.devnet import Devnet, start_devnet


@pytest.fixture
def bare(tmp_path: Path) -> Desk:
    """A configuration whose database does not answer."""
    return furnished(tmp_path)


@pytest.fixture
def desk(tmp_path: Path, database_url: str) -> Desk:
    """A configuration with a migrated database that belongs to it."""
    desk = furnished(tmp_path, database_url)
    desk.execute("UPDATE installation SET service = 'tests'")
    return desk


@pytest.fixture
def applied(desk: Desk) -> Desk:
    """A desk whose accounts and strategies are registered."""
    desk.fine("apply")
    return desk


@pytest.fixture(scope="module")
def devnet() -> Iterator[Devnet]:
    with start_devnet() as node:
        yield node


@pytest.fixture
def connection(desk: Desk) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(desk.libpq, autocommit=True) as connection:
        yield connection


@pytest.fixture
def rows(connection: psycopg.Connection[Any]) -> Rows:
    return Rows(connection)


@pytest.fixture
def lane(desk: Desk, rows: Rows) -> Lane:
    """The desk's account, held by a worker, with a strategy that paid once."""
    lane = rows.account(first_nonce=7)
    desk.fine("apply")
    rows.run("UPDATE strategy SET revision = 'r1', high_water_mark = now() + interval '100 years'")
    return lane
