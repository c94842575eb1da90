"""The model's counterexamples as faults for real workers: what breaks a wrong build, the right one has to come through.

Each schedule is computed from the traces of tests/model: where a worker ends or stands still, what the chain does meanwhile.
Many wrong builds share one; those that need a backup, an operator or a stranger are left to the tests of these.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.model.build import Scenario
from tests.model.explore import explore
from tests.model.mutants import BESIDE, TABLE
from tests.model.schedule import EVICTED, FINAL, LOST_REPLY, MINED, REORG, Fault, Schedule, schedule_of
from tests.support.devnet import start_devnet
from tests.support.service import PATIENCE_SECONDS, Service
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-traces"), pytest.mark.timeout(400)]
_LIMIT = 3000
"""States; wrong builds that only faults of workers and chain bring down are brought down sooner."""
_DEPTH = 2
_AT_ONCE = 3
_AT_START = ("lease.", "reconcile.")
"""Points that a worker reaches before there is anything to do."""


def _schedules() -> list[Schedule]:
    """The distinct schedules with a fault in them; one that another begins with is tried by that one."""
    found: set[Schedule] = set()
    for mutant in (*TABLE, *BESIDE):
        if not _is_quiet(mutant.scenario):
            continue
        result = explore(mutant.build(journal=True), mutant.scenario, limit=_LIMIT)
        schedules = [schedule_of(trace) for trace in (*result.traces.values(), *result.ways.values())]
        found |= {s for s in schedules if s and any(isinstance(x, Fault) or x in (LOST_REPLY, REORG) for x in s)}
    return sorted((s for s in found if not _is_beginning(s, found)), key=_name)


def _is_quiet(c: Scenario) -> bool:
    """Whether only workers and the chain do anything there, and each execution is one payment."""
    return not (
        c.threads or c.cancel or c.foreign or c.policy or c.restore or c.reissue or c.deep or max(c.executions) > 1
    )


def _is_beginning(schedule: Schedule, of: Iterable[Schedule]) -> bool:
    return any(len(other) > len(schedule) and other[: len(schedule)] == schedule for other in of)


def _name(schedule: Schedule) -> str:
    return ", ".join(f"{x.action} at {x.point}" if isinstance(x, Fault) else x for x in schedule)


def test_the_right_build_comes_through_every_schedule(make_database: Callable[[], str], tmp_path: Path) -> None:
    schedules = _schedules()
    assert len(schedules) >= 8
    with ExitStack() as stack:
        services = []
        for number in range(len(schedules)):
            directory = tmp_path / str(number)
            directory.mkdir()
            # Made by this thread: a node ends with the thread that started it.
            node = stack.enter_context(start_devnet("--no-mining"))
            services.append(Service(directory, node, make_database(), depth=_DEPTH, lease="3s"))
            stack.callback(services[-1].close)
            services[-1].account()
        payees = [service.pays("rent") for service in services]
        for service in services:
            service.register()
            service.mine(5)  # something to take back
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            told = list(threads.map(_try, schedules, services, payees))
    wrong = [text for text in told if text]
    print(f"{len(schedules)} schedules: " + "; ".join(_name(s) for s in schedules))
    assert not wrong, "\n\n".join(wrong)


def _try(schedule: Schedule, service: Service, to: str) -> str | None:
    """What went wrong, None if nothing did."""
    try:
        _run(schedule, service, to)
        service.finish()
    except AssertionError as error:
        return f"{_name(schedule)}: {error}"
    return None


def _run(schedule: Schedule, service: Service, to: str) -> None:
    fault = next((x for x in schedule if isinstance(x, Fault)), None)
    assert sum(isinstance(x, Fault) for x in schedule) <= 1
    armed = None if fault is None else f"{fault.point}:{fault.action}"
    if fault is not None and fault.point.startswith(_AT_START):
        first = service.start_worker("first", armed)
        _wait_fired(first, fault)
        service.start_worker("second")
    else:
        first, _ = service.start_pair(armed)
    if LOST_REPLY in schedule:
        service.proxy.drop_replies(1)
    execution = service.trigger("rent", "one")
    for event in schedule:
        if isinstance(event, Fault):
            _wait_fired(first, event)
        elif event in (MINED, FINAL):
            service.wait(lambda: service.proxy.raws_by_nonce(forwarded=True), "the node has the bytes")
            service.mine(1 if event == MINED else _DEPTH)
        elif event == REORG:
            service.wait_attempt(execution, "MINED")
            service.node.rpc("anvil_reorg", 1, [])
        else:
            assert event in (LOST_REPLY, EVICTED)
    if fault is not None:
        service.wait_held_by("second")
    if fault is not None and fault.action == "stop":
        service.wait(lambda: service.proxy.raws_by_nonce(forwarded=True), "the node has the bytes")
        first.resume()
    _settle(service, execution)
    service.assert_paid_once(execution, to)
    assert service.account_row()["state"] == "open"
    if fault is not None and fault.action == "stop" and not fault.point.startswith(_AT_START):
        service.wait(lambda: service.refused() or "lease lost" in first.log, "the overtaken worker is refused")


def _wait_fired(worker: WorkerProcess, fault: Fault) -> None:
    if fault.action == "kill":
        assert worker.wait_ended() == -9
    else:
        worker.wait_frozen(PATIENCE_SECONDS)


def _settle(service: Service, execution: str) -> None:
    """Blocks, until the payment is final."""

    def is_done_after_a_block() -> bool:
        service.mine(1)
        return service.state(execution) == "SUCCEEDED"

    service.wait(is_done_after_a_block, "the payment is final", 2 * PATIENCE_SECONDS)
