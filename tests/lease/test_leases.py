"""The lease statements under contention (P8–P11): one winner, tokens that only grow, renewals that wait for nobody."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import pytest

from executor.database import Database, FenceRefused
from executor.records import Lease
from executor.store import leases
from tests.lease.conftest import Open


def take(database: Database, account_ids: list[int], ttl: float = 60.0, floor: int = 0) -> list[Lease]:
    with database.transaction() as tx:
        return leases.acquire(tx, dict.fromkeys(account_ids, floor), {}, "test", ttl, len(account_ids))


def expire(database: Database, account_id: int) -> None:
    with database.transaction() as tx:
        tx.exec_driver_sql(
            "UPDATE lease SET expires_at = clock_timestamp() - interval '1 ms' WHERE account_id = %s", (account_id,)
        )


def test_sixteen_workers_at_once_have_one_winner_for_each_account(open_database: Open, account_ids: list[int]) -> None:
    databases = [open_database(f"w{i}") for i in range(16)]
    barrier = threading.Barrier(len(databases))

    def race(database: Database) -> list[Lease]:
        barrier.wait()
        return take(database, account_ids)

    with ThreadPoolExecutor(len(databases)) as pool:
        won = [lease for leased in pool.map(race, databases) for lease in leased]
    assert sorted(lease.account_id for lease in won) == sorted(account_ids)
    assert {lease.token for lease in won} == {1}


def test_a_token_passes_every_mark_there_is(database: Database, account_ids: list[int]) -> None:
    one, two, three = account_ids[:3]
    with database.transaction() as tx:
        tx.exec_driver_sql("UPDATE account SET fence = 57 WHERE account_id = %s", (two,))
        tx.exec_driver_sql("UPDATE lease SET token = 80 WHERE account_id = %s", (three,))
    assert take(database, [one], floor=41)[0].token == 42
    assert take(database, [two])[0].token == 58
    assert take(database, [three], floor=70)[0].token == 81


def test_a_held_account_is_not_taken_and_an_expired_one_only_by_a_new_generation(
    database: Database, account_ids: list[int]
) -> None:
    (lease,) = take(database, account_ids[:1])
    assert take(database, account_ids[:1]) == []
    expire(database, lease.account_id)
    with database.transaction() as tx:
        assert leases.renew(tx, [lease], 60.0) == set(), "an expired lease is never renewed"
    (successor,) = take(database, account_ids[:1])
    assert (successor.token, successor.lease_id != lease.lease_id) == (2, True)
    with database.transaction() as tx:
        assert leases.renew(tx, [lease], 60.0) == set()
        assert leases.standing(tx, [lease, successor]) == {successor.account_id}


def test_an_account_must_have_been_free_for_as_long_as_this_worker_waits(
    database: Database, account_ids: list[int]
) -> None:
    (account_id,) = account_ids[:1]
    expire(database, account_id)
    with database.transaction() as tx:
        assert leases.acquire(tx, {account_id: 0}, {account_id: 30.0}, "patient", 60.0, 1) == []
        tx.exec_driver_sql(
            "UPDATE lease SET expires_at = clock_timestamp() - interval '31 s' WHERE account_id = %s", (account_id,)
        )
        assert len(leases.acquire(tx, {account_id: 0}, {account_id: 30.0}, "patient", 60.0, 1)) == 1


def test_a_renewal_waits_for_no_record_transaction_and_a_takeover_does(
    open_database: Open, database: Database, account_ids: list[int]
) -> None:
    (lease,) = take(database, account_ids[:1])
    other = open_database("w2")
    with database.hold(lease.account_id, lease.token, lease.lease_id):
        with other.transaction() as tx:
            tx.exec_driver_sql("SET LOCAL lock_timeout = '1ms'")
            assert leases.renew(tx, [lease], 60.0) == {lease.account_id}
        # Overdue by now, say: the row is skipped as long as the record transaction is open.
        with other.transaction() as tx:
            tx.exec_driver_sql("SET LOCAL lock_timeout = '1ms'")
            tx.exec_driver_sql(
                "UPDATE lease SET expires_at = clock_timestamp() WHERE account_id = %s", (lease.account_id,)
            )
        assert take(other, [lease.account_id]) == []
    assert take(other, [lease.account_id])[0].token == 2


@pytest.mark.parametrize("changed", [{"token": 2}, {"lease_id": uuid4()}], ids=["token", "lease id"])
def test_hold_takes_the_very_generation_and_nothing_like_it(
    database: Database, account_ids: list[int], changed: dict[str, object]
) -> None:
    (lease,) = take(database, account_ids[:1])
    other = replace(lease, **changed)  # type: ignore[arg-type]
    with pytest.raises(FenceRefused) as refused, database.hold(other.account_id, other.token, other.lease_id):
        pass
    assert refused.value.constraint == "fence_current"


def test_an_expired_holder_that_nobody_succeeded_may_still_record(database: Database, account_ids: list[int]) -> None:
    (lease,) = take(database, account_ids[:1])
    expire(database, lease.account_id)
    with database.hold(lease.account_id, lease.token, lease.lease_id) as held:
        assert held.account_state == "open"


def test_a_released_holder_is_fenced_at_once(database: Database, account_ids: list[int]) -> None:
    (lease,) = take(database, account_ids[:1])
    with database.transaction() as tx:
        leases.release(tx, [lease])
    with pytest.raises(FenceRefused), database.hold(lease.account_id, lease.token, lease.lease_id):
        pass
    assert take(database, account_ids[:1])[0].token == 2


def test_release_by_a_stale_holder_frees_nothing(database: Database, account_ids: list[int]) -> None:
    (stale,) = take(database, account_ids[:1])
    expire(database, stale.account_id)
    (lease,) = take(database, account_ids[:1])
    with database.transaction() as tx:
        leases.release(tx, [stale])
        assert leases.standing(tx, [lease]) == {lease.account_id}


def test_every_holder_there_ever_was_is_kept(database: Database, account_ids: list[int]) -> None:
    for _ in range(3):
        (lease,) = take(database, account_ids[:1])
        expire(database, lease.account_id)
    with database.read() as tx:
        found = (
            tx.exec_driver_sql(
                "SELECT token FROM lease_generation WHERE account_id = %s ORDER BY at", (account_ids[0],)
            )
            .scalars()
            .all()
        )
    assert found == [1, 2, 3]
