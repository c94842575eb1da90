"""A database with accounts to lease, and connections as separate workers would have them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from chain.transaction import cancel_digest
from executor.database import Database

Open = Callable[[str], Database]


@pytest.fixture
def open_database(database_url: str) -> Iterator[Open]:
    """Open one more Database, as another worker's process would."""
    with ExitStack() as stack:

        def opened(actor: str) -> Database:
            database = Database(database_url, actor)
            stack.callback(database.close)
            return database

        yield opened


@pytest.fixture
def database(open_database: Open) -> Database:
    return open_database("w1")


@pytest.fixture
def account_ids(database: Database) -> list[int]:
    """Forty free accounts."""
    found = []
    with database.transaction() as tx:
        for number in range(40):
            address = number.to_bytes(20, "big")
            account_id = tx.exec_driver_sql(
                "INSERT INTO account (name, chain_id, address, cancel_digest, timeline, max_in_flight)"
                " VALUES (%s, 31337, %s, %s, current_timeline(), 16) RETURNING account_id",
                (f"a{number}", address, cancel_digest(31337, address)),
            ).scalar_one()
            tx.exec_driver_sql("INSERT INTO lease (account_id, lease_id) VALUES (%s, gen_random_uuid())", (account_id,))
            found.append(account_id)
    return found
