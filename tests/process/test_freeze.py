"""A worker frozen past its lease and thawed: whose token the rows have afterwards (G6, [B86]). The matrix has every point."""

import pytest

from executor.crashpoints import CrashPoint
from tests.support.service import Service
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-freeze")]


def freeze_and_thaw(service: Service, point: CrashPoint) -> tuple[str, WorkerProcess]:
    """Freeze the holder at `point`, let the other worker finish the payment, thaw it, and wait until it was refused."""
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    first, _ = service.start_pair(f"{point}:stop")
    execution = service.trigger("rent", "one")
    first.wait_frozen()

    service.assert_paid_once(execution, to)
    service.wait_held_by("second")
    before = service.rows("SELECT * FROM attempt"), service.rows("SELECT * FROM nonce_reservation")
    first.resume()
    service.wait(service.refused, f"the write of the thawed worker is refused at {point}")

    assert (service.rows("SELECT * FROM attempt"), service.rows("SELECT * FROM nonce_reservation")) == before
    assert {row["worker"] for row in service.refused()} == {"first"}
    assert {row["token"] for row in service.refused()} == {1}
    assert service.nonce(wallet.address) == 1
    assert len(service.proxy.raws_by_nonce()) == 1
    return execution, first


def test_frozen_before_reserving_it_reserves_nothing(service: Service) -> None:
    execution, _ = freeze_and_thaw(service, CrashPoint.RESERVE_PREPARED)

    (refused,) = service.refused()
    assert (refused["constraint_name"], refused["stage"]) == ("fence_current", "tick")
    (reservation,) = service.reservations(execution)
    assert reservation["token"] == 2


@pytest.mark.parametrize("point", [CrashPoint.SIGN_SELECTED, CrashPoint.SIGN_JOURNALED, CrashPoint.SIGN_SIGNED])
def test_frozen_between_reserving_and_storing_it_stores_nothing(service: Service, point: CrashPoint) -> None:
    execution, _ = freeze_and_thaw(service, point)

    assert {row["constraint_name"] for row in service.refused()} <= {"fence_current", "signer_fence"}
    (reservation,) = service.reservations(execution)
    (attempt,) = service.attempts(execution)
    assert (reservation["token"], attempt["token"], attempt["signed_token"]) == (1, 1, 2)


@pytest.mark.parametrize("node_kind", ["devnet"], indirect=True)
def test_a_thawed_worker_is_useful_again(service: Service) -> None:
    """It lost a lease, not its life: when the other ends, it takes over."""
    _, first = freeze_and_thaw(service, CrashPoint.SIGN_SIGNED)
    second = service.workers[1]
    second.kill()

    to_pay = service.trigger("rent", "two")

    service.wait_state(to_pay, "SUCCEEDED")
    assert first.exit_code is None
    assert service.reservations(to_pay)[0]["token"] == 3
