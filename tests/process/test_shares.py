"""Workers that come and go: each gets its share of the accounts, and what is under way meanwhile is done once."""

import pytest

from tests.support.service import Service

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("process-shares"),
    pytest.mark.parametrize("node_kind", ["devnet"], indirect=True),
]
_HELD = "SELECT count(*) AS n FROM lease WHERE expires_at > clock_timestamp() GROUP BY holder ORDER BY holder"


def test_a_worker_that_comes_later_is_given_accounts_while_all_are_busy(service: Service) -> None:
    names = [f"account-{number}" for number in range(4)]
    for name in names:
        service.account(name)
    receivers = {name: service.pays(f"rent-{name}", account=name) for name in names}
    service.register()
    service.start_worker("first")
    service.wait_held_by("first")
    paid = {name: service.trigger(f"rent-{name}", "one") for name in names}

    service.start_worker("second")
    service.wait(lambda: [row["n"] for row in service.rows(_HELD)] == [2, 2], "both workers hold two accounts")

    for name in names:
        service.assert_paid_once(paid[name], receivers[name])
    assert service.refused() == []
    assert service.value("SELECT count(*) FROM lease_generation") == 6
