"""Hostile strategies and due slots: a strategy can cost its own executions and nothing else (P19, G1)."""

import statistics
from collections.abc import Callable

import pytest

from executor import operations
from tests.support.service import ETHER, Service, fresh_address

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-plans")]
Install = Callable[..., Service]
_HOSTILE = {
    "hangs": ("while True:\n    pass", "timeout"),
    "raises": ('raise ValueError("no price today")', "no price today"),
    "exits": ("os._exit(3)", "plan "),
}


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_hostile_strategies_fail_after_three_tries_and_delay_nobody(install: Install) -> None:
    service = install(plan_timeout="0.5s")
    hostile = service.account("hostile")
    service.account("treasury")
    for name, (body, _) in _HOSTILE.items():
        service.strategy(name, body, account="hostile")
    to, neighbour_to = service.pays("rent"), service.pays("neighbour", account="hostile")
    service.register()
    service.start_worker("first")
    service.start_worker("second")
    bad = {name: service.trigger(name, "one") for name in _HOSTILE}
    service.wait(lambda: all(service.execution(e)["planning_attempts"] for e in bad.values()), "they are planned")

    good = [service.trigger("rent", "one"), service.trigger("neighbour", "one")]
    service.assert_paid_once(good[0], to)
    service.assert_paid_once(good[1], neighbour_to)

    sent = max(service.attempts(execution)[0]["sent_at"] for execution in good)
    for name, execution in bad.items():
        service.wait_state(execution, "FAILED")
        row = service.execution(execution)
        assert row["ended_at"] > sent
        assert row["planning_attempts"] == 3
        assert row["reason"].startswith("plan ")
        assert _HOSTILE[name][1] in row["reason"]
    assert service.nonce(hostile.address) == 1
    assert service.account_row("hostile")["state"] == "open"


def test_each_slot_runs_once_with_two_workers(service: Service) -> None:
    service.account()
    to, value = fresh_address(), ETHER // 1000
    service.strategy("drip", f"return Call({to!r}, {value})", every="1s", misfire="skip", overlap="allow")
    service.register()
    service.start_worker("first")
    service.start_worker("second")
    succeeded = "SELECT count(*) FROM execution WHERE state = 'SUCCEEDED'"
    service.wait(lambda: service.value(succeeded) >= 4, "four slots are through")
    assert operations.pause(service.database, "drip", "enough")
    open_ones = "SELECT count(*) FROM execution WHERE ended_at IS NULL"
    service.wait(lambda: service.value(open_ones) == 0, "everything has ended")

    assert service.balance(to) == value * service.value(succeeded)
    assert service.value("SELECT count(*) = count(DISTINCT slot) FROM execution")
    assert service.value("SELECT count(*) FROM nonce_reservation") == service.value(succeeded)
    late = service.rows(
        "SELECT extract(epoch FROM sent_at - due_at)::float8 AS seconds FROM attempt"
        " JOIN nonce_reservation USING (account_id, nonce) JOIN execution USING (execution_id)"
    )
    print(
        f"slot due to accepted: median {statistics.median(row['seconds'] for row in late) * 1000:.0f} ms of {len(late)}"
    )
