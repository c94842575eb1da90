"""kill -9 between storing and sending: what the other worker sends is what was stored (G4, G5). The matrix has every other point."""

import pytest

from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-crash")]


def test_bytes_stored_and_not_sent_are_sent_by_the_other_worker(service: Service) -> None:
    service.account()
    to = service.pays("rent")
    service.register()
    first, _ = service.start_pair("sign.stored:kill")
    execution = service.trigger("rent", "one")
    assert first.wait_ended() == -9
    (stored,) = service.attempts(execution)
    assert (stored["status"], service.proxy.sent) == ("SIGNED", [])

    service.assert_paid_once(execution, to)

    (sent,) = service.attempts(execution)
    assert sent["raw"] == stored["raw"]
    assert sent["sent_token"] > stored["signed_token"]
    assert len(service.proxy.raws_by_nonce()) == 1
    assert service.value("SELECT count(*) FROM lease_generation") == 2
