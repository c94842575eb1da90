"""Triggers: repeated, in conflict, side by side, refused; and the switches of an operator."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest

from executor.database import Database
from executor.recurrence import slot_text
from executor.triggering import trigger
from tests.cli.desk import Desk, together

COUNT = "SELECT count(*) FROM execution"


def test_asking_twice_is_one_run(applied: Desk) -> None:
    assert applied.fine("trigger", "refunds", "--id", "8812").out == "recorded refunds/id/8812\n"
    again = applied.fine("trigger", "refunds", "--id", "8812").out
    assert again == "already recorded: refunds/id/8812 is PENDING\n"
    assert applied.rows("SELECT execution_id, trigger_key, state, expires_at - due_at FROM execution") == [
        ("refunds/id/8812", "8812", "PENDING", timedelta(hours=1))
    ]
    assert applied.rows("SELECT to_state FROM history WHERE kind = 'execution'") == [("PENDING",)]


def test_another_input_under_the_same_name_is_refused(applied: Desk) -> None:
    applied.write("a.json", '{"pay": [1, 2]}')
    applied.write("same.json", ' { "pay" : [1,2] } ')
    applied.write("b.json", '{"pay": [1, 3]}')
    applied.fine("trigger", "refunds", "--id", "1", "--input", "a.json")
    assert "already recorded" in applied.fine("trigger", "refunds", "--id", "1", "--input", "same.json").out
    before = applied.rows("SELECT * FROM execution")
    assert "nothing was changed" in applied.fails(1, "trigger", "refunds", "--id", "1", "--input", "b.json")
    assert "nothing was changed" in applied.fails(1, "trigger", "refunds", "--id", "1")
    assert applied.rows("SELECT * FROM execution") == before


def test_twenty_at_once_are_one_row(applied: Desk) -> None:
    barrier = Barrier(20)

    def ask(number: int) -> bool:
        database = Database(applied.libpq, f"caller {number}", pool_size=1)
        try:
            barrier.wait(30)
            return trigger(database, "refunds", key="once").recorded
        finally:
            database.close()

    with ThreadPoolExecutor(20) as callers:
        recorded = list(callers.map(ask, range(20)))
    assert sum(recorded) == 1
    assert applied.rows(COUNT) == [(1,)]
    assert applied.rows("SELECT count(*) FROM history WHERE kind = 'execution'") == [(1,)]


def test_commands_side_by_side_are_one_row(applied: Desk) -> None:
    runs = together([applied.start("trigger", "refunds", "--id", "once") for _ in range(3)])
    assert [run.code for run in runs] == [0] * 3, runs
    assert sum(run.out.startswith("recorded") for run in runs) == 1
    assert applied.rows(COUNT) == [(1,)]


def test_a_slot_is_the_row_the_scheduler_would_make(applied: Desk) -> None:
    slot = datetime.now(UTC).replace(hour=10, minute=0, second=0, microsecond=0)
    if slot > datetime.now(UTC):
        slot -= timedelta(days=1)
    applied.fine("trigger", "payroll")
    assert "already recorded" in applied.fine("trigger", "payroll", "--slot", slot_text(slot)).out
    assert applied.rows("SELECT execution_id, slot, due_at, expires_at FROM execution") == [
        (f"payroll/{slot_text(slot)}", slot, slot, slot + timedelta(days=1))
    ]


def test_a_missed_slot_gets_an_hour_to_start(applied: Desk) -> None:
    applied.fine("trigger", "payroll", "--slot", "2026-09-02T10:00Z")
    ((left,),) = applied.rows("SELECT expires_at - clock_timestamp() FROM execution")
    assert timedelta(minutes=55) < left <= timedelta(hours=1)


def test_a_start_deadline_that_has_passed_is_told(applied: Desk) -> None:
    applied.edit('misfire = "latest"', 'misfire = "latest"\nstart_deadline = "24h"')
    applied.fine("apply")
    assert "the start deadline" in applied.fails(1, "trigger", "payroll", "--slot", "2026-09-02T10:00Z")
    assert applied.rows(COUNT) == [(0,)]


BAD = {
    "not on the schedule": (["payroll", "--slot", "2026-09-02T10:30Z"], "is no slot of payroll"),
    "in the future": (["payroll", "--slot", "2099-09-02T10:00Z"], "lies in the future"),
    "no slot at all": (["payroll", "--slot", "yesterday"], "is not a slot"),
    "slot and key": (["payroll", "--slot", "2026-09-02T10:00Z", "--id", "1"], "exclude each other"),
    "no slot to take": (["refunds"], "has no schedule to take a slot from"),
    "unknown strategy": (["payrol"], 'no strategy is registered as "payrol"; known are: payroll, refunds'),
    "odd key": (["refunds", "--id", "a b"], "--id takes"),
    "key of a reissue": (["refunds", "--id", "a/reissue/1"], "--id takes"),
    "no such file": (["refunds", "--id", "1", "--input", "gone.json"], "gone.json cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_run_records_nothing(applied: Desk, case: str) -> None:
    arguments, told = BAD[case]
    assert told in applied.fails(2, "trigger", *arguments)
    assert applied.rows(COUNT) == [(0,)]


@pytest.mark.parametrize(
    "text",
    ["{", "NaN", '"\\u0000"', '"\\ud800"', "[" * 100_000, json.dumps("x" * 300_000), "1e999"],
    ids=["cut", "NaN", "zero", "surrogate", "deep", "long", "infinite"],
)
def test_an_input_that_cannot_be_kept(applied: Desk, text: str) -> None:
    applied.write("input.json", text)
    assert "the input" in applied.fails(2, "trigger", "refunds", "--id", "1", "--input", "input.json")
    assert applied.rows(COUNT) == [(0,)]


def test_a_slot_that_was_pruned_stays_away(applied: Desk) -> None:
    applied.execute("UPDATE strategy SET pruned_through = high_water_mark WHERE name = 'payroll'")
    assert "execution_slot_pruned" in applied.fails(1, "trigger", "payroll", "--slot", "2026-09-02T10:00Z")
    assert applied.rows(COUNT) == [(0,)]


def test_a_trigger_wakes_the_workers(applied: Desk) -> None:
    import psycopg

    with psycopg.connect(applied.libpq, autocommit=True) as connection:
        connection.execute("LISTEN fenced")
        applied.fine("trigger", "refunds", "--id", "1")
        heard = list(connection.notifies(timeout=5, stop_after=1))
    assert [(one.channel, one.payload) for one in heard] == [("fenced", "")]


def test_a_paused_strategy_takes_no_trigger(applied: Desk) -> None:
    applied.fine("trigger", "refunds", "--id", "1")
    assert "refunds is paused" in applied.fine("pause", "refunds", "--why", "look first").out
    assert "nothing changed" in applied.fine("pause", "refunds", "--why", "again").out
    assert "look first" in applied.fails(1, "trigger", "refunds", "--id", "2")
    assert "already recorded" in applied.fine("trigger", "refunds", "--id", "1").out
    assert applied.rows(COUNT) == [(1,)]


def test_resume_and_reopen_are_requests(applied: Desk) -> None:
    assert "nothing to do" in applied.fine("resume", "refunds", "--why", "x").out
    assert "nothing to do" in applied.fine("reopen", "treasury", "--why", "x").out
    assert applied.rows("SELECT count(*) FROM request") == [(0,)]
    applied.fine("pause", "refunds", "--why", "x")
    applied.fine("halt", "treasury", "--why", "y")
    for _ in range(2):
        assert "request 1: resume refunds" in applied.fine("resume", "refunds", "--why", "x", "--no-wait").out
    assert "request 2: reopen treasury" in applied.fine("reopen", "treasury", "--why", "z", "--no-wait").out
    requests = applied.rows("SELECT kind, strategy, why, answered_at FROM request ORDER BY request_id")
    assert requests == [("resume", "refunds", "x", None), ("reopen", None, "z", None)]
    assert applied.rows("SELECT paused_at IS NULL FROM strategy WHERE name = 'refunds'") == [(False,)]


@pytest.mark.parametrize(("granted", "code"), [(True, 0), (False, 1)])
def test_the_command_waits_for_the_holder(applied: Desk, granted: bool, code: int) -> None:
    applied.fine("halt", "treasury", "--why", "y")
    process = applied.start("reopen", "treasury", "--why", "looked at")
    deadline = datetime.now(UTC) + timedelta(seconds=30)
    while not applied.rows("SELECT 1 FROM request") and datetime.now(UTC) < deadline:
        pass
    applied.execute("UPDATE request SET answered_at = now(), granted = %s, answer = 'as the chain says'", granted)
    (run,) = together([process])
    assert run.code == code
    assert "as the chain says" in (run.out if granted else run.err)


def test_halting_stops_more_than_draining(applied: Desk) -> None:
    assert "treasury is draining" in applied.fine("halt", "--drain", "treasury", "--why", "move").out
    assert "treasury is halted" in applied.fine("halt", "treasury", "--why", "now").out
    assert "nothing changed" in applied.fine("halt", "treasury", "--why", "now").out
    assert "fenced reopen treasury comes first" in applied.fails(1, "halt", "--drain", "treasury", "--why", "x")
    ((state, reason),) = applied.rows("SELECT state, reason FROM account")
    assert state == "halted"
    assert reason.startswith("now (")
    assert 'no account is registered as "tresury"' in applied.fails(2, "halt", "tresury", "--why", "x")
