"""Many workers, accounts and executions under random faults: nothing lost, nothing twice, no hole, everything ends.

The seed is printed; FENCED_CHAOS_SEED repeats the plan of faults and requests.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.conftest import OwnServer
from tests.chaos.ground import ChaosService
from tests.chaos.load import judged, run
from tests.chaos.scenario import ANY_NODE, DATABASE_FAULTS, DEVNET, WORKER_FAULTS, Scenario

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("chaos-load")]
Install = Callable[[Scenario, str], ChaosService]
SHORT = Scenario(
    workers=4,
    accounts=5,
    executions=130,
    seconds=10,
    lease=2,
    depth=3,
    block_time=0.3,
    groups={"workers": WORKER_FAULTS, "database": DATABASE_FAULTS, "node": DEVNET},
    gap={"workers": 2, "database": 2, "node": 1.5},
)

LONG = replace(
    SHORT,
    workers=8,
    accounts=20,
    executions=5000,
    seconds=300,
    lease=4,
    depth=4,
    block_time=0.5,
    groups={**SHORT.groups, "restarts": {"database_restart": 1}},
    gap={"workers": 5, "database": 5, "node": 3, "restarts": 45},
    drain=300.0,
)
ON_ANVIL = replace(LONG, groups={**LONG.groups, "node": ANY_NODE}, block_time=1)


def test_half_a_minute_of_everything(install: Install, database_url: str, seed: int) -> None:
    judged(run(install(SHORT, database_url), SHORT, seed), "load-short")


@pytest.mark.chaos
@pytest.mark.soak
@pytest.mark.parametrize("node_kind", ["devnet", pytest.param("anvil", marks=pytest.mark.anvil)])
def test_five_minutes_of_everything(install: Install, own_server: OwnServer, seed: int, node_kind: str) -> None:
    scenario = LONG if node_kind == "devnet" else ON_ANVIL
    service = install(scenario, own_server.url)
    judged(run(service, scenario, seed, own_server.restart), f"soak-{node_kind}")
