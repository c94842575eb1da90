"""Servers, a devnet and installations for the tests of restores, promotions and copies."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.rewind.moving import MovingService
from tests.rewind.servers import Address, Cluster, Servers, servers
from tests.support.devnet import NodeProcess, start_devnet


@pytest.fixture(scope="session")
def clusters() -> Iterator[Servers]:
    """Makes servers; the pristine one they come from is made once."""
    with servers() as made:
        yield made


@pytest.fixture(scope="session")
def blocks() -> Iterator[NodeProcess]:
    """A node with a block every so often, shared: every installation brings keys of its own."""
    with start_devnet("--block-time", "0.3") as node:
        yield node


@pytest.fixture
def install(tmp_path: Path, blocks: NodeProcess) -> Iterator[Callable[..., MovingService]]:
    """Make the installation of this test behind an address that can be moved from one server to another.

    `on_order=True` gives it a node of its own that makes blocks only when told to.
    """
    with ExitStack() as stack:

        def make(primary: Cluster, *, on_order: bool = False, **settings: Any) -> MovingService:
            address = Address(primary)
            stack.callback(address.close)
            node = stack.enter_context(start_devnet("--no-mining")) if on_order else blocks
            made = MovingService(tmp_path, node, address, **settings)
            stack.callback(made.close)
            return made

        yield make
