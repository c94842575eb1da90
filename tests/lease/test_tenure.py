"""A worker's tenure: shares, politeness, trust that ends by itself, and a watchdog that ends the process."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from uuid import uuid4

from executor.crashpoints import inert
from executor.database import Database
from executor.tenure import EXIT_UNTRUSTED, Identity, Tenure
from tests.lease.conftest import Open


def until(fact: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def tenure(database: Database, account_ids: list[int], ttl: float = 5.0, name: str = "w1") -> Tenure:
    return Tenure(database, Identity(uuid4(), name, "test"), ttl, account_ids, lambda _: 0, inert, lambda: None, set)


def test_a_lone_worker_takes_everything_and_gives_it_back_at_once(database: Database, account_ids: list[int]) -> None:
    holder = tenure(database, account_ids, ttl=30.0)
    holder.start()
    until(lambda: len(holder.held()) == 40, "all accounts are taken")
    holder.stop()
    assert holder.held() == []
    with database.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM lease WHERE expires_at > clock_timestamp()").scalar_one() == 0


def test_leases_are_kept_by_renewal_well_past_their_length(database: Database, account_ids: list[int]) -> None:
    holder = tenure(database, account_ids[:2], ttl=2.0)
    holder.start()
    until(lambda: len(holder.held()) == 2, "both accounts are taken")
    first = {lease.account_id: lease for lease in holder.held()}
    with database.read() as tx:
        until(
            lambda: tx.exec_driver_sql(
                "SELECT min(renewed_at - acquired_at) > interval '3 s' FROM lease WHERE token > 0"
            ).scalar_one(),
            "renewed past its length",
        )
    assert {lease.account_id: lease for lease in holder.held()} == first
    holder.stop()


def test_a_lease_somebody_else_took_is_dropped(open_database: Open, database: Database, account_ids: list[int]) -> None:
    holder = tenure(database, account_ids[:1], ttl=2.0)
    holder.start()
    until(lambda: len(holder.held()) == 1, "the account is taken")
    (lease,) = holder.held()
    with open_database("thief").transaction() as tx:
        tx.exec_driver_sql(
            "UPDATE lease SET token = token + 5, lease_id = gen_random_uuid(), expires_at = clock_timestamp() + interval '1 h'"
        )
    until(lambda: holder.held() == [], "the lost lease is noticed")
    assert not holder.is_trusted(lease)
    holder.stop()


def test_trust_ends_before_the_lease_when_renewals_fail(open_database: Open, account_ids: list[int]) -> None:
    database = open_database("w1")
    holder = tenure(database, account_ids[:1], ttl=2.0)
    holder.start()
    until(lambda: len(holder.held()) == 1, "the account is taken")
    (lease,) = holder.held()
    database.engine.dispose()
    database.engine.pool.connect = _refuse  # type: ignore[method-assign]  # the network, gone
    until(lambda: not holder.is_trusted(lease), "trust ran out")
    with open_database("judge").read() as tx:
        left = tx.exec_driver_sql(
            "SELECT expires_at > clock_timestamp() - interval '0.1 s' FROM lease WHERE account_id = %s",
            (lease.account_id,),
        )
        assert left.scalar_one(), "trust ended no later than the lease"
    holder._stop.set()


def _refuse() -> None:
    import sqlalchemy as sa

    raise sa.exc.TimeoutError


_STUBBORN = """
import sys, time
from uuid import uuid4
from executor.crashpoints import inert
from executor.database import Database
from executor.tenure import Identity, Tenure
database = Database(sys.argv[1], "stubborn")
working = set()
tenure = Tenure(database, Identity(uuid4(), "stubborn", "test"), 2.0, [int(sys.argv[2])], lambda _: 0, inert, lambda: None, lambda: working)
tenure.start()
while not tenure.held():
    time.sleep(0.01)
working.add(tenure.held()[0])
tenure.drop(tenure.held()[0], "lost")
tenure._stop.wait(60)
"""


def test_the_watchdog_ends_a_process_whose_work_does_not_stop(database_url: str, account_ids: list[int]) -> None:
    process = subprocess.run(
        [sys.executable, "-c", _STUBBORN, database_url, str(account_ids[0])],
        timeout=60,
        check=False,
        capture_output=True,
    )
    assert process.returncode == EXIT_UNTRUSTED


def test_two_workers_share_and_one_account_more_never_lies_idle(open_database: Open, account_ids: list[int]) -> None:
    gate = threading.Barrier(2)
    holders = [tenure(open_database(f"w{i}"), account_ids, ttl=10.0, name=f"w{i}") for i in range(2)]

    def begin(holder: Tenure) -> None:
        gate.wait()
        holder.start()

    threads = [threading.Thread(target=begin, args=(holder,)) for holder in holders]
    for thread in threads:
        thread.start()
    until(lambda: sum(len(holder.held()) for holder in holders) == 40, "everything is held")
    ids = [lease.account_id for holder in holders for lease in holder.held()]
    assert sorted(ids) == sorted(account_ids)
    for holder in holders:
        holder.stop()


def test_a_worker_that_comes_later_gets_its_share(open_database: Open, account_ids: list[int]) -> None:
    holders = [tenure(open_database(f"w{i}"), account_ids, ttl=2.0, name=f"w{i}") for i in range(2)]
    holders[0].start()
    until(lambda: len(holders[0].held()) == 40, "the first has everything")
    holders[1].start()

    def is_even() -> bool:
        holders[0].even_out(holders[0].held())
        return [len(holder.held()) for holder in holders] == [20, 20]

    until(is_even, "both have their share", 30.0)
    holders[0].even_out(holders[0].held())
    assert len(holders[0].held()) == 20
    for holder in holders:
        holder.stop()


def test_nothing_that_is_under_way_is_given_back(open_database: Open, account_ids: list[int]) -> None:
    holders = [tenure(open_database(f"w{i}"), account_ids, ttl=2.0, name=f"w{i}") for i in range(2)]
    holders[0].start()
    until(lambda: len(holders[0].held()) == 40, "the first has everything")
    holders[1].start()
    idle = holders[0].held()[:3]

    def is_offered() -> bool:
        holders[0].even_out(idle)
        return len(holders[0].held()) == 37

    until(is_offered, "what is idle is given back", 30.0)
    assert not {lease.account_id for lease in holders[0].held()} & {lease.account_id for lease in idle}
    for holder in holders:
        holder.stop()


def test_an_account_that_nobody_takes_is_offered_once(open_database: Open, account_ids: list[int]) -> None:
    """The other worker serves other accounts: this one keeps what it has above the share, and it does not go to and fro."""
    holder = tenure(open_database("w0"), account_ids[:2], ttl=2.0, name="w0")
    other = tenure(open_database("w1"), account_ids[2:3], ttl=2.0, name="w1")
    holder.start()
    until(lambda: len(holder.held()) == 2, "the first has its two")
    other.start()

    def came_back() -> bool:
        holder.even_out(holder.held())
        return len(holder.held()) == 2 and max(lease.token for lease in holder.held()) == 2

    until(came_back, "one was offered and came back", 30.0)
    first = holder.held()
    with open_database("judge").read() as tx:
        renewed = "SELECT min(renewed_at - acquired_at) > interval '2 s' FROM lease WHERE holder = 'w0'"

        def is_kept() -> bool:
            holder.even_out([lease for lease in holder.held() if lease.token == 2])
            return bool(tx.exec_driver_sql(renewed).scalar_one())

        until(is_kept, "it is kept past its length", 30.0)
    assert holder.held() == first
    for one in (holder, other):
        one.stop()
