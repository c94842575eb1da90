"""A node's answer, read wrongly by others (area C of the bug log): no word of a node ends an execution or a provider."""

from collections.abc import Callable

import pytest

from tests.support.proxy_script import SEND, on
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("node-answers")]
Install = Callable[..., Service]
_KNOWN = [
    "already known",
    "known transaction: 0x12",
    "Transaction with the same hash was already imported",
    "AlreadyKnown",
    "ALREADY_EXISTS: already known",
    "tx already in mempool",
]


def test_already_known_in_all_its_words_is_accepted(install: Install) -> None:
    """[B24]"""
    service = install(on_order=True, rebroadcast="0.1s")
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    execution = service.trigger("rent", "one")
    service.wait_attempt(execution, "SENT")
    said = [on(SEND).times(1).error(-32000, words) for words in _KNOWN]
    service.proxy.script(*said)
    service.wait(lambda: all(rule.fired for rule in said), "all six were said")
    count = "SELECT sum(count) FROM broadcast WHERE verdict = 'already known'"
    service.wait(lambda: (service.value(count) or 0) >= len(_KNOWN), "all six are recorded")
    assert set(service.verdicts(execution)) == {"accepted", "already known"}
    assert (service.state(execution), service.attempts(execution)[0]["status"]) == ("RUNNING", "SENT")

    service.mine(3)
    service.assert_paid_once(execution, to)


def test_a_correct_refusal_disables_no_provider(install: Install) -> None:
    """[B26] Three providers say "nonce too low" of one sender's bytes under -32603, and are healthy for another's."""
    service = install(endpoints=3)
    unlucky, _ = service.account("unlucky"), service.account("lucky")
    to, other = service.pays("rent", account="unlucky"), service.pays("wages", account="lucky")
    service.register()
    service.start_worker("only")
    for proxy in service.proxies:
        proxy.script(on(SEND).sender(unlucky.address_bytes).error(-32603, "Transaction nonce too low"))
    refused = service.trigger("rent", "one")
    service.wait(lambda: set(service.verdicts(refused)) == {"nonce too low"}, "all three refuse")
    sent = [len(proxy.sent) for proxy in service.proxies]
    paid = service.trigger("wages", "one")

    service.assert_paid_once(paid, other)
    service.wait(
        lambda: all(len(p.sent) > n + 1 for p, n in zip(service.proxies, sent, strict=True)), "all are still asked"
    )
    assert service.state(refused) == "RUNNING"
    assert service.account_row("unlucky")["state"] == "open"
    for proxy in service.proxies:
        proxy.script()
    service.assert_paid_once(refused, to)


def test_bytes_that_were_accepted_and_never_seen_again_are_sent_again(install: Install) -> None:
    """[B29]"""
    service = install()
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.script(on(SEND).times(2).forget(), on("eth_getTransactionByHash").answer(None))
    execution = service.trigger("rent", "one")

    service.assert_paid_once(execution, to)
    assert [item.forwarded for item in service.proxy.sent][:3] == [False, False, True]


def test_not_to_know_is_not_to_have_none(install: Install) -> None:
    """[B30] Receipts are refused while the node indexes, then null, then there; meanwhile other payments go out."""
    service = install()
    service.account()
    to = service.pays("rent")
    service.pays("wages")
    service.register()
    service.start_worker("only")
    indexing = on("eth_getTransactionReceipt").error(-32000, "transaction indexing is in progress")
    service.proxy.script(indexing)
    execution = service.trigger("rent", "one")
    service.wait(lambda: indexing.fired >= 5, "receipts are refused")
    other = service.trigger("wages", "one")
    service.wait_attempt(other, "SENT")
    null = on("eth_getTransactionReceipt").answer(None)
    service.proxy.script(null)
    service.wait(lambda: null.fired >= 10, "receipts are null")
    assert (service.state(execution), service.account_row()["state"]) == ("RUNNING", "open")
    assert service.reservations(execution)[0]["closed_as"] is None
    service.proxy.script()

    service.assert_paid_once(execution, to)
    service.wait_state(other, "SUCCEEDED")
