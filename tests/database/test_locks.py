"""Somebody else's transaction holds our rows, or ours is frozen in one: waits end, are told, and other accounts go on [B93, B97, B98]."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from executor import triggering
from executor.crashpoints import CrashPoint
from executor.database import Busy
from tests.support.devnet import NodeProcess, start_devnet
from tests.support.postgres import plain_connection
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("database-locks"), pytest.mark.timeout(180)]
_IDLE = (
    "SELECT pid, xact_start FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
    " AND application_name = ANY(%s)"
)


@pytest.fixture
def service(database_url: str, node: NodeProcess, tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path, node, database_url) as service:
        yield service


def locking(service: Service, *statements: str) -> psycopg.Connection:
    """Somebody at a prompt who has begun a transaction and left."""
    session = plain_connection(service.database_url)
    session.autocommit = False
    session.execute("SET application_name = 'psql'")
    for statement in statements:
        session.execute(statement.encode())
    return session


def test_rows_somebody_holds_stop_only_what_needs_them_and_are_told(service: Service) -> None:
    names = ["a", "b", "c", "d"]
    for name in names:
        service.account(name)
    to = {name: service.pays(f"rent-{name}", account=name) for name in names}
    for name in ("a", "d"):
        service.strategy(
            f"clock-{name}", "return nothing('only the slots matter')", account=name, every="1s", misfire="skip"
        )
    service.register()
    first = service.start_worker("first")
    service.wait_held_by("first")
    with locking(
        service,
        "SELECT FROM account WHERE name = 'a' FOR UPDATE",
        "SELECT FROM lease JOIN account USING (account_id) WHERE name = 'b' FOR UPDATE OF lease",
        "SELECT FROM strategy WHERE name = 'rent-c' FOR UPDATE",
    ) as session:
        first.kill()
        second = service.start_worker("second")
        begun = service.value("SELECT clock_timestamp()")
        with pytest.raises(Busy, match="with rows of strategy"):
            triggering.trigger(service.database, "rent-c", key="one")

        service.assert_paid_once(service.trigger("rent-d", "one"), to["d"])
        slots = "SELECT count(*) FROM execution WHERE strategy = 'clock-d' AND slot > %s"
        service.wait(lambda: service.value(slots, begun) >= 2, "other strategies' slots are looked at")
        service.wait(lambda: "rows are held for long" in second.log, "it is told")
        told = next(line for line in second.log.splitlines() if "rows are held for long" in line)
        assert "psql (process" in told
        assert "holds rows of account, lease, strategy for" in told
        session.rollback()

    for name in ("a", "b", "c"):
        service.assert_paid_once(service.trigger(f"rent-{name}", "one"), to[name])


def test_a_worker_frozen_with_the_account_locked_stops_nobody(service: Service) -> None:
    service.account()
    to = service.pays("rent")
    service.register()
    first = service.start_worker("first", f"{CrashPoint.RECORD_HELD}:stop")
    first.wait_frozen()
    service.start_worker("second")

    service.assert_paid_once(service.trigger("rent", "one"), to)

    first.resume()
    service.wait(lambda: "idle-in-transaction timeout" in first.log, "the thawed one finds its connection ended")


def test_no_transaction_of_ours_is_open_while_a_node_or_a_key_is_asked(database_url: str, tmp_path: Path) -> None:
    with start_devnet("--block-time", "0.3") as node, Service(tmp_path, node, database_url) as service:
        service.account()
        to = service.pays("rent")
        service.register()
        worker = service.start_worker("only", f"{CrashPoint.SIGN_JOURNALED}:stop")
        service.wait_held_by("only")
        execution = service.trigger("rent", "one")
        worker.wait_frozen()
        assert service.rows(_IDLE, ["only", "only signer"]) == []
        worker.resume()
        service.assert_paid_once(execution, to)

        node.process.send_signal(signal.SIGSTOP)
        try:
            execution = service.trigger("rent", "two")
            counted = "SELECT planning_attempts + 1 FROM execution WHERE execution_id = %s"
            seen: set[tuple[Any, ...]] = set()
            for _ in range(3):
                # Renewals are work that goes on: what is idle in the same transaction across one waits for the node.
                now = {tuple(row.values()) for row in service.rows(_IDLE, ["only", "only signer", "only lease"])}
                assert not now & seen
                seen |= now
                service.wait_renewals(1)
            assert service.value(counted, execution) is not None
        finally:
            node.process.send_signal(signal.SIGCONT)
        service.wait_state(execution, "SUCCEEDED")
        assert service.balance(to) == 2 * 10**16


def test_leases_stay_while_slow_writes_take_every_thread(service: Service) -> None:
    names = [f"payer{number}" for number in range(20)]
    for name in names:
        service.account(name)
    to = {name: service.pays(f"rent-{name}", account=name) for name in names}
    service.register()
    with plain_connection(service.database_url) as connection:
        connection.execute(b"""
            CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(5); RETURN NULL; END $$;
            CREATE TRIGGER slow AFTER INSERT ON intent FOR EACH STATEMENT EXECUTE FUNCTION slow();
        """)
    worker = service.start_worker("only")
    service.wait_held_by("only")
    executions = {name: service.trigger(f"rent-{name}", "one") for name in names}
    for name in names:
        service.assert_paid_once(executions[name], to[name])
    assert service.value("SELECT count(*) FROM lease_generation") == len(names)
    assert "lease lost" not in worker.log
