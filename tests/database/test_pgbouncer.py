"""PgBouncer in transaction mode between the workers and their database [B91, B101]: it works, and what differs is told."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from executor import doctor, embedded, migration, triggering
from executor.audit import audit
from executor.database import Database
from tests.support.debian import Unpacked, debian_package
from tests.support.devnet import NodeProcess
from tests.support.pgbouncer import PgBouncer
from tests.support.service import CHAIN_ID, Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("database-pgbouncer"), pytest.mark.timeout(240)]
_VALUE = 10**15
_BROKEN = re.compile(r"prepared statement|_pg3_|InFailedSqlTransaction|\"level\": \"error\"")


def name_of(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


@pytest.fixture(scope="module")
def package() -> Unpacked:
    package, trouble = debian_package("pgbouncer")
    if package is None:
        pytest.skip(trouble)
    return package


@pytest.fixture(scope="module")
def pgbouncer(package: Unpacked, postgres_server: embedded.Server) -> Iterator[PgBouncer]:
    """Two server connections for each database."""
    with PgBouncer(package, postgres_server, server_connections=2) as running:
        yield running


def run(
    pgbouncer: PgBouncer, node: NodeProcess, directory: Path, database_url: str, workers: int, executions: int
) -> None:
    pooled = pgbouncer.url(name_of(database_url))
    with Service(directory, node, database_url, lease="4s", worker_database_url=pooled) as service:
        names = [f"payer{number}" for number in range(workers)]
        for name in names:
            service.account(name, max_in_flight=64)
        to = {name: service.pays(f"rent-{name}", value=_VALUE, account=name) for name in names}
        service.register()
        # The first is killed later; the second freezes in its first transaction and stays so.
        running = [
            service.start_worker(f"w{number}", "record.held:stop" if number == 1 else None) for number in range(workers)
        ]
        service.wait(
            lambda: service.value("SELECT count(*) FROM lease WHERE token > 0") == workers, "leases have been taken"
        )
        database = Database(pooled, "asker", pool_size=2)
        try:
            for number in range(executions // 2):
                triggering.trigger(database, f"rent-{names[number % workers]}", key=f"n{number}")
            running[0].kill()
            for number in range(executions // 2, executions):
                service.trigger(f"rent-{names[number % workers]}", f"n{number}")
        finally:
            database.close()
        service.wait(
            lambda: service.value("SELECT count(*) FROM execution WHERE state <> 'SUCCEEDED'") == 0,
            "every execution succeeds",
            90,
        )
        paid = sum(service.balance(address) for address in to.values())
        assert paid == executions * _VALUE
        for worker in running:
            assert _BROKEN.search(worker.log) is None
            assert worker.log.count("hints are not heard, polling goes on") == 1 or worker is running[1]
        assert audit(pooled, {CHAIN_ID: [node.url]}).clean


def test_several_workers_on_few_server_connections(
    pgbouncer: PgBouncer, node: NodeProcess, tmp_path: Path, database_url: str
) -> None:
    run(pgbouncer, node, tmp_path, database_url, workers=4, executions=200)


@pytest.mark.chaos
@pytest.mark.timeout(1200)
def test_ten_workers_and_a_thousand_executions(
    package: Unpacked, postgres_server: embedded.Server, node: NodeProcess, tmp_path: Path, database_url: str
) -> None:
    with PgBouncer(package, postgres_server, server_connections=6) as pgbouncer:
        run(pgbouncer, node, tmp_path, database_url, workers=10, executions=1000)


def test_named_statements_would_break_here_and_ours_do_not(pgbouncer: PgBouncer, database_url: str) -> None:
    """The trouble is real: without what we do, the tenth execution of one statement finds another server connection."""
    name = name_of(database_url)
    plain = [psycopg.connect(pgbouncer.url(name).replace("+psycopg", ""), autocommit=True) for _ in range(8)]

    def repeat() -> None:
        for connection in plain * 20:
            connection.execute("SELECT %s::int", (1,))

    with pytest.raises(psycopg.Error, match="prepared statement"):
        repeat()
    for connection in plain:
        connection.close()
    database = Database(pgbouncer.url(name), "test")
    for _ in range(20):
        database.write(lambda tx: tx.exec_driver_sql("SELECT %s::int", (1,)).scalar_one())
    assert database.is_pooled
    database.close()


def test_a_migration_leaves_no_setting_behind(pgbouncer: PgBouncer, empty_database: str) -> None:
    migration.upgrade(pgbouncer.url(name_of(empty_database)))
    database = Database(pgbouncer.url(name_of(empty_database)), "test")
    with database.read() as tx:
        assert tx.exec_driver_sql("SHOW lock_timeout").scalar_one() == "0"
    database.close()


def test_doctor_tells_of_the_pooler(pgbouncer: PgBouncer, database_url: str, node: NodeProcess, tmp_path: Path) -> None:
    with Service(tmp_path, node, database_url) as service:
        service.account()
        service.register()
        found = {
            check.name: check for check in doctor.examine(service.config(), pgbouncer.url(name_of(database_url)), "")
        }
        assert found["connection pooler"].verdict == "ok"
        assert "prepared statements are off" in found["connection pooler"].detail
        assert "connection pooler" not in {check.name for check in doctor.examine(service.config(), database_url, "")}
