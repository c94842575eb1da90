"""The server takes no writes for a while, as a demoted primary does: connections are made anew, and it recovers alone [B96]."""

from pathlib import Path

import pytest

from executor.database import Database
from executor.errors import Unreachable
from tests.support.devnet import NodeProcess
from tests.support.own_server import OwnServer
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("database-read-only")]
_OLD = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'only%%' AND pid = ANY(%s)"
_PIDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('only', 'only lease')"
)


def test_a_worker_gives_up_its_lease_and_comes_back_by_itself(
    own_server: OwnServer, node: NodeProcess, tmp_path: Path
) -> None:
    with Service(tmp_path, node, own_server.database()) as service:
        service.account()
        to = service.pays("rent")
        service.register()
        worker = service.start_worker("only")
        service.wait_held_by("only")
        execution = service.trigger("rent", "one")
        service.assert_paid_once(execution, to)
        pending = service.trigger("rent", "two")
        try:
            own_server.configure(default_transaction_read_only="on")
            service.wait(lambda: "takes no writes" in worker.log, "the worker notices")
            before = [row["pid"] for row in service.rows(_PIDS)]
            free = "SELECT bool_and(expires_at <= clock_timestamp()) FROM lease"
            service.wait(lambda: service.value(free), "the lease runs out")
            service.wait(lambda: worker.log.count("leases could not be renewed") >= 3, "it goes on asking")
            assert worker.exit_code is None
            service.wait(lambda: service.value(_OLD, before) < len(before), "connections are made anew")
        finally:
            own_server.configure(default_transaction_read_only="")

        service.wait_state(pending, "SUCCEEDED")
        assert service.value("SELECT count(*) FROM execution WHERE state <> 'SUCCEEDED'") == 0
        assert service.balance(to) == 2 * 10**16
        assert '"level": "error"' not in worker.log


def test_no_connection_of_a_pool_outlives_a_refused_write(own_server: OwnServer) -> None:
    database = Database(own_server.database(), "test", pool_size=3)
    pids = "SELECT pg_backend_pid()"
    with database.read() as one, database.read() as two:
        before = {one.exec_driver_sql(pids).scalar_one(), two.exec_driver_sql(pids).scalar_one()}
    refused = pytest.raises(Unreachable, match="takes no writes")
    with refused, database.transaction() as tx:
        tx.exec_driver_sql("SET TRANSACTION READ ONLY")
        tx.exec_driver_sql("INSERT INTO worker VALUES (gen_random_uuid(), 'w', '1')")
    with database.read() as one, database.read() as two:
        assert not before & {one.exec_driver_sql(pids).scalar_one(), two.exec_driver_sql(pids).scalar_one()}
    database.close()
