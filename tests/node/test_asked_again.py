"""The same run is wanted again and again, by callers and by a schedule: one reservation, one payload ([B08], [B09])."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from executor import triggering
from tests.support.proxy_script import SEND, on
from tests.support.service import ETHER, Service, fresh_address

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("node-queue")]
Install = Callable[..., Service]
_CALLERS = 20


def ask_again(service: Service, execution: str, state: str) -> None:
    """Twenty callers at once want the run that is there: all hear of the same one."""

    def ask(_: int) -> triggering.Triggered:
        return triggering.trigger(service.database, "rent", key="one")

    with ThreadPoolExecutor(_CALLERS) as callers:
        asked = list(callers.map(ask, range(_CALLERS)))
    assert {(found.execution_id, found.recorded) for found in asked} == {(execution, False)}, state
    assert service.value("SELECT count(*) FROM execution") == 1
    assert service.value("SELECT count(*) FROM nonce_reservation") == 1


def test_asking_again_in_every_state_starts_nothing(install: Install) -> None:
    """[B09]"""
    service = install(on_order=True, lease="10s")
    service.account()
    to = service.pays("rent")
    service.register()
    only = service.start_worker("only", "reserve.recorded:stop")
    service.proxy.script(held := on(SEND).hold(released := threading.Event()))
    execution = service.trigger("rent", "one")
    only.wait_frozen()
    assert [row["status"] for row in service.attempts(execution)] == ["DRAFT"]
    ask_again(service, execution, "reserved")
    only.resume()
    service.wait(lambda: held.fired, "the bytes are on their way")
    assert [row["status"] for row in service.attempts(execution)] == ["SIGNED"]
    ask_again(service, execution, "signed")
    released.set()
    service.wait_attempt(execution, "SENT")
    ask_again(service, execution, "broadcast")
    service.mine(1)
    service.wait_attempt(execution, "MINED")
    ask_again(service, execution, "mined")
    service.mine(2)
    service.assert_paid_once(execution, to)
    ask_again(service, execution, "confirmed")
    service.wait_renewals(1)
    assert {item.nonce for item in service.proxy.sent} == {0}


def test_refused_sends_do_not_pile_up_and_go_out_together(install: Install) -> None:
    """[B08] Every send is refused as too low while the schedule ticks; then the node is honest."""
    service = install(rebroadcast="0.2s")
    wallet = service.account()
    to = fresh_address()
    service.strategy("relay", f"return Call({to!r}, {ETHER // 100})", every="1s", misfire="latest", overlap="skip")
    service.register()
    service.start_worker("only")
    service.proxy.script(on(SEND).error(-32000, "nonce too low"))
    overlapping = "SELECT count(*) FROM execution WHERE state = 'SKIPPED' AND starts_with(reason, 'overlap')"
    service.wait(lambda: service.value(overlapping) >= 4, "four ticks are skipped")
    (stuck,) = service.rows("SELECT execution_id, nonce FROM nonce_reservation")
    assert service.state(stuck["execution_id"]) == "RUNNING"
    assert service.nonce(wallet.address) == 0
    service.proxy.script()

    service.wait_state(stuck["execution_id"], "SUCCEEDED")
    service.wait(lambda: service.value("SELECT count(*) FROM execution WHERE state = 'SUCCEEDED'") >= 2, "and one more")
    reserved = service.rows("SELECT execution_id, count(*) AS nonces FROM nonce_reservation GROUP BY execution_id")
    assert all(row["nonces"] == 1 for row in reserved)
    assert all(len(raws) == 1 for raws in service.proxy.raws_by_nonce().values())
    slots = service.rows("SELECT slot, count(*) AS runs FROM execution GROUP BY slot")
    assert all(row["runs"] == 1 for row in slots)
