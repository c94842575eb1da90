"""Slots become executions once, whoever looks and however often (G1); what does not run is a row with its reason."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import tzdata

from executor import scheduler
from executor.clock_guard import ClockGuard
from executor.crashpoints import CrashPoint
from executor.database import Busy, Database, Refused
from executor.store import executions
from executor.telemetry import REGISTRY
from tests.lease.conftest import Open


def strategy(
    database: Database, account_id: int, *, name: str = "s", since: timedelta = timedelta(minutes=5), **columns: Any
) -> None:
    row = {
        "misfire": "latest",
        "overlap": "allow",
        "every_seconds": 60.0,
        "schedule": None,
        "tzdata_version": None,
        **columns,
    }
    with database.transaction() as tx:
        tx.exec_driver_sql(
            "INSERT INTO strategy (name, account_id, plan, schedule, every_seconds, timezone, misfire, overlap, params, revision, high_water_mark, next_due_at, tzdata_version)"
            " VALUES (%s, %s, 'm:f', %s, %s, 'UTC', %s, %s, '{}', 'r', clock_timestamp() - %s, clock_timestamp() - interval '1 s', %s)",
            (
                name,
                account_id,
                row["schedule"],
                row["every_seconds"],
                row["misfire"],
                row["overlap"],
                since,
                row["tzdata_version"],
            ),
        )


def materialise(database: Database) -> int:
    """One round of a scheduler that believes the database's clock."""
    now = ClockGuard().look(database)
    assert now is not None
    return scheduler.materialise(database, now)


def states(database: Database) -> list[tuple[str, str | None]]:
    with database.read() as tx:
        return [tuple(row) for row in tx.exec_driver_sql("SELECT state, reason FROM execution ORDER BY slot")]  # type: ignore[misc]


def test_eight_schedulers_at_once_make_one_row_a_slot(
    open_database: Open, database: Database, account_ids: list[int]
) -> None:
    strategy(database, account_ids[0], misfire="all")
    databases = [open_database(f"w{i}") for i in range(8)]
    gate = threading.Barrier(8)

    def look(one: Database) -> int:
        gate.wait()
        return materialise(one)

    with ThreadPoolExecutor(8) as pool:
        inserted = sum(pool.map(look, databases))
    assert inserted == len(states(database)) == 5
    assert materialise(database) == 0


def test_slots_of_a_transaction_that_was_given_up_are_not_counted(database: Database, account_ids: list[int]) -> None:
    names = ["counted-a", "counted-b"]
    for name in names:
        strategy(database, account_ids[0], name=name, misfire="all")

    def counted() -> list[float | None]:
        labels = [{"strategy": name, "state": "PENDING"} for name in names]
        return [REGISTRY.get_sample_value("fenced_slots_total", label) for label in labels]

    points: list[CrashPoint] = []

    def fail_at_the_second(point: CrashPoint) -> None:
        points.append(point)
        if len(points) == 2:
            raise Busy("given up")

    now = ClockGuard().look(database)
    assert now is not None
    with pytest.raises(Busy):
        scheduler.materialise(database, now, fail_at_the_second)
    assert counted() == [None, None]
    assert scheduler.materialise(database, now) == 10
    assert counted() == [5, 5]


def test_after_downtime_the_newest_slot_runs_and_the_others_say_why_not(
    database: Database, account_ids: list[int]
) -> None:
    strategy(database, account_ids[0])
    materialise(database)
    found = states(database)
    assert [state for state, _ in found] == ["SKIPPED"] * 4 + ["PENDING"]
    assert {reason for state, reason in found if state == "SKIPPED"} == {"misfire_coalesced"}


def test_a_slot_that_was_looked_at_is_never_looked_at_again_even_without_its_row(
    database: Database, account_ids: list[int]
) -> None:
    strategy(database, account_ids[0])
    materialise(database)
    with database.transaction() as tx:
        # As pruning will: the rows go, the marks stay.
        tx.exec_driver_sql("ALTER TABLE execution DISABLE TRIGGER ALL")
        tx.exec_driver_sql("DELETE FROM execution")
        tx.exec_driver_sql("ALTER TABLE execution ENABLE TRIGGER ALL")
        tx.exec_driver_sql(
            "UPDATE strategy SET pruned_through = high_water_mark, next_due_at = clock_timestamp() - interval '1 s'"
        )
    materialise(database)
    assert states(database) == []
    with database.read() as tx:
        mark = tx.exec_driver_sql("SELECT high_water_mark FROM strategy").scalar_one()
    row = {"execution_id": "s/again", "strategy": "s", "slot": mark, "input": None, "state": "PENDING", "due_at": mark}
    with pytest.raises(Refused) as refused, database.transaction() as tx:
        executions.insert(tx, [row])
    assert refused.value.constraint == "execution_slot_pruned"


def test_overlap_skips_while_the_one_before_is_not_through(database: Database, account_ids: list[int]) -> None:
    strategy(database, account_ids[0], overlap="skip", since=timedelta(seconds=65))
    materialise(database)
    made = len(states(database))  # one, or two where a minute's slot lies in the first five of the 65 seconds
    assert made
    with database.transaction() as tx:
        tx.exec_driver_sql("UPDATE strategy SET every_seconds = 1, next_due_at = clock_timestamp() - interval '1 s'")
        tx.exec_driver_sql("UPDATE strategy SET revision = revision")
    until = datetime.now(UTC) + timedelta(seconds=10)
    while len(states(database)) == made:
        assert datetime.now(UTC) < until
        materialise(database)
    assert states(database)[-1] == ("SKIPPED", "overlap: the one before is not through yet")


def test_older_time_zone_data_leaves_a_strategy_alone(database: Database, account_ids: list[int]) -> None:
    strategy(database, account_ids[0], tzdata_version="9999z")
    assert materialise(database) == 0
    assert tzdata.IANA_VERSION < "9999z"


def test_the_payload_of_an_id_is_fixed(database: Database, account_ids: list[int]) -> None:
    strategy(database, account_ids[0])
    row = {
        "execution_id": "s/id/k",
        "strategy": "s",
        "trigger_key": "k",
        "state": "PENDING",
        "due_at": datetime.now(UTC),
    }
    with database.transaction() as tx:
        assert executions.insert(tx, [{**row, "input": {"a": 1, "b": 2}}]) == ["s/id/k"]
        assert executions.insert(tx, [{**row, "input": {"a": 2}}]) == []
        stored = executions.stored_payload(tx, "s/id/k")
    assert stored == (executions.payload_digest("s", {"b": 2, "a": 1}), "PENDING")
