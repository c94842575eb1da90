"""COMMITs that return success with a warning: a synchronous standby is named and nobody is it, and the wait is cancelled (P12).

What was written is visible and may be lost with the primary. Nothing may go out on the strength of it.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor import triggering
from executor.crashpoints import CrashPoint
from executor.database import CommitUnknown
from tests.support.devnet import NodeProcess
from tests.support.own_server import Canceller, OwnServer
from tests.support.postgres import plain_connection
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("database-unconfirmed")]
_PATIENCE_SECONDS = 60.0
_LEASE_DROPPED = "a commit is unknown, the lease is dropped"
_LEASES_DROPPED = "a lease commit is unknown, leases dropped"


def execute(service: Service, statements: str) -> None:
    with plain_connection(service.database_url) as connection:
        connection.execute(statements.encode())


@pytest.fixture
def service(own_server: OwnServer, node: NodeProcess, tmp_path: Path) -> Iterator[Service]:
    """Nobody else's COMMIT waits: the test's own sessions ask for no standby."""
    try:
        with Service(tmp_path, node, own_server.database(), lease="2s") as service:
            service.account()
            yield service
            own_server.configure(synchronous_standby_names="")
    finally:
        own_server.configure(synchronous_standby_names="")


@pytest.fixture
def canceller(own_server: OwnServer) -> Iterator[Canceller]:
    canceller = Canceller(own_server.connect)
    yield canceller
    canceller.close()


@pytest.mark.parametrize(
    ("frozen_at", "who"),
    [
        (CrashPoint.RESERVE_PREPARED, "first"),
        (CrashPoint.SIGN_SELECTED, "first signer"),
        (CrashPoint.SIGN_JOURNALED, "first signer"),
        (CrashPoint.SIGN_SIGNED, "first"),
    ],
)
def test_nothing_goes_out_before_a_clean_commit(
    own_server: OwnServer, service: Service, canceller: Canceller, frozen_at: CrashPoint, who: str
) -> None:
    to = service.pays("rent")
    service.register()
    worker = service.start_worker("first", f"{frozen_at}:stop")
    service.wait_held_by("first")
    execution = service.trigger("rent", "one")
    worker.wait_frozen()
    own_server.configure(synchronous_standby_names="ghost")
    worker.resume()

    canceller.cancel_until(lambda: _LEASE_DROPPED in worker.log, _PATIENCE_SECONDS, "the lease is dropped")
    assert who in canceller.cancelled
    # It asks for a lease, without a clean commit.
    canceller.cancel_until(lambda: _LEASES_DROPPED in worker.log, _PATIENCE_SECONDS, "lease commits are unknown too")
    made = service.value("SELECT count(*) FROM signer.signature WHERE raw IS NOT NULL")
    assert made == (frozen_at in (CrashPoint.SIGN_JOURNALED, CrashPoint.SIGN_SIGNED))
    assert service.proxy.sent == []

    own_server.configure(synchronous_standby_names="")
    service.assert_paid_once(execution, to)
    assert service.value("SELECT max(token) FROM lease_generation") > 1


def test_a_lease_whose_acquisition_warned_is_not_worked_under(own_server: OwnServer, service: Service) -> None:
    to = service.pays("rent")
    service.register()
    execute(
        service,
        """
        CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON lease_generation DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION warn();
    """,
    )
    execution = service.trigger("rent", "one")
    worker = service.start_worker("only")
    service.wait(lambda: worker.log.count(_LEASES_DROPPED) >= 2, "acquisitions are unknown")
    assert service.state(execution) == "PENDING"
    assert "lease acquired" not in worker.log

    execute(service, "DROP TRIGGER warn ON lease_generation")

    service.assert_paid_once(execution, to)


def test_a_trigger_that_was_not_confirmed_says_so(
    own_server: OwnServer, service: Service, canceller: Canceller
) -> None:
    to = service.pays("rent")
    service.register()
    own_server.configure(synchronous_standby_names="ghost")
    said: list[str] = []

    def ask() -> None:
        try:
            triggering.trigger(service.database, "rent", key="one")
        except CommitUnknown as error:
            said.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    canceller.cancel_until(lambda: not asking.is_alive(), _PATIENCE_SECONDS, "the trigger returns")
    assert said == [
        "a COMMIT came back with a warning: canceling wait for synchronous replication due to user request."
    ]

    own_server.configure(synchronous_standby_names="")
    assert not triggering.trigger(service.database, "rent", key="one").recorded
    service.start_worker("only")
    service.assert_paid_once("rent/id/one", to)
