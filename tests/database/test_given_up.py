"""The database gives transactions up: serialization failures, deadlocks, timeouts. Only the transaction is tried again [B99]."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from executor import operations, registration
from executor.database import Busy, CommitUnknown, Database
from tests.support.devnet import NodeProcess
from tests.support.postgres import plain_connection
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("database-given-up")]
_TABLES = (
    "strategy", "execution", "intent", "nonce_reservation", "attempt", "broadcast", "receipt", "account", "lease",
    "lease_generation", "worker", "request", "history", "signer.account", "signer.binding", "signer.signature",
)  # fmt: skip
_FAULT = """
CREATE SEQUENCE faults_{name};
CREATE FUNCTION fault_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('faults_{name}') <= {times} THEN {what}; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER fault AFTER INSERT OR UPDATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION fault_{name}();
"""


def raising(sqlstate: str) -> str:
    return f"RAISE EXCEPTION USING ERRCODE = '{sqlstate}', MESSAGE = 'planted {sqlstate}'"


def plant(service: Service, table: str, what: str, times: int = 3) -> None:
    """The first `times` statements on `table` do `what`. A sequence counts, which no rollback takes back."""
    name = table.replace(".", "_")
    with plain_connection(service.database_url) as connection:
        connection.execute(_FAULT.format(name=name, table=table, what=what, times=times).encode())


def by_default(service: Service, setting: str) -> None:
    """For sessions that begin from now on."""
    with plain_connection(service.database_url) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {setting}".encode())


def be_serializable(service: Service) -> None:
    """What our transactions are is stated by us, whatever the database's default is."""
    by_default(service, "default_transaction_isolation = 'serializable'")


def met(service: Service, table: str) -> int:
    """How many statements on `table` there were."""
    return int(service.value(f"SELECT last_value FROM faults_{table.replace('.', '_')} WHERE is_called") or 0)


@pytest.fixture
def service(database_url: str, node: NodeProcess, tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path, node, database_url) as service:
        service.account()
        yield service


@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
def test_three_given_up_statements_on_every_table_lose_nothing(service: Service, sqlstate: str) -> None:
    to = service.pays("rent")
    service.strategy("clock", "return nothing('only the slots matter')", every="1s", misfire="all")
    service.register()
    be_serializable(service)
    for table in _TABLES:
        plant(service, table, raising(sqlstate))

    execution = service.trigger("rent", "one")  # a person's trigger does not fail because of it
    service.start_worker("only")

    service.assert_paid_once(execution, to)
    service.wait(lambda: service.value("SELECT count(*) FROM execution WHERE state = 'SKIPPED'"), "slots are looked at")
    assert operations.pause(service.database, "clock", "enough")
    assert operations.halt(service.database, "treasury", "enough", drain=True)
    assert operations.ask_reopen(service.database, "treasury", "go on", "test").request_id is not None
    assert {table for table in _TABLES if met(service, table) < 4} == set()
    assert len({sent.raw for sent in service.proxy.sent}) == 1


@pytest.mark.parametrize("workers", [2, pytest.param(16, marks=[pytest.mark.chaos, pytest.mark.timeout(600)])])
def test_many_askers_at_once_on_one_account_are_all_recorded(service: Service, workers: int) -> None:
    to = service.pays("rent", value=1)
    service.register()
    be_serializable(service)
    for number in range(workers):
        service.start_worker(f"w{number}")
    with ThreadPoolExecutor(16) as pool:
        executions = list(pool.map(lambda number: service.trigger("rent", f"n{number}"), range(48)))
    for execution in executions:
        service.wait_state(execution, "SUCCEEDED")
    assert service.balance(to) == len(executions)


def test_apply_is_tried_again_too(service: Service) -> None:
    service.pays("rent")
    service.register()
    service.pays("wages")
    service.config_file.write_text("\n\n".join(service._sections) + "\n")
    plant(service, "strategy", raising("40P01"))
    assert [change.name for change in registration.apply(service.database, service.config()) if change.done] == [
        "wages"
    ]


def test_a_serialization_failure_at_commit_is_given_up_and_not_unknown(database_url: str) -> None:
    with plain_connection(database_url) as connection:
        connection.execute("""
            CREATE SEQUENCE commits;
            CREATE TABLE promise (kept int);
            CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
              IF nextval('commits') <= 3 THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF; RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON promise DEFERRABLE INITIALLY DEFERRED
              FOR EACH ROW EXECUTE FUNCTION at_commit();
        """)
    database = Database(database_url, "test")
    with pytest.raises(Busy), database.transaction() as tx:
        tx.exec_driver_sql("INSERT INTO promise VALUES (1)")
    database.write(lambda tx: tx.exec_driver_sql("INSERT INTO promise VALUES (2)"))
    with database.read() as tx:
        assert tx.exec_driver_sql("SELECT kept FROM promise").scalars().all() == [2]
    database.close()


def test_a_statement_that_failed_and_was_passed_over_commits_nothing(database_url: str) -> None:
    database = Database(database_url, "test")
    passed_over = pytest.raises(CommitUnknown, match="a failed statement was passed over")
    with passed_over, database.transaction() as tx, contextlib.suppress(DBAPIError):
        tx.exec_driver_sql("SELECT 1 / 0")
    database.close()


def test_a_role_with_a_short_statement_timeout_is_told_and_loses_nothing(service: Service) -> None:
    to = service.pays("rent")
    service.register()
    by_default(service, "statement_timeout = '300ms'")
    for table in ("intent", "nonce_reservation", "attempt", "signer.binding"):
        plant(service, table, "PERFORM pg_sleep(5)", times=6)
    execution = service.trigger("rent", "one")
    worker = service.start_worker("only")
    service.assert_paid_once(execution, to)
    service.wait(lambda: "canceling statement due to statement timeout" in worker.log, "it is told")


def test_a_role_with_a_short_idle_limit_is_told_and_loses_nothing(service: Service) -> None:
    to = service.pays("rent")
    service.register()
    worker = service.start_worker("only", "record.held:stop")
    service.wait_held_by("only")
    execution = service.trigger("rent", "one")
    worker.wait_frozen()
    # Not any transaction: another thread may be frozen between its BEGIN and the statement that limits it.
    ended = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()"
    ended += " AND query LIKE 'SELECT hold(%%'"
    service.wait(lambda: service.value(ended) == 0, "the server has ended the frozen transaction")
    worker.resume()
    service.assert_paid_once(execution, to)
    assert "idle-in-transaction timeout" in worker.log
