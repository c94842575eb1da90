"""Nodes and installations for the fault tests: nodes are shared, since every installation brings keys of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import NodeProcess, start_devnet
from tests.support.service import Service

BOTH = ["devnet", pytest.param("anvil", marks=pytest.mark.anvil)]
_PASSED = pytest.StashKey[bool]()
devnet_only = pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)


@pytest.fixture(params=BOTH)
def node_kind(request: pytest.FixtureRequest) -> str:
    """Which node the test runs on; skipped where there is none."""
    kind = str(request.param)
    if kind == "anvil":
        path, trouble = anvil_binary()
        if path is None:
            pytest.skip(trouble)
    return kind


@pytest.fixture(scope="session")
def shared_nodes() -> Iterator[Callable[[str], NodeProcess]]:
    """One node of each kind, with a block every so often, started when it is first wanted."""
    nodes: dict[str, NodeProcess] = {}
    with ExitStack() as stack:

        def get(kind: str) -> NodeProcess:
            if kind not in nodes:
                started = start_anvil("--block-time", "1") if kind == "anvil" else start_devnet("--block-time", "0.3")
                nodes[kind] = stack.enter_context(started)
            return nodes[kind]

        yield get


@pytest.fixture
def node(node_kind: str, shared_nodes: Callable[[str], NodeProcess]) -> NodeProcess:
    """A node that makes blocks by itself, shared with other tests."""
    return shared_nodes(node_kind)


@pytest.fixture
def manual_node(node_kind: str) -> Iterator[NodeProcess]:
    """A node of this test alone that makes blocks on order."""
    start = start_anvil if node_kind == "anvil" else start_devnet
    with start("--no-mining") as node:
        yield node


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember whether the test itself passed, so that only then its run is judged as a whole."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def install(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Make the installation of this test on a node; judged at the end of a test that passed."""
    made: list[Service] = []

    def make(node: NodeProcess, **settings: Any) -> Service:
        made.append(Service(tmp_path, node, database_url, **settings))
        return made[-1]

    try:
        yield make
        if request.node.stash.get(_PASSED, False):
            for service in made:
                service.finish()
    finally:
        for service in made:
            service.close()


@pytest.fixture
def service(install: Callable[..., Service], node: NodeProcess) -> Service:
    """An installation on the shared node, with usual settings."""
    return install(node)
