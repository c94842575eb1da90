"""Workers whose own wall clock is wrong, jumps, or stands still with the process: nothing changes, for it decides nothing."""

import pytest

from tests.support.faked_clock import FakedClock
from tests.support.service import ETHER, Service

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("worker-clock"),
    pytest.mark.parametrize("node_kind", ["devnet"], indirect=True),
]
VALUE = ETHER // 100
HOUR = 3600.0
_PAID = "SELECT count(*) FROM execution WHERE state = 'SUCCEEDED'"


def pause_and_settle(service: Service) -> None:
    """No more slots, and what began has ended."""
    service.rows("UPDATE strategy SET paused_at = clock_timestamp(), paused_why = 'enough' RETURNING name")
    open_ones = "SELECT FROM execution WHERE state IN ('PENDING', 'PLANNED', 'RUNNING')"
    service.wait(lambda: not service.rows(open_ones), "all have ended")


def assert_no_slot_is_missing_or_paid_twice(service: Service, to: str, every: int) -> None:
    rows = service.rows("SELECT slot, state FROM execution ORDER BY slot")
    slots = [int(row["slot"].timestamp()) for row in rows]
    assert slots == list(range(slots[0], slots[-1] + 1, every))
    assert service.balance(to) == VALUE * sum(row["state"] == "SUCCEEDED" for row in rows)


@pytest.mark.parametrize("apart", [300.0, HOUR], ids=["five minutes", "an hour"])
def test_workers_that_disagree_about_the_time_share_the_slots(service: Service, apart: float) -> None:
    """[B85] One is behind, one ahead, the database is right; the holder is killed in the middle."""
    service.account()
    to = service.pays("often", every="2s", misfire="all", overlap="allow")
    service.register()
    behind, ahead = (FakedClock(service.directory / f"{sign}", sign * apart) for sign in (-1, 1))
    first = service.start_worker("behind", fresh=True, environment=behind.environment)
    service.wait_held_by("behind")
    service.start_worker("ahead", fresh=True, environment=ahead.environment)
    service.wait(lambda: service.value(_PAID) >= 2, "the worker behind pays")
    assert service.value("SELECT count(DISTINCT token) FROM lease_generation") == 1, (
        "its lease is not expired to the other"
    )
    first.kill()
    service.wait_held_by("ahead")
    paid = service.value(_PAID)
    service.wait(lambda: service.value(_PAID) >= paid + 2, "the worker ahead pays")
    pause_and_settle(service)
    assert_no_slot_is_missing_or_paid_twice(service, to, 2)
    assert service.value("SELECT max(abs(extract(epoch FROM created_at - slot))) < 20 FROM execution")
    assert service.value("SELECT anomalies FROM clock_guard") == 0


def test_frozen_between_seeing_a_free_lease_and_taking_it(service: Service) -> None:
    """[B85] The pause of a garbage collection: the late write takes nothing. The worker is also five minutes behind."""
    service.account()
    to = service.pays("rent")
    service.register()
    clock = FakedClock(service.directory / "offset", -300.0)
    late = service.start_worker("late", "lease.selected:stop", fresh=True, environment=clock.environment)
    late.wait_frozen()
    service.start_worker("other")
    service.wait_held_by("other")
    execution = service.trigger("rent", "one")
    service.assert_paid_once(execution, to)
    service.wait_renewals(3)  # two lease lengths
    late.resume()
    service.wait(
        lambda: service.rows("SELECT FROM worker WHERE name = 'late' AND seen_at > clock_timestamp() - interval '1 s'"),
        "it is back",
    )
    service.wait_renewals(2)
    assert service.rows("SELECT holder FROM lease_generation") == [{"holder": "other"}]
    assert service.refused() == []


def test_a_clock_that_jumps_while_the_worker_runs_costs_no_lease(service: Service) -> None:
    """[B89] Two hours back and again right, two hours forward and again right, then asleep for three lease lengths."""
    service.account()
    to = service.pays("often", every="2s", misfire="all", overlap="allow")
    service.register()
    clock = FakedClock(service.directory / "offset")
    only = service.start_worker("only", fresh=True, environment=clock.environment)
    service.wait_held_by("only")
    for offset in (-2 * HOUR, 0.0, 2 * HOUR, 0.0):
        clock.set_offset(offset)
        paid = service.value(_PAID)
        service.wait(lambda p=paid: service.value(_PAID) > p, f"slots are paid with the clock {offset:+.0f} s off")
        service.wait_renewals(1)
    assert service.value("SELECT count(*) FROM lease_generation") == 1, "no lease was lost from a step of the clock"
    assert service.value("SELECT anomalies FROM clock_guard") == 0, "the database's clock was right all the time"

    only.pause()
    service.wait(
        lambda: service.value("SELECT expires_at < clock_timestamp() - interval '4 s' FROM lease"),
        "three lease lengths",
    )
    only.resume()
    paid = service.value(_PAID)
    service.wait(lambda: service.value(_PAID) > paid, "it works again")
    pause_and_settle(service)
    assert_no_slot_is_missing_or_paid_twice(service, to, 2)
    assert service.value("SELECT max(token) FROM lease_generation") == 2, "after its sleep it asked for a new lease"
