"""The recording proxy itself: a witness that could not see a broken promise would be none."""

import json
import urllib.error
import urllib.request
from http.client import RemoteDisconnected

import pytest

from tests.support.service import Service, Wallet, fresh_address

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("process-node"),
    pytest.mark.parametrize("node_kind", ["devnet"], indirect=True),
]


def post(service: Service, raw: bytes) -> str:
    """Send bytes through the proxy, as a worker would; the hash the node answers with."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": ["0x" + raw.hex()]}
    request = urllib.request.Request(service.proxy.url, json.dumps(call).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(json.load(answer)["result"])


@pytest.fixture
def wallet(service: Service) -> Wallet:
    found = service.account()
    service.register()
    return found


def test_bytes_that_were_not_committed_are_complained_about(service: Service, wallet: Wallet) -> None:
    raw = wallet.sign(0, fresh_address())

    post(service, raw)

    assert service.proxy.complaints == [f"0x{raw.hex()} was sent before it was committed"]
    assert service.proxy.raws_by_nonce() == {(wallet.address_bytes, 0): {raw}}
    with pytest.raises(AssertionError):
        service.finish()
    service.proxy.complaints.clear()
    service.proxy.sent.clear()


def test_a_dropped_reply_reaches_the_node_and_a_refused_send_does_not(service: Service, wallet: Wallet) -> None:
    taken, lost = wallet.sign(0, fresh_address()), wallet.sign(1, fresh_address())

    service.proxy.drop_replies(1)
    with pytest.raises((RemoteDisconnected, urllib.error.URLError, ConnectionError)):
        post(service, taken)
    service.proxy.refuse_sends()
    with pytest.raises((RemoteDisconnected, urllib.error.URLError, ConnectionError)):
        post(service, lost)

    assert [sent.forwarded for sent in service.proxy.sent] == [True, False]
    pending = service.node.rpc("eth_getTransactionCount", wallet.address, "pending")
    assert pending == "0x1"
    service.proxy.complaints.clear()
    service.proxy.sent.clear()
