"""The server has no connection left, or ends in the middle of the load as in a crash (`pg_ctl restart -m immediate`) and recovers: nothing lost, nothing twice."""

from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.support.devnet import NodeProcess
from tests.support.own_server import OwnServer
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("database-restarts"), pytest.mark.timeout(240)]
_VALUE = 10**15


def take(own_server: OwnServer, taken: ExitStack) -> bool:
    """One connection more; False when the server has none left."""
    try:
        taken.enter_context(own_server.connect())
    except psycopg.OperationalError as error:
        if "too many clients" not in str(error):
            raise
        return False
    return True


def run(own_server: OwnServer, node: NodeProcess, directory: Path, executions: int, restarts: int) -> None:
    """Two workers, four accounts; the server crashes each time some more bytes have gone out."""
    with Service(directory, node, own_server.database()) as service:
        names = [f"payer{number}" for number in range(4)]
        for name in names:
            service.account(name)
        to = {name: service.pays(f"rent-{name}", value=_VALUE, account=name) for name in names}
        service.register()
        service.start_worker("first")
        service.start_worker("second")
        service.wait(
            lambda: service.value("SELECT count(*) FROM lease WHERE holder IS NOT NULL") == 4, "leases are held"
        )
        for number in range(executions):
            service.trigger(f"rent-{names[number % 4]}", f"n{number}")
        for crash in range(1, restarts + 1):
            wanted = crash * executions // (restarts + 1)
            service.wait(lambda wanted=wanted: len(service.proxy.sent) >= wanted, "bytes go out")
            own_server.crash()
        service.wait(
            lambda: service.value("SELECT count(*) FROM execution WHERE state <> 'SUCCEEDED'") == 0,
            "every execution succeeds",
            90,
        )
        assert [service.balance(to[name]) for name in names] == [executions // 4 * _VALUE] * 4
        assert service.value("SELECT count(*) FROM attempt") == executions


def test_a_server_that_crashes_in_mid_load_loses_nothing(
    own_server: OwnServer, node: NodeProcess, tmp_path: Path
) -> None:
    run(own_server, node, tmp_path, executions=40, restarts=2)


def test_leases_stay_while_the_server_has_no_connection_left(
    own_server: OwnServer, node: NodeProcess, tmp_path: Path
) -> None:
    """[B98] Renewal has a connection of its own, open from the start."""
    with Service(tmp_path, node, own_server.database()) as service, ExitStack() as stack:
        service.account()
        to = service.pays("rent", value=_VALUE)
        service.register()
        worker = service.start_worker("only")
        service.wait_held_by("only")
        service.wait_state(service.trigger("rent", "one"), "SUCCEEDED")
        taken = ExitStack()
        stack.push(taken)
        while take(own_server, taken):
            pass
        begun = [service.trigger("rent", f"n{number}") for number in range(8)]
        service.wait_renewals(3)
        assert worker.exit_code is None
        taken.close()
        for execution in begun:
            service.wait_state(execution, "SUCCEEDED")
        assert service.balance(to) == 9 * _VALUE
        assert service.value("SELECT count(*) FROM lease_generation") == 1


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_server_that_crashes_again_and_again_loses_nothing(
    own_server: OwnServer, node: NodeProcess, tmp_path: Path
) -> None:
    run(own_server, node, tmp_path, executions=400, restarts=20)
