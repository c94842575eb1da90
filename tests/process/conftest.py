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


@pytest.fixture(params=["devnet", pytest.param("anvil", marks=[pytest.mark.anvil, pytest.mark.chaos])])
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember whether the test itself passed, so that only then its run is judged as a whole."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def install(
    request: pytest.FixtureRequest,
    database_url: str,
    tmp_path: Path,
    node_kind: str,
    shared_nodes: Callable[[str], NodeProcess],
) -> Iterator[Callable[..., Service]]:
    """Make the installation of this test, judged at the end if the test passed.

    `on_order=True` gives it a node of its own that makes blocks only when told to; the rest are the settings of a
    Service.
    """
    made: list[Service] = []
    with ExitStack() as stack:

        def make(*, on_order: bool = False, **settings: Any) -> Service:
            start = start_anvil if node_kind == "anvil" else start_devnet
            node = stack.enter_context(start("--no-mining")) if on_order else shared_nodes(node_kind)
            made.append(Service(tmp_path, node, database_url, **settings))
            stack.callback(made[-1].close)
            return made[-1]

        yield make
        if request.node.stash.get(_PASSED, False):
            for service in made:
                service.finish()


@pytest.fixture
def service(install: Callable[..., Service]) -> Service:
    """An installation on the shared node, with usual settings."""
    return install()
