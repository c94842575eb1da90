"""kill -9 at every boundary between act and record: another worker goes on from the rows, with exactly one effect (G8)."""

import pytest

from executor.crashpoints import CrashPoint
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-crash")]
_AT_START = {CrashPoint.LEASE_ACQUIRED, CrashPoint.RECONCILE_RECORDED}
"""Points a worker reaches as soon as it holds an account, before anything is triggered."""


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


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
@pytest.mark.parametrize("point", [point for point in CrashPoint if point is not CrashPoint.SIGN_STORED])
def test_killed_anywhere_it_happens_once(service: Service, point: CrashPoint) -> None:
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    if point in _AT_START:
        first = service.start_worker("first", f"{point}:kill")
        assert first.wait_ended() == -9
        service.start_worker("second")
        execution = service.trigger("rent", "one")
    else:
        first, _ = service.start_pair(f"{point}:kill")
        execution = service.trigger("rent", "one")
        assert first.wait_ended() == -9

    service.assert_paid_once(execution, to)

    assert first.marker.exists()
    assert service.nonce(wallet.address) == 1
    assert service.execution(execution)["planning_attempts"] <= 2
    if point is not CrashPoint.FINALIZE_RECORDED:  # then there is nothing left to take over
        service.wait_held_by("second")
