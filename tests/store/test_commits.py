"""A COMMIT is believed only when it came back clean (P12), and refusals arrive under their names."""

from collections.abc import Iterator

import psycopg
import pytest

from executor.database import CommitUnknown, Database, FenceRefused, Refused, Rows
from executor.errors import StaleState, Unreachable
from tests.store.conftest import Connect
from tests.store.rows import Lane

_AT_COMMIT = """
CREATE TABLE promise (kept int);
CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON promise DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit();
"""


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url, "test")
    yield database
    database.close()


def test_a_commit_that_warns_is_unknown(database: Database, connect: Connect) -> None:
    connect().execute(_AT_COMMIT.format(what="RAISE WARNING 'canceling wait for synchronous replication'"))
    with pytest.raises(CommitUnknown, match="canceling wait for synchronous replication"), database.transaction() as tx:
        tx.exec_driver_sql("INSERT INTO promise VALUES (1)")


def test_a_commit_whose_connection_breaks_is_unknown_and_the_next_one_works(
    database: Database, connect: Connect
) -> None:
    connect().execute(_AT_COMMIT.format(what="PERFORM pg_terminate_backend(pg_backend_pid())"))
    with pytest.raises(CommitUnknown, match="a COMMIT did not answer"), database.transaction() as tx:
        tx.exec_driver_sql("INSERT INTO promise VALUES (1)")
    with database.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM promise").scalar_one() == 0


def test_a_warning_before_the_commit_is_not_about_the_commit(database: Database) -> None:
    with database.transaction() as tx:
        tx.exec_driver_sql("DO $$ BEGIN RAISE WARNING 'something else'; END $$")


def test_a_lost_connection_before_the_commit_is_unreachable(database: Database, connect: Connect) -> None:
    def lose() -> None:
        with database.transaction() as tx:
            pid = tx.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            connect().execute("SELECT pg_terminate_backend(%s)", (pid,))
            tx.exec_driver_sql("SELECT 1")

    with pytest.raises(Unreachable, match="the database does not answer"):
        lose()


def test_refusals_carry_their_constraint(database: Database, lane: Lane) -> None:
    with pytest.raises(FenceRefused) as stale, database.hold(lane.account_id, lane.token + 1, lane.lease_id):
        pass
    assert stale.value.constraint == "fence_current"
    with pytest.raises(Refused) as refused, database.transaction() as tx:
        tx.exec_driver_sql("DELETE FROM lease")
    assert refused.value.constraint == "lease_kept"


def test_a_row_somebody_else_works_on_is_stale_not_waited_for(database: Database, lane: Lane, connect: Connect) -> None:
    other: psycopg.Connection[tuple[object, ...]] = connect()
    with other.transaction():
        other.execute("SELECT 1 FROM account WHERE account_id = %s FOR UPDATE", (lane.account_id,))
        with (
            pytest.raises(StaleState, match="busy with rows of account"),
            database.hold(lane.account_id, lane.token, lane.lease_id),
        ):
            pass


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (
            "text",
            ["plain", None, "", "NULL", 'quo"te', "back\\slash", "a,b{c}", "line\nbreak", " padded ", "ünïcode 💸"],
        ),
        ("bytea", [b"", b"\x00\xff", None, bytes(range(256))]),
        ("uint256", [0, 1, None, 2**256 - 1]),
        ("bigint", [0, -(2**63), 2**63 - 1, None]),
        ("bool", [True, False, None]),
        ("float8", [0.1, 1e300, None]),
    ],
)
def test_a_batch_arrives_exactly_as_it_was_given(database: Database, kind: str, values: list[object]) -> None:
    import sqlalchemy as sa

    rows = Rows(value=kind)
    with database.read() as tx:
        found = tx.execute(sa.text(f"SELECT value FROM {rows.sql}"), rows.bind([{"value": value} for value in values]))
        assert [bytes(v) if isinstance(v, memoryview) else v for v in found.scalars()] == values


@pytest.mark.parametrize("value", [1.0, True, "1", 2**256, -1])
def test_what_is_no_uint256_never_reaches_the_database(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        Rows(value="uint256").bind([{"value": value}])
