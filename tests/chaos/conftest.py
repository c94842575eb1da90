"""Nodes and installations for scenarios: each run has a node of its own, and in the long form a database server of its own."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from executor import embedded, migration
from tests.chaos.ground import ChaosService
from tests.chaos.scenario import Scenario
from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import start_devnet


@pytest.fixture
def node_kind() -> str:
    """Which node the run has; a test may parametrize it."""
    return "devnet"


@pytest.fixture
def install(tmp_path: Path, node_kind: str) -> Iterator[Callable[[Scenario, str], ChaosService]]:
    """Make the installation of a scenario on a database, before a node of its own."""
    if node_kind == "anvil":
        path, trouble = anvil_binary()
        if path is None:
            pytest.skip(trouble)
    with ExitStack() as stack:

        def make(scenario: Scenario, database_url: str) -> ChaosService:
            start = start_anvil if node_kind == "anvil" else start_devnet
            node = stack.enter_context(start("--block-time", str(scenario.block_time)))
            service = ChaosService(
                tmp_path,
                node,
                database_url,
                lease=f"{scenario.lease}s",
                depth=scenario.depth,
                plan_timeout="60s",
            )
            stack.callback(service.close)
            return service

        yield make


class OwnServer:
    """A PostgreSQL server of this run alone, which may be restarted as by `pg_ctl restart -m immediate`."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._server = embedded.start(state_dir, child=True)
        migration.upgrade(self.url)

    @property
    def url(self) -> str:
        """The SQLAlchemy URL, the same after a restart."""
        return self._server.url()

    def restart(self) -> None:
        """Immediate shutdown, as after a crash, and start again; from the main thread."""
        process = self._server.process
        assert process is not None
        process.send_signal(signal.SIGQUIT)
        process.wait(30)
        self._server = embedded.start(self._state_dir, child=True)

    def close(self) -> None:
        """End the server."""
        self._server.close(1.0)


@pytest.fixture
def own_server() -> Iterator[OwnServer]:
    """A migrated server that the test may restart."""
    state_dir = Path(tempfile.mkdtemp(prefix="fenced-chaos-"))
    state_dir.chmod(0o711)
    server = OwnServer(state_dir)
    try:
        yield server
    finally:
        server.close()
        shutil.rmtree(state_dir, ignore_errors=True)


@pytest.fixture
def seed() -> int:
    """FENCED_CHAOS_SEED, or a fresh one; always printed with the figures."""
    return int(os.environ.get("FENCED_CHAOS_SEED") or int.from_bytes(os.urandom(4), "big"))
