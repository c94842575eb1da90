"""Every crash point × {killed, frozen past its lease and thawed, asked to end, cut off} × plans of one step and of three (G6, G8, [B88]).

Two real workers, both armed, and each case in an installation of its own; the cases of a point run side by side. Whatever
happened, each step took effect exactly once, the bytes were committed before they were sent, and the audit finds nothing.
"""

import os
import random
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from executor.crashpoints import CrashPoint
from executor.tenure import EXIT_UNTRUSTED
from tests.process import crash_figures
from tests.process.crash_cases import TABLE, Action, Case, cases_of
from tests.process.crash_figures import Figure
from tests.process.crash_scenes import SECONDS, Scene
from tests.support.devnet import NodeProcess
from tests.support.service import Service
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]
_SIDE_BY_SIDE = 3
"""Cases at a time in one test process: more of them only starve each other of the processor."""
_SESSIONS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> ALL (%s)
"""
NODES = ["devnet", pytest.param("anvil", marks=[pytest.mark.anvil, pytest.mark.chaos])]


def test_every_crash_point_has_a_row() -> None:
    assert set(TABLE) == set(CrashPoint)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: a lease's length, and how long a frozen worker stands still after it has lost its lease."""

    lease: float = 3.0
    frozen: float = 0.0


@pytest.fixture
def strike_all(
    make_database: Callable[[], str],
    tmp_path: Path,
    node_kind: str,
    shared_nodes: Callable[[str], NodeProcess],
    testrun_uid: str,
) -> Callable[[CrashPoint, Timing], None]:
    """Run the eight cases of a point side by side, each in an installation of its own."""

    def run(point: CrashPoint, timing: Timing) -> None:
        node, cases = shared_nodes(node_kind), cases_of(point)
        places = [(tmp_path / str(number), make_database()) for number in range(len(cases))]

        def attempt(case: Case, place: tuple[Path, str]) -> tuple[Figure, str]:
            place[0].mkdir()
            try:
                ttls = strike(case, *place, node, timing)
                return Figure(str(case), node_kind, True, ttls), ""
            except Exception:
                return Figure(str(case), node_kind, False, None), f"{case} on {node_kind}\n{traceback.format_exc()}"

        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            outcomes = list(pool.map(attempt, cases, places))
        print(crash_figures.add(testrun_uid, [figure for figure, _ in outcomes]))
        failures = [told for _, told in outcomes if told]
        assert not failures, "\n\n".join(failures)

    return run


@pytest.mark.parametrize("node_kind", NODES, indirect=True)
@pytest.mark.parametrize("point", list(TABLE))
def test_struck_at_a_crash_point_nothing_is_lost_or_repeated(
    point: CrashPoint, strike_all: Callable[[CrashPoint, Timing], None]
) -> None:
    strike_all(point, Timing())


@pytest.mark.chaos
@pytest.mark.parametrize("node_kind", NODES, indirect=True)
@pytest.mark.parametrize("point", list(TABLE))
def test_with_other_timings_nothing_is_lost_or_repeated(
    point: CrashPoint, strike_all: Callable[[CrashPoint, Timing], None]
) -> None:
    seed = os.environ.get("FENCED_CHAOS_SEED") or "1"
    timings = random.Random(f"{seed} {point}")
    timing = Timing(lease=timings.choice([2.0, 3.0, 5.0]), frozen=timings.uniform(0.0, 6.0))
    print(f"seed {seed}: {timing}")
    strike_all(point, timing)


def strike(case: Case, directory: Path, database_url: str, node: NodeProcess, timing: Timing) -> float | None:
    """Run one case; for a kill the time to what the other worker did next, in lease lengths, where there was anything to do."""
    service = Service(directory, node, database_url, lease=f"{timing.lease:g}s", depth=1, tick="200ms", poll=0.1)
    try:
        scene = case.row.scene(service, f"{case.point}:{case.action}", case.shape, case.row.midway)
        scene.lay()
        scene.open()
        scene.wait(lambda: _struck(scene), "the point is reached")
        victim = _victim(scene)
        _act(case, scene, victim)
        scene.mend()
        scene.settle()
        if case.action is Action.STOP:
            time.sleep(timing.frozen)
            _thaw(case, scene, victim)
        scene.judge()
        seconds = _takeover_seconds(scene) if case.action is Action.KILL else None
        service.finish()
        return None if seconds is None else seconds / timing.lease
    except Exception as error:
        raise AssertionError(f"{error}\n{service.describe()}") from error
    finally:
        service.close()


def _struck(scene: Scene) -> str:
    """The process id in the marker, empty while no worker has reached the point."""
    return scene.marker.read_text().strip() if scene.marker.exists() else ""


def _victim(scene: Scene) -> WorkerProcess:
    pid = int(_struck(scene))
    return next(worker for worker in scene.service.workers if worker.pid == pid)


def _act(case: Case, scene: Scene, victim: WorkerProcess) -> None:
    match case.action:
        case Action.KILL:
            assert victim.wait_ended(SECONDS) == -9
        case Action.STOP:
            victim.wait_frozen(SECONDS)
        case Action.EXIT:
            assert victim.wait_ended(SECONDS) in {0, EXIT_UNTRUSTED}
        case Action.CUT:
            others = [w.name for w in scene.service.workers if w is not victim]
            spared = ["test", *(name + what for name in others for what in ("", " signer", " lease"))]
            assert scene.service.rows(_SESSIONS, spared)
            scene.marker.with_name(scene.marker.name + ".go").touch()


def _thaw(case: Case, scene: Scene, victim: WorkerProcess) -> None:
    """Once nothing is held in its name any more: let it go on, until it has looked at its leases again or has ended."""
    service = scene.service
    held = "SELECT 1 FROM lease WHERE holder = %s AND expires_at > clock_timestamp()"
    scene.wait(lambda: not service.value(held, victim.name), f"the lease of {victim.name} has expired")
    seen = "SELECT seen_at > %s FROM worker WHERE name = %s"
    thawed = service.value("SELECT clock_timestamp()")
    victim.resume()
    scene.wait(
        lambda: victim.exit_code is not None or service.value(seen, thawed, victim.name), f"{victim.name} goes on"
    )
    if case.wants_refusal:
        refused = (
            "SELECT 1 FROM refused_write WHERE worker = %s AND constraint_name IN ('fence_current', 'signer_fence')"
        )
        scene.wait(
            lambda: victim.exit_code == EXIT_UNTRUSTED or service.value(refused, victim.name),
            f"what {victim.name} still wrote is refused",
        )


def _takeover_seconds(scene: Scene) -> float | None:
    """From the kill to the next broadcast; where nothing was left to send, to the next acquisition of the account."""
    killed = scene.marker.stat().st_mtime
    ahead = time.time() - time.monotonic()
    sent = [item.at + ahead for item in list(scene.service.proxy.sent) if item.at + ahead > killed]
    gained = scene.service.value(
        "SELECT extract(epoch FROM min(at))::float8 FROM lease_generation WHERE token > 1 AND at > to_timestamp(%s)",
        killed,
    )
    if gained is None:
        return None
    return float(min(sent) if sent else gained) - killed
