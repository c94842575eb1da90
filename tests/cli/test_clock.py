"""What status and doctor say of the database's clock, and of slots that a wrong one looked at."""

from tests.cli.desk import Desk


def test_a_doubt_is_told_while_it_lasts_and_for_a_day(applied: Desk) -> None:
    assert "database clock" not in applied.run("status").out
    assert "✓ database clock: runs evenly" in applied.run("doctor").out
    applied.execute(
        "UPDATE clock_guard SET anomaly = 'it stepped', anomaly_at = clock_timestamp(), anomalies = 1, is_settled = false"
    )
    assert "it stepped; until it runs evenly no lease is acquired" in applied.run("status").out
    applied.execute("UPDATE clock_guard SET is_settled = true")
    assert "it stepped (seen 1 times in all); it is believed again" in applied.run("status").out
    assert "! database clock: it stepped" in applied.run("doctor").out
    applied.execute("UPDATE clock_guard SET anomaly_at = clock_timestamp() - interval '2 days'")
    assert "database clock" not in applied.run("status").out


def test_a_clock_behind_what_was_seen_is_told_before_any_worker_notices(applied: Desk) -> None:
    applied.execute("UPDATE clock_guard SET max_seen = clock_timestamp() + interval '2 hours'")
    assert "behind what a worker has seen" in applied.run("doctor").out


def test_a_mark_more_than_a_day_ahead_is_told(applied: Desk) -> None:
    applied.execute("UPDATE strategy SET high_water_mark = clock_timestamp() + interval '23 hours'")
    assert "no slot of it is due before" not in applied.run("status").out
    applied.execute("UPDATE strategy SET high_water_mark = '2099-01-01Z'")
    assert (
        "no slot of it is due before 2099-01-01 00:00Z, since the database's clock was ahead"
        in applied.run("status").out
    )
    assert "until 2099-01-01 00:00Z" in applied.run("doctor").out


def test_a_strategy_that_only_misses_its_deadline_is_told(applied: Desk) -> None:
    """[B80] The other way round: nothing runs twice, and nothing runs at all."""

    def miss(number: int) -> None:
        applied.execute(
            "INSERT INTO execution (execution_id, strategy, trigger_key, account_id, revision, payload_digest, state, reason, due_at, ended_at)"
            " SELECT name || '/id/' || %s, name, %s, account_id, revision, decode(repeat('00', 32), 'hex'), 'SKIPPED',"
            " 'start deadline passed while it was planned', clock_timestamp(), clock_timestamp() FROM strategy WHERE name = 'payroll'",
            str(number), str(number),
        )  # fmt: skip

    miss(1)
    miss(2)
    assert "missed its start deadline" not in applied.run("status").out
    miss(3)
    assert "missed its start deadline 3 times and has begun nothing since" in applied.run("status").out
