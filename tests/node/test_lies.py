"""Nodes that lie: success and foreign use are never concluded from one inconsistent view, nor from one liar of several (G9, G10)."""

from collections.abc import Callable
from typing import Any

import pytest

from executor import operations
from tests.process.conftest import BOTH
from tests.support.proxy_script import SEND, Rule, on
from tests.support.service import Service, Wallet

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("node-lies")]
Install = Callable[..., Service]
_RECEIPT = "eth_getTransactionReceipt"
_COUNT = "eth_getTransactionCount"


@pytest.mark.parametrize(
    "forged",
    [{"blockHash": "0x" + "77" * 32}, {"blockNumber": "0x0"}, {"transactionHash": "0x" + "77" * 32}],
    ids=["a block nobody has", "another height", "another transaction"],
)
def test_a_forged_receipt_is_not_believed(install: Install, forged: dict[str, str]) -> None:
    service = install()
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    lie = on(_RECEIPT).forge(lambda true: true and true | forged)
    service.proxy.script(lie)
    execution = service.trigger("rent", "one")
    service.wait(lambda: service.balance(to), "it is mined")
    seen = lie.fired
    service.wait(lambda: lie.fired > seen + 5, "the forged receipt is looked at again and again")
    assert service.state(execution) == "RUNNING"
    assert service.attempts(execution)[0]["status"] == "SENT"
    assert service.rows("SELECT FROM receipt") == []
    service.proxy.script()

    service.assert_paid_once(execution, to)


def test_a_receipt_that_vanishes_is_neither_success_nor_a_stranger(install: Install) -> None:
    service = install(on_order=True)
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    execution = service.trigger("rent", "one")
    service.wait(lambda: service.proxy.sent, "it is sent")
    service.mine(1)
    service.wait_attempt(execution, "MINED")
    service.proxy.script(gone := on(_RECEIPT).answer(None))
    service.mine(3)
    service.wait(lambda: gone.fired >= 1, "the receipt is gone when it should be final")
    service.wait_renewals()
    assert (service.state(execution), service.attempts(execution)[0]["status"]) == ("RUNNING", "MINED")
    assert service.reservations(execution)[0]["state"] == "OPEN"
    service.proxy.script()
    service.mine(1)

    service.assert_paid_once(execution, to)


def pretends_mined(service: Service, wallet: Wallet) -> list[Rule]:
    """A provider that takes bytes, tells nobody, and shows them mined in the newest block but two."""

    def receipt(_: Any) -> dict[str, Any]:
        head = int(service.node.rpc("eth_blockNumber"), 16)
        block = service.node.rpc("eth_getBlockByNumber", hex(head - 2), False)
        (attempt,) = service.rows("SELECT hash FROM attempt")
        return {
            "transactionHash": "0x" + attempt["hash"].hex(),
            "blockNumber": block["number"],
            "blockHash": block["hash"],
            "status": "0x1",
            "gasUsed": "0x5208",
            "effectiveGasPrice": "0x1",
        }

    mine = on(_COUNT).param(0, wallet.address).forge(lambda _: "0x1")
    return [on(SEND).forget(), on(_RECEIPT).forge(receipt), mine]


@pytest.mark.parametrize("liar", [0, 1], ids=["the first lies", "the second lies"])
def test_one_liar_of_two_makes_no_success(install: Install, liar: int) -> None:
    service = install(on_order=True, endpoints=2)
    wallet = service.account()
    to = service.pays("rent")
    service.mine(5)
    service.register()
    service.start_worker("only")
    service.wait(lambda: service.account_row()["first_nonce"] == 0, "the account has begun")
    for proxy in service.proxies:
        proxy.script(on(SEND).forget())
    execution = service.trigger("rent", "one")
    service.wait_attempt(execution, "SENT")
    service.proxies[liar].script(*pretends_mined(service, wallet))
    service.mine(1)
    if liar == 0:
        service.wait(lambda: "contradicts" in (service.account_row()["attention"] or ""), "the contradiction is told")
    service.mine(3)
    service.wait_renewals()
    assert service.state(execution) == "RUNNING"
    assert service.reservations(execution)[0]["state"] == "OPEN"
    assert service.balance(to) == 0
    for proxy in service.proxies:
        proxy.script()
    before = len(service.proxy.sent)
    service.wait(lambda: len(service.proxy.sent) > before or service.mine(1), "the bytes go out again")
    service.mine(4)

    service.assert_paid_once(execution, to)


def test_one_liar_of_two_makes_no_stranger(install: Install) -> None:
    """It counts our nonce as used and shows no receipt: with another endpoint's word against it, nothing is PARKED."""
    service = install(on_order=True, endpoints=2)
    wallet = service.account()
    to = service.pays("rent")
    service.mine(5)
    service.register()
    service.start_worker("only")
    service.wait(lambda: service.account_row()["first_nonce"] == 0, "the account has begun")
    for proxy in service.proxies:
        proxy.script(on(SEND).forget())
    execution = service.trigger("rent", "one")
    service.wait_attempt(execution, "SENT")
    lie = on(_COUNT).param(0, wallet.address).forge(lambda _: "0x1")
    service.proxies[0].script(on(SEND).forget(), on(_RECEIPT).answer(None), lie)
    service.mine(1)
    before = service.account_row()["reconciled_at"]
    service.wait(lambda: service.account_row()["reconciled_at"] > before, "everything is compared again")
    service.wait_renewals(1)
    assert service.state(execution) == "RUNNING"
    assert service.reservations(execution)[0]["closed_as"] is None
    for proxy in service.proxies:
        proxy.script()
    service.wait(lambda: any(item.forwarded for item in service.proxy.sent), "the bytes reach the node")
    service.mine(4)

    service.assert_paid_once(execution, to)


@pytest.mark.parametrize("late", [0, 1], ids=["the first is late", "the second is late"])
def test_a_provider_that_is_behind_holds_nothing_up(install: Install, late: int) -> None:
    service = install(endpoints=2)
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxies[late].script(on().stale(4))

    service.assert_paid_once(service.trigger("rent", "one"), to)


@pytest.mark.parametrize("node_kind", BOTH, indirect=True)
def test_another_chain_behind_the_endpoint_halts_the_account(install: Install) -> None:
    """P15. Asking to open it is refused until the right chain is back."""
    service = install()
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.assert_paid_once(service.trigger("rent", "one"), to)
    service.proxy.script(on("eth_chainId").answer("0x1"))
    sent = len(service.proxy.sent)
    execution = service.trigger("rent", "two")
    service.wait(lambda: service.account_row()["state"] == "halted", "the account is halted")
    assert "serves chain 1" in service.account_row()["reason"]

    asked = operations.ask_reopen(service.database, "treasury", "it is fine", "operator")
    assert asked.request_id is not None
    refused = operations.wait_for_answer(service.database, asked.request_id, 30)
    assert refused is not None
    assert "serves chain 1" in refused.text
    assert len(service.proxy.sent) == sent
    service.proxy.script()
    asked = operations.ask_reopen(service.database, "treasury", "the endpoint is right again", "operator")
    assert asked.request_id is not None
    assert operations.wait_for_answer(service.database, asked.request_id, 30) is not None
    service.wait_state(execution, "SUCCEEDED", "PARKED")
    assert service.state(execution) == "SUCCEEDED"
    assert service.balance(to) == 2 * 10**16
