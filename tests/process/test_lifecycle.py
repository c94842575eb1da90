"""Starting, ending, halting, reopening, and a database that drops its connections."""

from collections.abc import Callable

import pytest

from executor import operations
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-lifecycle")]
Install = Callable[..., Service]
_DISCONNECT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> 'test'
"""


def test_sigterm_hands_the_accounts_over_at_once(install: Install) -> None:
    service = install(lease="30s")
    service.account()
    to = service.pays("rent")
    service.register()
    first, _ = service.start_pair(fresh=True)
    service.assert_paid_once(service.trigger("rent", "one"), to)
    first.terminate()

    service.wait_held_by("second", seconds=10)  # an expiry would take 30 s

    assert first.wait_ended() == 0
    handed = service.rows("SELECT at FROM lease_generation ORDER BY token")
    stopped = service.value("SELECT stopped_at FROM worker WHERE name = 'first'")
    print(f"taken over {(handed[1]['at'] - stopped).total_seconds():.3f} s after the release")
    following = service.trigger("rent", "two")
    service.wait_state(following, "SUCCEEDED")
    assert service.reservations(following)[0]["token"] == 2


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_sigterm_in_the_middle_of_a_payment_repeats_nothing(service: Service) -> None:
    service.account()
    to = service.pays("rent")
    service.register()
    first, _ = service.start_pair("sign.stored:stop")
    execution = service.trigger("rent", "one")
    first.wait_frozen()
    first.terminate()
    first.resume()

    service.assert_paid_once(execution, to)
    assert first.wait_ended() == 0


def test_halted_nothing_is_reserved_until_it_is_reopened(service: Service) -> None:
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_pair()
    assert operations.halt(service.database, "treasury", "an audit", drain=False)
    execution = service.trigger("rent", "one")
    service.wait_renewals(3)
    assert service.state(execution) == "PENDING"
    assert service.rows("SELECT FROM nonce_reservation") == []

    asked = operations.ask_reopen(service.database, "treasury", "the audit is over", "test")

    answer = "SELECT granted FROM request WHERE request_id = %s AND answered_at IS NOT NULL"
    service.wait(lambda: service.value(answer, asked.request_id), "the holder opens the account")
    service.assert_paid_once(execution, to)


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_what_was_sent_before_a_halt_ends_as_usual(install: Install) -> None:
    service = install(on_order=True)
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    execution = service.trigger("rent", "one")
    service.wait_attempt(execution, "SENT")
    assert operations.halt(service.database, "treasury", "an alarm", drain=False)
    waiting = service.trigger("rent", "two")

    service.mine(3)

    service.assert_paid_once(execution, to)
    assert service.state(waiting) == "PENDING"


def test_dropped_database_connections_lose_and_repeat_nothing(service: Service) -> None:
    service.account()
    receivers = [service.pays(f"rent-{number}") for number in range(4)]
    service.register()
    service.start_pair()
    executions = [service.trigger(f"rent-{number}", "one") for number in range(4)]
    for milestone in (
        "SELECT 1 FROM execution WHERE state <> 'PENDING'",
        "SELECT 1 FROM nonce_reservation",
        "SELECT 1 FROM attempt WHERE raw IS NOT NULL",
        "SELECT 1 FROM attempt WHERE status = 'MINED'",
    ):
        service.wait(lambda sql=milestone: service.value(sql) or _all_ended(service), milestone)
        assert service.rows(_DISCONNECT)

    for execution, to in zip(executions, receivers, strict=True):
        service.assert_paid_once(execution, to)
    assert all(worker.exit_code is None for worker in service.workers)


def _all_ended(service: Service) -> bool:
    return service.value("SELECT bool_and(ended_at IS NOT NULL) FROM execution") is True


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_a_worker_the_schema_has_outgrown_gives_its_leases_back_and_ends(service: Service) -> None:
    service.account()
    service.pays("rent")
    service.register()
    worker = service.start_worker("first")
    service.wait_held_by("first")
    service.rows("UPDATE installation SET epoch_min = 3, epoch_max = 3 RETURNING epoch_min")
    service.trigger("rent", "one")
    assert worker.wait_ended() == 2
    assert service.value("SELECT count(*) FROM lease WHERE expires_at > clock_timestamp()") == 0
    assert service.value("SELECT count(*) FROM nonce_reservation") == 0
    service.rows("UPDATE installation SET epoch_min = 2, epoch_max = 2 RETURNING epoch_min")


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_an_account_goes_to_a_worker_with_the_revision_that_is_due(service: Service) -> None:
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("old")
    service.wait_held_by("old")
    module = service.directory / "rent.py"
    module.write_text(module.read_text() + "\n# a new revision\n")
    service.register()
    service.start_worker("new")
    execution = service.trigger("rent", "one")

    service.assert_paid_once(execution, to)
    planner = service.value(
        "SELECT holder FROM execution JOIN lease_generation USING (account_id, token) WHERE execution_id = %s",
        execution,
    )
    assert planner == "new", "the old one released the account and stayed away (P18b)"


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_an_account_nobody_could_plan_for_goes_to_a_worker_that_comes_later(service: Service) -> None:
    """The old one has taken it again meanwhile, to settle; it does not keep it from the right one for ever."""
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("old")
    service.wait_held_by("old")
    module = service.directory / "rent.py"
    module.write_text(module.read_text() + "\n# a new revision\n")
    service.register()
    execution = service.trigger("rent", "one")
    service.wait(lambda: service.value("SELECT max(token) FROM lease_generation") == 2, "the old one takes it again")
    service.start_worker("new")

    service.assert_paid_once(execution, to)
