"""A synchronous standby is promoted under load: nothing lost, nothing twice; accounts halt all the same (P13)."""

import signal
from collections.abc import Callable

import pytest

from tests.rewind.moving import MovingService
from tests.rewind.servers import Servers
from tests.support.service import ETHER

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("rewind-promoted"), pytest.mark.timeout(300)]

EXECUTIONS = 60


def test_a_synchronous_standby_promoted_under_load_loses_and_repeats_nothing(
    clusters: Servers, install: Callable[..., MovingService]
) -> None:
    primary = clusters.primary()
    standby = clusters.standby(primary, synchronous_standby_names="")
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    service = install(primary)
    wallet = service.account(max_in_flight=8)
    to = service.pays("bonus")
    service.register()
    service.start_worker("one")
    service.start_worker("two")
    asked = [service.trigger("bonus", str(i)) for i in range(EXECUTIONS)]
    service.wait(lambda: service.nonce(wallet.address) >= 5, "some are mined")
    assert service.nonce(wallet.address) < EXECUTIONS, "the promotion falls into the work"

    primary.stop(signal.SIGQUIT)
    standby.promote()
    service.move(standby)
    assert service.value("SELECT count(*) FROM execution") == EXECUTIONS, "a commit that was answered is on the standby"
    service.wait_halted("restored or promoted")
    before = service.seen()
    answer = service.reopen(why="the synchronous standby was promoted")
    assert answer.granted, answer.text
    assert "acknowledged" not in answer.text
    assert {item.raw for item in list(service.proxy.sent)} >= before
    parked = [
        row["execution_id"]
        for row in service.rows("SELECT execution_id FROM execution WHERE state = 'PARKED' ORDER BY 1")
    ]
    assert parked, "what had no nonce yet waits for the operator"
    for execution_id in parked:
        assert service.reservations(execution_id) == []
        assert service.resolve(execution_id).granted
    for execution_id in asked:
        service.wait_state(execution_id, "SUCCEEDED", seconds=90.0)
    assert service.balance(to) == EXECUTIONS * (ETHER // 100)
    assert service.nonce(wallet.address) == EXECUTIONS
    assert {len(raws) for raws in service.proxy.raws_by_nonce().values()} == {1}
    service.judge()
