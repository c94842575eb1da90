"""Fixtures every test may ask for: the real PostgreSQL and databases on it. Options of single suites."""

import os
import random

import pytest

from tests.support.postgres import (
    _kept_databases,
    database_template,
    database_url,
    empty_database,
    make_database,
    postgres_server,
)
from tests.support.stepped_postgres import _stepped_server, stepped_server

__all__ = [
    "_kept_databases",
    "_stepped_server",
    "database_template",
    "database_url",
    "empty_database",
    "make_database",
    "postgres_server",
    "stepped_server",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--execution-apis", metavar="DIR", help="the conformance suite for tests/devnet/test_conformance.py"
    )


def pytest_xdist_auto_num_workers() -> int:
    """Two for each core (`-n auto`): much of a fault test is waiting for leases to end and blocks to be made."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In several processes, mix tests that wait with tests that compute. FENCED_TEST_ORDER chooses another order.

    The tests of an xdist_group stay together and in order.
    """
    if not hasattr(config, "workerinput"):
        return
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        group = item.get_closest_marker("xdist_group")
        units.setdefault(group.args[0] if group else item.nodeid, []).append(item)
    mixed = list(units.values())
    random.Random(os.environ.get("FENCED_TEST_ORDER", "1")).shuffle(mixed)
    items[:] = [item for unit in mixed for item in unit]
