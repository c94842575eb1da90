"""A legal history has no violation; the report says what it looked at and what it did not, and the audit writes nothing."""

import ast
import json
from pathlib import Path

import pytest

from executor.audit import AuditReport, Violation, audit, reading, render
from executor.errors import ConfigError, Unreachable
from tests.audit import histories
from tests.audit.planting import disarm
from tests.audit.plants_payments import ACKNOWLEDGED
from tests.store.rows import Call, Lane, Rows


def test_an_empty_database_is_clean(database_url: str) -> None:
    report = audit(database_url, None)
    assert report.clean
    assert render(report).splitlines()[-1].endswith(": 0 violations")


@pytest.mark.parametrize("size", [reading.SLICE, 3])
def test_a_legal_history_is_clean_however_it_is_sliced(
    old_rows: Rows, history_url: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SLICE", size)
    report = audit(history_url, None)
    assert report.violations == []
    assert report.counts | {"transactions_decoded": 14} == report.counts
    states = {"CANCELLED": 2, "FAILED": 1, "PARKED": 2, "PENDING": 1, "PLANNED": 2, "REVERTED": 1, "RUNNING": 3}
    assert report.counts["executions_by_state"] == states | {"SKIPPED": 1, "SUCCEEDED": 6}
    assert (report.counts["executions"], report.counts["reservations"], report.counts["holes"]) == (19, 13, 0)
    waits = {"chain": 3, "nonce": 2, "operator": 2, "plan": 1}
    assert report.counts["executions_waiting_for"] == waits


@pytest.mark.parametrize("size", [reading.SLICE, 1])
def test_a_takeover_in_between_is_clean(
    rows: Rows, lane: Lane, database_url: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SLICE", size)
    other = rows.account("savings", address=b"\x01" * 20)
    for _ in range(3):
        (nonce,) = histories.reserved(rows, lane, histories.planned(rows, lane, [Call(value=3)]))
        lane = rows.take_over(lane)
        histories.sign(rows, lane, nonce, Call(value=3))
        other = rows.take_over(other)
    assert audit(database_url, None).violations == []


def test_two_accounts_do_not_mix(rows: Rows, lane: Lane, database_url: str) -> None:
    other = rows.account("savings", address=bytes.fromhex("70997970c51812dc3a010c7d01b50e0d17dc79c8"), first_nonce=40)
    rows.strategy(other, "saving")
    histories.paid(rows, lane)
    execution_id = histories.planned(rows, other, [Call(value=5)], strategy="saving")
    (nonce,) = histories.reserved(rows, other, execution_id)
    histories.sign(rows, other, nonce, Call(value=5), key=histories.KEYS[1])
    assert audit(database_url, None).violations == []


def test_the_report_is_json_and_says_what_it_did_not_check(old_rows: Rows, history_url: str) -> None:
    old_rows.run(
        "INSERT INTO refused_write (account_id, constraint_name, stage, worker, detail) VALUES (1, 'fence_current', 'sign', 'w', 'd')"
    )
    report = audit(history_url, None)
    document = json.loads(report.to_json())
    assert set(document) == {"counts", "violations", "notices", "not_checked", "seconds"}
    assert document["counts"]["stale_writes_refused"] == {"fence_current": 1}
    assert {"G4", "G8"} <= {line.partition(":")[0] for line in report.not_checked}


def test_a_violation_is_rendered_with_its_sentence() -> None:
    report = AuditReport(
        {"executions": 1},
        [Violation("G2", "step-twice", "step 0 owns 2 nonces", [{"table": "nonce_reservation", "nonce": 7}], {})],
        ["look"],
        ["G4: tests"],
        0.25,
    )
    assert render(report).splitlines() == [
        "executions  1",
        "notice: look",
        "not checked: G4: tests",
        "VIOLATION of G2 (step-twice): step 0 owns 2 nonces.",
        "    rows: nonce_reservation (nonce 7)",
        "1 executions, 0 nonces, 0 attempts audited in 0.2 s: 1 violation",
    ]
    assert not report.clean


def test_look_alikes_are_notices(rows: Rows, lane: Lane, database_url: str) -> None:
    for _ in range(3):
        histories.reserved(rows, lane, histories.planned(rows, lane, [Call(value=3)]))
    histories.reserved(rows, lane, histories.planned(rows, lane, [Call(value=4)]))
    report = audit(database_url, None)
    assert report.violations == []
    (notice,) = report.notices
    assert "repeated 2 times within 30 days" in notice


def test_the_audit_changes_nothing(old_rows: Rows, history_url: str) -> None:
    query = "SELECT (n_tup_ins, n_tup_upd, n_tup_del) FROM pg_stat_database JOIN pg_stat_all_tables ON true WHERE relname = 'history'"
    marks = "SELECT pg_current_xact_id()::text::bigint"
    before, first = old_rows.value(query), old_rows.value(marks)
    audit(history_url, None)
    assert (old_rows.value(query), old_rows.value(marks)) == (before, first + 1)


@pytest.mark.parametrize(
    "bad", ["postgresql://nobody@127.0.0.1:9/none", "postgresql+psycopg://nobody@127.0.0.1:9/none"]
)
def test_a_database_that_does_not_answer(bad: str) -> None:
    with pytest.raises(Unreachable, match="the database does not answer"):
        audit(bad, None)


def test_a_database_without_the_schema(empty_database: str) -> None:
    with pytest.raises(ConfigError, match="fenced migrate"):
        audit(empty_database, None)


def test_an_address_of_something_else() -> None:
    with pytest.raises(ConfigError, match="not a PostgreSQL address"):
        audit("nonsense", None)


def test_the_judge_shares_nothing_with_what_it_judges() -> None:
    """It imports the standard library, SQLAlchemy Core, the chain package, the errors and itself."""
    allowed = ("sqlalchemy", "eth_hash.auto", "chain.", "executor.errors", "executor.audit")
    library = (
        "ast",
        "collections",
        "concurrent",
        "contextlib",
        "dataclasses",
        "datetime",
        "decimal",
        "itertools",
        "json",
        "multiprocessing",
        "re",
        "sys",
        "time",
        "typing",
    )
    for source in Path(reading.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert all(name.startswith(allowed) or name.partition(".")[0] in library for name in names), (source, names)


def test_nonces_used_elsewhere_count_as_present(old_rows: Rows, history_url: str) -> None:
    """Those that an operator's reopening acknowledged: neither a hole nor unknown to the journal."""
    disarm(old_rows)
    for statement in ACKNOWLEDGED:
        old_rows.run(statement)
    gone = "(SELECT execution_id FROM nonce_reservation WHERE nonce = 8)"
    for table, column in (("broadcast", "nonce"), ("attempt", "nonce")):
        old_rows.run(f"DELETE FROM {table} WHERE {column} = 8")
    old_rows.run(
        "INSERT INTO acknowledged_nonce SELECT 1, 8, execution_id, step, 1 FROM nonce_reservation WHERE nonce = 8"
    )
    old_rows.run(f"DELETE FROM history WHERE subject IN ('1/8', '1/8/0') OR subject = {gone}")
    old_rows.run(f"DELETE FROM intent WHERE execution_id = {gone}")
    old_rows.run(f"DELETE FROM execution WHERE execution_id = {gone}")
    old_rows.run("DELETE FROM nonce_reservation WHERE nonce = 8")
    report = audit(history_url, None)
    assert report.violations == []
    assert (report.counts["holes"], report.counts["nonces_used_elsewhere"]) == (0, 1)
