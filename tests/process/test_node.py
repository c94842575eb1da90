"""The node misbehaves: a reply is lost, a block is orphaned. The same bytes go out again, and nothing else (G5, G10)."""

from collections.abc import Callable

import pytest

from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-node")]
Install = Callable[..., Service]


def test_a_lost_reply_leads_to_the_same_bytes_again(install: Install) -> None:
    service = install(on_order=True)
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.drop_replies(1)
    execution = service.trigger("rent", "one")
    service.wait(lambda: len(service.proxy.sent) >= 2, "the bytes are sent again")
    assert service.node.rpc("eth_getTransactionCount", wallet.address, "pending") == "0x1"

    service.mine(3)

    service.assert_paid_once(execution, to)
    assert len({sent.raw for sent in service.proxy.sent}) == 1
    assert {"ambiguous"} < set(service.verdicts(execution))
    assert service.nonce(wallet.address) == 1


def test_bytes_that_never_arrived_are_sent_again(install: Install) -> None:
    service = install(on_order=True)
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.refuse_sends()
    execution = service.trigger("rent", "one")
    service.wait(lambda: len(service.proxy.sent) >= 2, "two sends fail")
    assert service.state(execution) == "RUNNING"
    service.proxy.allow_sends()
    service.wait(lambda: service.proxy.raws_by_nonce(forwarded=True), "the node gets the bytes")

    service.mine(3)

    service.assert_paid_once(execution, to)


def test_a_reorg_takes_a_payment_back_and_the_same_bytes_bring_it_again(install: Install) -> None:
    service = install(on_order=True)
    wallet = service.account()
    to = service.pays("rent")
    service.mine(5)
    service.register()
    service.start_worker("only")
    execution = service.trigger("rent", "one")
    service.wait(lambda: service.proxy.sent, "the bytes are sent")
    service.mine(1)
    service.wait_attempt(execution, "MINED")
    sent = len(service.proxy.sent)

    service.node.rpc("anvil_reorg", 1, [])
    service.wait_attempt(execution, "SENT")
    service.wait(lambda: len(service.proxy.sent) > sent, "the bytes are sent again")
    assert service.nonce(wallet.address) == 0
    service.mine(1)
    service.wait_attempt(execution, "MINED")
    assert service.state(execution) == "RUNNING"
    service.mine(2)

    service.assert_paid_once(execution, to)
    seen = service.rows("SELECT block_hash, orphaned_at FROM receipt ORDER BY receipt_id")
    assert [row["orphaned_at"] is not None for row in seen] == [True, False]
    assert seen[0]["block_hash"] != seen[1]["block_hash"]
    assert service.account_row()["state"] == "open"
    walked = service.rows("SELECT to_state FROM history WHERE kind = 'attempt' ORDER BY history_id")
    assert [row["to_state"] for row in walked] == ["DRAFT", "SIGNED", "SENT", "MINED", "SENT", "MINED", "FINAL"]
