"""Times prove no order once the database's clock went back; the order of ids does."""

from executor.audit import audit
from tests.audit import histories
from tests.audit.planting import disarm
from tests.store.rows import Call, Lane, Rows

_BACK = "interval '2 hours'"


def _handed_on(rows: Rows, lane: Lane) -> Lane:
    """Something written by the first generation, then the same nonce carried on by the next."""
    (nonce,) = histories.reserved(rows, lane, histories.planned(rows, lane, [Call(value=3)]))
    lane = rows.take_over(lane)
    histories.sign(rows, lane, nonce, Call(value=3))
    return lane


def test_a_clock_that_went_back_is_told_and_breaks_nothing(rows: Rows, lane: Lane, database_url: str) -> None:
    """As rows stand when the clock was put back by two hours before the takeover."""
    _handed_on(rows, lane)
    disarm(rows)
    rows.run(f"UPDATE history SET at = at - {_BACK} WHERE token = 2")
    rows.run(f"UPDATE lease_generation SET at = at - {_BACK} WHERE token = 2")
    report = audit(database_url, None)
    assert report.violations == []
    assert any("clock went back" in notice for notice in report.notices)
    assert any(line.startswith("G6: a passed holder") for line in report.not_checked)


def test_a_clock_that_went_back_while_the_old_holder_wrote(rows: Rows, lane: Lane, database_url: str) -> None:
    """The next generation begins after the first one began, and before the last thing it wrote."""
    _handed_on(rows, lane)
    disarm(rows)
    rows.run(f"UPDATE history SET at = at - {_BACK} WHERE token = 2")
    rows.run(f"UPDATE lease_generation SET at = at - {_BACK} * token")
    rows.run(f"UPDATE lease_generation SET at = at - {_BACK} WHERE token = 1")
    assert audit(database_url, None).violations == []


def test_a_clock_that_went_on_hours_at_once_is_ordinary(rows: Rows, lane: Lane, database_url: str) -> None:
    _handed_on(rows, lane)
    disarm(rows)
    rows.run(f"UPDATE history SET at = at - {_BACK} WHERE token = 1 OR token IS NULL")
    rows.run(f"UPDATE lease_generation SET at = at - {_BACK} WHERE token = 1")
    report = audit(database_url, None)
    assert (report.violations, report.notices) == ([], [])


def test_a_token_that_fell_is_found_whatever_the_clock_says(rows: Rows, lane: Lane, database_url: str) -> None:
    _handed_on(rows, lane)
    disarm(rows)
    rows.run(
        "INSERT INTO history (kind, subject, account_id, from_state, to_state, token, at)"
        " VALUES ('strategy', 'payroll', 1, 'active', 'active', 1, '2026-01-01')"
    )
    assert [violation.kind for violation in audit(database_url, None).violations] == ["stale-write"]


def test_a_passed_holder_that_wrote_before_the_next_one_is_found_by_its_time(
    rows: Rows, lane: Lane, database_url: str
) -> None:
    histories.reserved(rows, lane, histories.planned(rows, lane, [Call(value=3)]))
    rows.take_over(lane)
    disarm(rows)
    rows.run(
        "INSERT INTO history (kind, subject, account_id, from_state, to_state, token) VALUES ('strategy', 'payroll', 1, 'active', 'active', 1)"
    )
    assert [violation.kind for violation in audit(database_url, None).violations] == ["stale-write"]
