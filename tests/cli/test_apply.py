"""Configuration into rows: repeated, changed, retired and back, refused; the high-water mark never falls."""

import json
from datetime import UTC, datetime, timedelta

from tests.cli.desk import ADDRESS, PAYEE, Desk, together

REFUNDS = '[strategies.refunds]\nplan = "payroll:plan"\naccount = "treasury"\n'
STATE = "SELECT name, revision, high_water_mark, next_due_at, retired_at IS NOT NULL FROM strategy ORDER BY name"


def test_applying_twice_changes_nothing(desk: Desk) -> None:
    first = desk.fine("apply").out
    assert f"registered: {ADDRESS} on chain 31337" in first
    before = desk.rows(STATE), desk.rows("SELECT * FROM account"), desk.rows("SELECT account_id, lease_id FROM lease")
    assert "nothing to do" in desk.fine("apply").out
    assert before == (
        desk.rows(STATE),
        desk.rows("SELECT * FROM account"),
        desk.rows("SELECT account_id, lease_id FROM lease"),
    )


def test_a_new_strategy_starts_now(applied: Desk) -> None:
    (payroll, refunds) = applied.rows(STATE)
    assert payroll[2] <= datetime.now(UTC) < payroll[3] <= payroll[2] + timedelta(days=1)
    assert payroll[3].astimezone(UTC).hour == 10
    assert refunds[3] is None


def test_a_change_of_the_file_is_a_new_revision_and_keeps_the_slots_it_missed(applied: Desk) -> None:
    before = applied.rows(STATE)
    applied.write("payroll.py", (applied.directory / "payroll.py").read_text() + "\n# other\n")
    out = applied.fine("apply").out
    assert "its file or this release changed" in out
    after = applied.rows(STATE)
    assert all(old[1] != new[1] and old[2] == new[2] for old, new in zip(before, after, strict=True))


def test_a_changed_schedule_is_not_retroactive(applied: Desk) -> None:
    applied.edit("0 10 * * *", "* * * * *")
    assert "(schedule)" in applied.fine("apply").out
    ((_, _, mark, due, _), _) = applied.rows(STATE)
    assert mark < due <= mark + timedelta(minutes=1)
    assert datetime.now(UTC) - mark < timedelta(seconds=30)


def test_the_high_water_mark_never_falls(applied: Desk) -> None:
    ahead = datetime.now(UTC) + timedelta(days=3)
    applied.execute("UPDATE strategy SET high_water_mark = %s", ahead)
    applied.edit("0 10 * * *", "0 11 * * *")
    applied.fine("apply")
    ((_, _, mark, due, _), _) = applied.rows(STATE)
    assert mark == ahead
    assert due > ahead


def test_a_slot_that_is_passed_over_is_named(applied: Desk) -> None:
    applied.edit("0 10 * * *", "* * * * *")
    applied.fine("apply")
    applied.execute("ALTER TABLE strategy DISABLE TRIGGER change")
    applied.execute(
        "UPDATE strategy SET high_water_mark = high_water_mark - interval '2 minutes' WHERE name = 'payroll'"
    )
    applied.execute("ALTER TABLE strategy ENABLE ALWAYS TRIGGER change")
    applied.edit("* * * * *", "0 * * * *")
    out = applied.fine("apply").out
    assert "is passed over; if it must run: fenced trigger payroll --slot" in out


def test_a_strategy_retires_and_comes_back(applied: Desk) -> None:
    applied.edit(REFUNDS, "")
    assert "strategy refunds: retired" in applied.fine("apply").out
    assert "nothing to do" in applied.fine("apply").out
    assert "is retired" in applied.fails(1, "trigger", "refunds", "--id", "1")
    ahead = datetime.now(UTC) + timedelta(days=3)
    applied.execute("UPDATE strategy SET high_water_mark = %s WHERE name = 'refunds'", ahead)
    with (applied.directory / "fenced.toml").open("a") as file:
        file.write(REFUNDS)
    assert "strategy refunds: back" in applied.fine("apply").out
    assert applied.rows(STATE)[1][2:] == (ahead, None, False)
    applied.fine("trigger", "refunds", "--id", "1")


def test_another_input_is_no_other_revision(applied: Desk) -> None:
    applied.write("input.json", json.dumps([1]))
    applied.edit('misfire = "latest"', 'misfire = "latest"\ninput = { file = "input.json" }')
    applied.fine("apply")
    before = applied.rows(STATE)
    applied.write("input.json", json.dumps([1, 2]))
    assert "input read anew" in applied.fine("apply").out
    assert applied.rows("SELECT input FROM strategy WHERE name = 'payroll'") == [([1, 2],)]
    assert applied.rows(STATE) == before
    (applied.directory / "input.json").unlink()
    assert "input.json cannot be read" in applied.fails(2, "apply")


def test_an_account_keeps_its_name_and_address(applied: Desk) -> None:
    applied.edit(ADDRESS, PAYEE)
    assert "give the new one a name of its own" in applied.fails(2, "apply")
    applied.edit(PAYEE, ADDRESS)
    text = (
        (applied.directory / "fenced.toml")
        .read_text()
        .replace("treasury", "vault")
        .replace("vault.key", "treasury.key")
    )
    applied.write("fenced.toml", text)
    assert "is registered as the account treasury" in applied.fails(2, "apply")
    assert applied.rows("SELECT name FROM account") == [("treasury",)]


def test_in_flight_follows_the_configuration(applied: Desk) -> None:
    applied.edit("max_in_flight = 16", "max_in_flight = 4")
    assert "max_in_flight 16 → 4" in applied.fine("apply").out
    assert applied.rows("SELECT max_in_flight FROM account") == [(4,)]


def test_a_module_that_is_not_there_registers_nothing(desk: Desk) -> None:
    desk.edit('[strategies.refunds]\nplan = "payroll:plan"', '[strategies.refunds]\nplan = "gone.away:plan"')
    assert "strategies.refunds.plan: " in desk.fails(2, "apply")
    assert desk.rows("SELECT count(*) FROM account") == [(0,)]


def test_applies_side_by_side_are_one(desk: Desk) -> None:
    runs = together([desk.start("apply") for _ in range(3)])
    assert [run.code for run in runs] == [0] * 3, runs
    assert sum("nothing to do" in run.out for run in runs) == 2
    assert desk.rows("SELECT count(*) FROM account") == [(1,)]
