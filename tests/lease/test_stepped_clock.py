"""Leases, slots and the guard on a database whose clock is stepped for real, rule by rule ([B89])."""

import time
from collections.abc import Callable

import pytest

from executor import scheduler
from executor.clock_guard import ClockGuard
from executor.database import Database, FenceRefused
from executor.store import leases, workers
from tests.lease.conftest import Open
from tests.lease.test_leases import take
from tests.lease.test_scheduler import states, strategy
from tests.lease.test_tenure import tenure, until
from tests.support.stepped_postgres import SteppedServer

pytestmark = pytest.mark.xdist_group("stepped-clock")
HOUR = 3600.0


@pytest.fixture
def database_url(stepped_server: SteppedServer) -> str:
    """A database of the server whose clock is stepped, instead of the usual one."""
    return stepped_server.database()


def shared(database: Database) -> tuple[bool, int, bool]:
    """Whether the doubt is over, how often there was one, and whether the newest instant seen is about now."""
    with database.read() as tx:
        row = tx.exec_driver_sql(
            "SELECT is_settled, anomalies, abs(extract(epoch FROM clock_timestamp() - max_seen)) < 30 FROM clock_guard"
        ).one()
    return bool(row[0]), int(row[1]), bool(row[2])


def believes_again(guard: ClockGuard, database: Database) -> Callable[[], bool]:
    return lambda: guard.look(database) is not None


@pytest.mark.parametrize("jump", [-2 * HOUR, 2 * HOUR], ids=["back", "forward"])
def test_a_step_is_noted_for_all_and_over_soon(
    stepped_server: SteppedServer, database: Database, open_database: Open, jump: float
) -> None:
    guard, other = ClockGuard(), open_database("w2")
    assert guard.look(database) is not None
    stepped_server.set_offset(jump)
    assert guard.look(database) is None
    assert not guard.is_trusted
    assert shared(database) == (False, 1, False)
    assert ClockGuard().look(other) is None, "who starts now joins the doubt"
    until(believes_again(guard, database), "the clock is believed")
    assert guard.is_trusted
    assert shared(database)[0]
    assert shared(database)[2], "the newest instant seen is of after the step"
    assert ClockGuard().look(other) is not None


def test_nobody_waits_for_who_holds_the_row(
    stepped_server: SteppedServer, database: Database, open_database: Open
) -> None:
    """[B97] A ghost's row lock; the step is noted once it is gone."""
    guard = ClockGuard()
    guard.look(database)
    with open_database("ghost").transaction() as ghost:
        ghost.exec_driver_sql("SELECT FROM clock_guard FOR UPDATE")
        stepped_server.set_offset(-HOUR)
        assert guard.look(database) is None
        until(believes_again(guard, database), "the clock is believed without the row")
    assert shared(database)[1] == 0
    guard.look(database)
    assert shared(database) == (True, 1, True)


def test_a_lease_in_the_future_is_taken_only_as_it_was_seen(
    stepped_server: SteppedServer, database: Database, open_database: Open, account_ids: list[int]
) -> None:
    (lease,) = take(database, account_ids[:1])
    stepped_server.set_offset(-2 * HOUR)
    other = open_database("w2")
    with other.transaction() as tx:
        (found,) = leases.select_takeable(tx, [lease.account_id])
        assert (found.account_id, round(found.length_seconds)) == (lease.account_id, 60)
        assert found.ahead is not None
        assert leases.acquire(tx, {lease.account_id: 0}, {}, "w2", 60.0, 1) == [], "the clock alone frees nothing"
    with database.transaction() as tx:
        assert leases.renew(tx, [lease], 60.0) == {lease.account_id}, "the living holder renews it into the present"
    with other.transaction() as tx:
        seen = {lease.account_id: found.ahead}
        assert leases.acquire(tx, {lease.account_id: 0}, {}, "w2", 60.0, 1, seen) == [], "it is not what was seen"
        assert leases.select_takeable(tx, [lease.account_id]) == []


def test_a_dead_holders_lease_in_the_future_is_taken_after_its_length_and_its_writes_are_refused(
    stepped_server: SteppedServer, database: Database, open_database: Open, account_ids: list[int]
) -> None:
    with database.transaction() as tx:
        (lease,) = leases.acquire(tx, {account_ids[0]: 0}, {}, "dead", 5.0, 1)
    stepped_server.set_offset(-2 * HOUR)
    begun = time.monotonic()
    heir = tenure(open_database("w2"), account_ids[:1], ttl=2.0)
    heir.start()
    until(lambda: bool(heir.held()), "the lease is taken", 30.0)
    assert time.monotonic() - begun > 5.0, "not before it was seen unchanged for its length"
    assert heir.held()[0].token == 2
    with pytest.raises(FenceRefused), database.hold(lease.account_id, lease.token, lease.lease_id):
        pass
    heir.stop()


def test_a_released_account_is_free_at_once_though_it_was_released_in_the_future(
    stepped_server: SteppedServer, database: Database, account_ids: list[int]
) -> None:
    (lease,) = take(database, account_ids[:1])
    with database.transaction() as tx:
        leases.release(tx, [lease])
    stepped_server.set_offset(-2 * HOUR)
    heir = tenure(database, account_ids[:1], ttl=30.0)
    heir.start()
    until(lambda: bool(heir.held()), "it is taken long before the clock gets there", 20.0)
    heir.stop()


def test_a_dead_worker_seen_in_the_future_is_not_counted_for_shares(
    stepped_server: SteppedServer, database: Database
) -> None:
    from uuid import uuid4

    with database.transaction() as tx:
        workers.seen(tx, uuid4(), "dead", "test")
    stepped_server.set_offset(-2 * HOUR)
    with database.transaction() as tx:
        workers.seen(tx, uuid4(), "living", "test")
        assert workers.live(tx, 30.0) == 1


def test_slots_looked_at_by_a_clock_that_was_ahead_do_not_come_again(
    stepped_server: SteppedServer, database: Database, account_ids: list[int]
) -> None:
    strategy(database, account_ids[0], misfire="all")
    guard = ClockGuard()
    stepped_server.set_offset(HOUR)
    now = guard.look(database)
    assert now is not None, "a worker that starts now has nothing to compare with"
    scheduler.materialise(database, now)
    looked_at = states(database)
    assert len(looked_at) > 60
    stepped_server.set_offset(0.0)
    until(believes_again(guard, database), "the clock is believed")
    for _ in range(3):
        later = guard.look(database)
        assert later is not None
        assert scheduler.materialise(database, later) == 0
    assert states(database) == looked_at
    with database.read() as tx:
        assert tx.exec_driver_sql("SELECT high_water_mark > clock_timestamp() FROM strategy").scalar_one()


def test_no_mark_rises_above_the_instant_that_was_judged(
    stepped_server: SteppedServer, database: Database, account_ids: list[int]
) -> None:
    """The step comes between the look and the write: what counts is what the look said."""
    strategy(database, account_ids[0])
    now = ClockGuard().look(database)
    assert now is not None
    stepped_server.set_offset(24 * 365 * HOUR)
    scheduler.materialise(database, now)
    with database.read() as tx:
        assert tx.exec_driver_sql("SELECT high_water_mark <= %s FROM strategy", (now,)).scalar_one()
