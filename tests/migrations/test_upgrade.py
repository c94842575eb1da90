"""A database of release 0.1 with rows in it comes to this release's schema, and its work goes on."""

import pytest
from alembic import command
from alembic.config import Config

from executor import migration
from executor.audit import audit
from tests.store import lifecycle
from tests.store import rows as legal
from tests.store.rows import Call, Rows
from tests.support.postgres import plain_connection


def test_a_database_of_the_first_release_keeps_its_rows_and_goes_on(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config()
    config.set_main_option("script_location", str(migration._location()))
    config.set_main_option("sqlalchemy.url", empty_database.replace("%", "%%"))
    command.upgrade(config, "0001")
    with plain_connection(empty_database) as connection:
        monkeypatch.setattr(legal, "EPOCH", 1)
        rows = Rows(connection)
        lane = rows.account(first_nonce=7)
        rows.strategy(lane)
        states = ("PENDING", "PLANNED", "RUNNING", "SUCCEEDED", "PARKED", "SKIPPED")
        ids = {state: lifecycle.arrive(rows, lane, state) for state in states}
        rows.run("INSERT INTO request (kind, account_id, why, who) VALUES ('reopen', %s, 'x', 'me')", lane.account_id)

        migration.upgrade(empty_database)
        migration.check(empty_database)
        found = connection.execute("SELECT execution_id, state FROM execution").fetchall()
        assert dict(found) == {execution_id: state for state, execution_id in ids.items()}
        with pytest.raises(Exception, match="schema epoch 1 is outside 2 to 2"), connection.transaction():
            rows.hold(lane)
        monkeypatch.setattr(legal, "EPOCH", 2)
        with connection.transaction():
            assert rows.hold(lane) == "open", "the same cluster and timeline as before"
        assert rows.value("SELECT is_moved(timeline, system_identifier) FROM account") is False
        assert rows.value("SELECT is_moved(timeline, system_identifier) FROM request") is False
        nonces = rows.reserve(lane, ids["PLANNED"])
        assert nonces == [rows.next_nonce(lane) - 1]
        planned = rows.pending(lane)
        rows.plan(lane, planned, [Call(value=3)])
        with rows.held(lane):
            rows.run(
                "UPDATE execution SET state = 'PARTIAL', ended_at = now(), resolution = '{}' WHERE execution_id = %s",
                ids["PARKED"],
            )
    report = audit(empty_database, None)
    assert [v for v in report.violations if v.promise in ("G1", "G2", "G7", "G9")] == []


def test_a_copied_database_of_the_first_release_is_noticed_after_its_upgrade(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config()
    config.set_main_option("script_location", str(migration._location()))
    config.set_main_option("sqlalchemy.url", empty_database.replace("%", "%%"))
    command.upgrade(config, "0001")
    with plain_connection(empty_database) as connection:
        monkeypatch.setattr(legal, "EPOCH", 1)
        rows = Rows(connection)
        lane = rows.account(first_nonce=7)
        rows.run("UPDATE installation SET system_identifier = 'the cluster it was made in'")
        migration.upgrade(empty_database)
        monkeypatch.setattr(legal, "EPOCH", 2)
        with connection.transaction():
            assert rows.hold(lane) == "halted"
        assert "copied to another installation" in rows.value("SELECT reason FROM account")
