"""A node with a block every so often, and a database server of the module's own, for the tests in which PostgreSQL misbehaves."""

from collections.abc import Iterator

import pytest

from tests.support.devnet import NodeProcess, start_devnet
from tests.support.own_server import OwnServer


@pytest.fixture(scope="module")
def node() -> Iterator[NodeProcess]:
    with start_devnet("--block-time", "0.3") as started:
        yield started


@pytest.fixture(scope="module")
def own_server() -> Iterator[OwnServer]:
    with OwnServer() as server:
        yield server
