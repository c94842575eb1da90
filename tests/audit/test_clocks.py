"""The order of lease generations is proved by numbers of the history; what the database's clock said does not matter."""

from executor.audit import audit
from tests.audit import histories
from tests.audit.planting import disarm
from tests.store.rows import Call, Lane, Rows

_STALE = "INSERT INTO history (kind, subject, account_id, from_state, to_state, token) VALUES ('strategy', 'payroll', 1, 'active', 'active', 1)"


def _handed_on(rows: Rows, lane: Lane) -> Lane:
    """Something written by the first generation, then the same nonce carried on by the next."""
    (nonce,) = histories.reserved(rows, lane, histories.planned(rows, lane, [Call(value=3)]))
    lane = rows.take_over(lane)
    histories.sign(rows, lane, nonce, Call(value=3))
    return lane


def test_a_clock_that_went_back_or_forth_breaks_nothing(rows: Rows, lane: Lane, database_url: str) -> None:
    _handed_on(rows, lane)
    disarm(rows)
    for change in ("- interval '2 hours'", "+ interval '9 hours'"):
        rows.run(f"UPDATE history SET at = at {change} WHERE token = 2")
        rows.run(f"UPDATE lease_generation SET at = at {change} WHERE token = 2")
        report = audit(database_url, None)
        assert (report.violations, report.notices) == ([], [])


def test_a_passed_holder_that_wrote_is_found(rows: Rows, lane: Lane, database_url: str) -> None:
    """After the next one wrote, and also between its beginning and its first write."""
    histories.reserved(rows, lane, histories.planned(rows, lane, [Call(value=3)]))
    rows.take_over(lane)
    disarm(rows)
    rows.run(_STALE)
    assert [violation.kind for violation in audit(database_url, None).violations] == ["stale-write"]


def test_a_generation_that_noted_no_place_ends_where_the_next_one_wrote(
    rows: Rows, lane: Lane, database_url: str
) -> None:
    _handed_on(rows, lane)
    disarm(rows)
    rows.run("UPDATE lease_generation SET began_after = NULL")
    assert audit(database_url, None).violations == []
    rows.run(_STALE)
    assert [violation.kind for violation in audit(database_url, None).violations] == ["stale-write"]


def test_a_write_before_its_generation_began_is_found(rows: Rows, lane: Lane, database_url: str) -> None:
    _handed_on(rows, lane)
    disarm(rows)
    rows.run("UPDATE lease_generation SET began_after = (SELECT max(history_id) FROM history) WHERE token = 2")
    kinds = {violation.kind for violation in audit(database_url, None).violations}
    assert kinds == {"stale-write"}
