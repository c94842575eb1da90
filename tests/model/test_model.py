"""The right build breaks nothing in any scenario, and from every state all executions can end (or a halt is near)."""

import pytest

from executor.crashpoints import CrashPoint
from tests.model.build import Build, Scenario
from tests.model.explore import explore
from tests.model.scenarios import FAST, FULL
from tests.model.world import EVENTS

_CAP = 700_000
"""States of a wide search, each about a kilobyte; what is larger is searched breadth first up to here."""
_NO_BOUNDARY = {
    "schedule.computed": "slots have a unique key and no nonce: tests/lease/test_scheduler.py",
    "schedule.recorded": "as above",
    "plan.expired": "an execution that ends without a nonce",
    "plan.counted": "a plan is pure, and PENDING stands for PLANNED: a crash leaves a count",
    "plan.made": "as above",
    "plan.recorded": "as above",
    "reserve.waiting": "what waits has no nonce",
    "sign.journaling": "inside a transaction: a crash there is a crash before it",
    "sign.keeping": "as above",
    "sign.journaled": "inside the signer's call: an order without bytes is signed again to the same bytes",
    "sign.made": "as above",
    "sign.kept": "as above",
    "lease.selected": "the database decides again when it is acquired",
    "lease.acquiring": "inside a transaction",
    "lease.renewing": "a renewal changes no row that a guarded write asks for",
    "lease.renewed": "as above",
    "lease.returning": "as a release",
    "lease.returned": "as a release",
    "lease.releasing": "a release is the end of a generation: a takeover follows, as after a crash",
    "lease.released": "as above",
    "record.held": "inside a transaction: a crash there is a crash before it",
    "record.written": "as above",
}
"""Crash points that are no step of the model, each with the reason."""


@pytest.mark.parametrize("scenario", FAST, ids=lambda c: c.name)
def test_the_right_build_breaks_nothing(scenario: Scenario) -> None:
    _assert_right(scenario)


@pytest.mark.model_full
@pytest.mark.timeout(0)
@pytest.mark.parametrize("scenario", FULL, ids=lambda c: c.name)
def test_the_right_build_breaks_nothing_within_wider_bounds(scenario: Scenario) -> None:
    _assert_right(scenario, _CAP)


def _assert_right(scenario: Scenario, limit: int = 10_000_000) -> None:
    result = explore(Build(), scenario, limit=limit)
    print(f"{scenario.name}: {result.states} states, {result.states / max(result.seconds, 1e-9):.0f} a second")
    assert not result.broken, "\n".join(result.tell(kind) for kind in sorted(result.broken))
    assert result.is_complete or result.states > limit


def test_the_steps_have_the_names_of_the_crash_points() -> None:
    searches = [explore(Build(), c, limit=1500) for c in (*FAST, Scenario("split", (1,), splits_send=True))]
    # Where nothing was restored, the journal refuses only a wrong build.
    searches.append(explore(Build(unknown_commit="again", unique_step=False), Scenario("refused", (1,))))
    names = {name for search in searches for name in search.names}
    steps = names - EVENTS
    points = {str(point) for point in CrashPoint}
    assert steps <= points, f"no crash point is called {steps - points}"
    assert not steps & _NO_BOUNDARY.keys()
    assert points == steps | _NO_BOUNDARY.keys(), (
        f"neither a step nor explained: {points ^ (steps | _NO_BOUNDARY.keys())}"
    )
