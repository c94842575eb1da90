"""One kind of fault at a time, to find the cause of what a mixed run shows: `-m chaos -k NAME`."""

from collections.abc import Callable

import pytest

from tests.chaos.conftest import OwnServer
from tests.chaos.ground import ChaosService
from tests.chaos.load import judged, run
from tests.chaos.scenario import DATABASE_FAULTS, DEVNET, WORKER_FAULTS, Scenario

pytestmark = [pytest.mark.chaos, pytest.mark.process, pytest.mark.xdist_group("chaos-single")]


@pytest.mark.parametrize("kind", sorted({*WORKER_FAULTS, *DATABASE_FAULTS, *DEVNET, "database_restart"}))
def test_one_kind_of_fault(
    install: Callable[[Scenario, str], ChaosService], own_server: OwnServer, seed: int, kind: str
) -> None:
    scenario = Scenario(4, 5, 150, 15, groups={kind: {kind: 1}}, gap={kind: 3.0 if kind == "database_restart" else 1.0})
    judged(run(install(scenario, own_server.url), scenario, seed, own_server.restart), f"single-{kind}")
