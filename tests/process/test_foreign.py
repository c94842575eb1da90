"""The key is used elsewhere: noticed, said, and never papered over (G9, P5, P15)."""

from collections.abc import Callable

import pytest

from tests.support.service import Service, Wallet, fresh_address

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-foreign")]
Install = Callable[..., Service]


def use_elsewhere(service: Service, wallet: Wallet, nonce: int) -> str:
    """Send a transaction behind the executor's back; its hash."""
    return str(service.node.rpc("eth_sendRawTransaction", "0x" + wallet.sign(nonce, fresh_address()).hex()))


def test_an_account_with_pending_transactions_of_others_waits_for_them(install: Install) -> None:
    service = install(on_order=True)
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    use_elsewhere(service, wallet, 0)
    service.start_worker("only")
    execution = service.trigger("rent", "one")
    service.wait_state(execution, "PLANNED")
    service.wait(lambda: service.account_row()["attention"], "the account asks for attention")
    service.wait_renewals()

    assert "pending transactions of unknown origin" in service.account_row()["attention"]
    assert service.rows("SELECT FROM nonce_reservation") == []
    assert service.proxy.sent == []
    service.mine(1)
    service.wait(lambda: service.proxy.sent, "it starts")
    service.mine(3)
    service.assert_paid_once(execution, to)
    assert service.account_row()["first_nonce"] == 1
    assert service.account_row()["attention"] is None


def _halts_without_sending(service: Service, wallet: Wallet) -> None:
    """The second payment of an account whose nonce 1 was used elsewhere."""
    execution = service.trigger("rent", "two")
    service.wait(lambda: service.account_row()["state"] == "halted", "the account is halted")
    service.wait_renewals()

    assert "the key was used elsewhere" in service.account_row()["reason"]
    assert service.state(execution) in {"PENDING", "PLANNED"}
    assert service.reservations(execution) == []
    assert {nonce for _, nonce in service.proxy.raws_by_nonce()} == {0}
    assert service.nonce(wallet.address) == 2


def test_a_key_used_elsewhere_while_idle_halts_the_account(service: Service) -> None:
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.assert_paid_once(service.trigger("rent", "one"), to)
    use_elsewhere(service, wallet, 1)
    service.wait(lambda: service.nonce(wallet.address) == 2, "the other transaction is mined")

    _halts_without_sending(service, wallet)


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_a_key_used_elsewhere_while_frozen_halts_the_account(service: Service) -> None:
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    only = service.start_worker("only")
    service.assert_paid_once(service.trigger("rent", "one"), to)
    only.pause()
    use_elsewhere(service, wallet, 1)
    service.wait(lambda: service.nonce(wallet.address) == 2, "the other transaction is mined")
    service.wait(lambda: service.value("SELECT expires_at < clock_timestamp() FROM lease"), "the lease expires")
    only.resume()

    _halts_without_sending(service, wallet)


def test_a_nonce_of_ours_used_elsewhere_is_closed_with_evidence_and_the_account_goes_on(install: Install) -> None:
    service = install(on_order=True)
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.refuse_sends()
    robbed = service.trigger("rent", "one")
    service.wait(lambda: service.proxy.sent, "the bytes are sent, in vain")
    other = use_elsewhere(service, wallet, 0)
    service.mine(1)
    number = int(service.node.rpc("eth_getTransactionReceipt", other)["blockNumber"], 16)
    service.wait_renewals()
    assert service.state(robbed) == "RUNNING"  # not final: it may still be ours

    service.mine(3)
    service.wait_state(robbed, "PARKED")
    service.proxy.allow_sends()
    (closed,) = service.reservations(robbed)
    assert (closed["closed_as"], "0x" + closed["foreign_hash"].hex()) == ("foreign", other)
    assert closed["witness_number"] >= number
    assert [item["hash"] for item in service.execution(robbed)["evidence"]] == [other]
    assert service.account_row()["state"] == "open"

    following = service.trigger("rent", "two")
    service.wait(lambda: service.proxy.raws_by_nonce(forwarded=True), "the next payment is sent")
    service.mine(3)
    service.assert_paid_once(following, to)
    assert service.reservations(following)[0]["nonce"] == 1
