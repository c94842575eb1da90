"""Nodes for the tests: one devnet per worker, put back after each test; fresh ones where a test asks for its own."""

from collections.abc import Iterator

import pytest

from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import Devnet, NodeProcess, put_back, start_devnet

GENESIS_TIME = 1_700_000_000


@pytest.fixture(scope="session")
def shared_devnet() -> Iterator[Devnet]:
    with start_devnet("--no-mining", "--timestamp", str(GENESIS_TIME)) as devnet:
        yield devnet


@pytest.fixture
def devnet(shared_devnet: Devnet) -> Iterator[Devnet]:
    """Mines on order; chain, pool and clock are put back at the end."""
    with put_back(shared_devnet) as devnet:
        yield devnet


@pytest.fixture
def timeless(devnet: Devnet) -> Iterator[Devnet]:
    """Its clock moves on order only."""
    devnet.rpc("devnet_clock", {"manual": True})
    yield devnet
    devnet.rpc("devnet_clock", {"manual": False})


@pytest.fixture(params=["devnet", pytest.param("anvil", marks=pytest.mark.anvil)])
def node(request: pytest.FixtureRequest) -> Iterator[NodeProcess]:
    """A fresh node of each kind, mining on order."""
    flags = ("--no-mining", "--timestamp", str(GENESIS_TIME))
    if request.param == "anvil":
        path, trouble = anvil_binary()
        if path is None:
            pytest.skip(trouble)
        with start_anvil(*flags) as anvil:
            yield anvil
    else:
        with start_devnet(*flags) as devnet:
            yield devnet


@pytest.fixture(params=["devnet", pytest.param("anvil", marks=pytest.mark.anvil)])
def either(request: pytest.FixtureRequest) -> Iterator[NodeProcess]:
    """The shared devnet and a fresh anvil, mining on order."""
    if request.param == "devnet":
        yield request.getfixturevalue("devnet")
        return
    path, trouble = anvil_binary()
    if path is None:
        pytest.skip(trouble)
    with start_anvil("--no-mining", "--timestamp", str(GENESIS_TIME)) as anvil:
        yield anvil
