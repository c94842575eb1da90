"""Asked for many times, from many places: done once (G1, G2, G2b)."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from executor import triggering
from executor.errors import Conflict
from tests.support.service import ETHER, Service, fresh_address

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-once")]
_VALUE = ETHER // 100


def test_twenty_triggers_of_one_id_are_one_run(service: Service) -> None:
    """[B10] [B83] Asked for twenty times in parallel: one reservation, one payload; then with another payload."""
    service.account()
    service.strategy("payout", 'return Call(ctx.input["to"], int(ctx.input["value"]))')
    service.register()
    service.start_pair()
    to = fresh_address()
    payload = {"to": to, "value": str(_VALUE)}

    def ask(_: int) -> triggering.Triggered:
        return triggering.trigger(service.database, "payout", key="june", payload=payload)

    with ThreadPoolExecutor(20) as callers:
        asked = list(callers.map(ask, range(20)))

    assert Counter(found.recorded for found in asked) == {True: 1, False: 19}
    (execution,) = {found.execution_id for found in asked}
    service.assert_paid_once(execution, to)
    with pytest.raises(Conflict, match="exists with another input"):
        service.trigger("payout", "june", {**payload, "value": str(2 * _VALUE)})
    service.wait_renewals()
    assert service.value("SELECT count(*) FROM execution") == 1
    assert service.value("SELECT count(*) FROM nonce_reservation") == 1


@pytest.mark.parametrize("other", ["treasury", "reserve"], ids=["one account", "two accounts"])
def test_one_invoice_wanted_by_two_strategies_is_paid_once(service: Service, other: str) -> None:
    wallets = [service.account(name) for name in sorted({"treasury", other})]
    to = fresh_address()
    body = f'return Call({to!r}, {_VALUE}, once="invoice/8812")'
    service.strategy("invoices", body, account="treasury")
    service.strategy("catch-up", body, account=other)
    service.register()
    service.start_worker("first")
    service.start_worker("second")

    wanted = [service.trigger("invoices", "june"), service.trigger("catch-up", "june")]
    for execution in wanted:
        service.wait_state(execution, "SUCCEEDED", "SKIPPED")

    paid, skipped = sorted(wanted, key=service.state, reverse=True)
    assert (service.state(paid), service.state(skipped)) == ("SUCCEEDED", "SKIPPED")
    service.assert_paid_once(paid, to)
    (attempt,) = service.attempts(paid)
    assert service.execution(skipped)["reason"] == f"already paid by {paid} in 0x{attempt['hash'].hex()}"
    assert service.reservations(skipped) == []
    assert sum(service.nonce(wallet.address) for wallet in wallets) == 1
