"""A legal history has no violation, and the report says what it looked at and what it did not."""

import json

from executor.audit import audit, render
from tests.audit import histories
from tests.store.rows import Lane, Rows


def test_an_empty_database_is_clean(database_url: str) -> None:
    report = audit(database_url, None)
    assert report.violations == []
    assert render(report).splitlines()[-1].endswith(" 0 violations")


def test_a_legal_history_is_clean(rows: Rows, lane: Lane, database_url: str) -> None:
    histories.everything(rows, lane)
    histories.paid(rows, rows.take_over(lane), [histories.Call(value=11)], key="after a takeover")
    report = audit(database_url, None)
    assert report.violations == []
    assert report.clean
