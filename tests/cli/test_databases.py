"""The database a command is pointed at: unreachable, not migrated, of another release, of another service."""

from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from executor.migration import HEAD
from tests.cli.desk import Desk, furnished

ASKING = (["apply"], ["status"], ["accounts", "--json"], ["executions"], ["show", "x"], ["trigger", "payroll"])


@pytest.mark.parametrize("command", [*ASKING, ["migrate"]], ids=lambda command: command[0])
def test_a_database_that_does_not_answer(bare: Desk, command: list[str]) -> None:
    assert "the database does not answer" in bare.fails(3, *command)


def test_a_database_that_was_never_migrated(tmp_path: Path, empty_database: str) -> None:
    desk = furnished(tmp_path, empty_database)
    for command in ASKING:
        assert "fenced migrate" in desk.fails(2, *command)
    assert "empty → 0002" in desk.fine("migrate").out
    assert "already" in desk.fine("migrate").out
    assert desk.rows("SELECT service FROM installation") == [("tests",)]
    desk.fine("apply")


@pytest.mark.parametrize(("revision", "told"), [("0000", "fenced migrate"), ("9999", "newer than this release")])
def test_a_database_of_another_release(desk: Desk, revision: str, told: str) -> None:
    desk.execute("UPDATE alembic_version SET version_num = %s", revision)
    for command in ASKING:
        assert told in desk.fails(2, *command)
    if revision > HEAD:
        assert told in desk.fails(2, "migrate")
    assert desk.rows("SELECT count(*) FROM account") == [(0,)]


def test_a_database_of_another_service(desk: Desk) -> None:
    desk.edit('name = "tests"', 'name = "others"')
    for command in (*ASKING, ["migrate"]):
        assert 'belongs to the service "tests"' in desk.fails(2, *command)
    assert desk.rows("SELECT count(*) FROM account") == [(0,)]


def test_a_database_that_belongs_to_nobody_yet(desk: Desk) -> None:
    desk.execute("UPDATE installation SET service = NULL")
    assert "fenced migrate" in desk.fails(2, "apply")
    assert "now belongs to the service tests" in desk.fine("migrate").out


def test_a_role_without_rights(desk: Desk) -> None:
    name = desk.rows("SELECT current_database()")[0][0]
    with suppress(psycopg.errors.DuplicateObject):
        desk.execute("CREATE ROLE without_rights")
    desk.execute(f'ALTER DATABASE "{name}" SET role = without_rights')
    assert "lacks a right (permission denied for table alembic_version)" in desk.fails(2, "accounts")


def test_the_doctor_looks_at_all_of_it(applied: Desk) -> None:
    run = applied.run("doctor", "--json")
    assert run.code == 3  # no endpoint answers
    verdicts = {check["name"]: check["verdict"] for check in run.json}
    assert verdicts["service"] == verdicts["identity"] == verdicts["standbys"] == verdicts["packages"] == "ok"
    assert verdicts["chain devnet 127.0.0.1:9"] == "unknown"
    assert verdicts["workers"] == "warn"
    applied.write("treasury.key", "x", 0o640)
    run = applied.run("doctor")
    assert run.code == 1
    assert "✗ key of treasury" in run.out


def test_the_doctor_names_dangerous_settings(desk: Desk) -> None:
    name = desk.rows("SELECT current_database()")[0][0]
    desk.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    run = desk.run("doctor")
    assert run.code == 1
    assert "✗ synchronous_commit: off" in run.out


def test_the_doctor_says_when_the_database_cannot_be_asked(bare: Desk) -> None:
    run = bare.run("doctor")
    assert run.code == 3
    assert "? database: the database does not answer" in run.out
