"""[B95] An asynchronous standby is promoted, and the last commits are gone while their transactions are live."""

from collections.abc import Callable

import pytest

from tests.rewind.moving import MovingService
from tests.rewind.servers import Servers
from tests.support.service import ETHER
from tests.support.worker_process import wait_for

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("rewind-lost-tail")]


def test_a_lossy_promotion_is_noticed_before_anything_is_sent(
    clusters: Servers, install: Callable[..., MovingService]
) -> None:
    """[B95] as written: three executions are broadcast and not mined, the rows of two are lost; then blocks come, then two new ones."""
    primary = clusters.primary()
    standby = clusters.standby(primary)
    service = install(primary, on_order=True)
    wallet = service.account()
    to = service.pays("refund")
    service.register()
    worker = service.start_worker("before")
    service.trigger("refund", "kept")
    service.wait(lambda: len(service.seen()) == 1, "the first is sent")
    service.wait(lambda: service.attempts("refund/id/kept")[0]["status"] == "SENT", "and recorded")
    position = primary.execute("SELECT pg_current_wal_lsn()")[0][0]
    wait_for(
        lambda: standby.execute(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") == [(True,)],
        30.0,
        "it is replicated",
    )
    standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
    standby.execute("SELECT pg_reload_conf()")
    wait_for(
        lambda: not primary.execute("SELECT 1 FROM pg_stat_replication"), 30.0, "the standby has stopped following"
    )
    service.trigger("refund", "lost-1")
    service.wait(lambda: len(service.seen()) == 2, "the second is sent")
    service.trigger("refund", "lost-2")
    service.wait(lambda: len(service.seen()) == 3, "the third is sent")
    worker.kill()
    token = service.value("SELECT max(token) FROM lease_generation")
    before = service.seen()
    primary.stop()
    standby.promote()
    service.move(standby)
    assert service.rows("SELECT execution_id FROM execution") == [{"execution_id": "refund/id/kept"}]

    waiting = service.trigger("refund", "asked-meanwhile")
    service.start_worker("after")
    service.wait_halted("restored or promoted")
    answer = service.reopen()
    assert not answer.granted
    assert "wait in the node's pool (nonces 1 to 2)" in answer.text
    service.mine(1)
    answer = service.reopen()
    assert not answer.granted
    assert "nonces 1 to 2 were used above the rows and are not final yet" in answer.text
    assert service.seen() == before, "nothing new is sent while the account is halted"
    assert service.state(waiting) == "PENDING"

    service.mine(2)
    answer = service.reopen()
    assert answer.granted, answer.text
    assert "nonces 1 to 2 acknowledged" in answer.text
    rows = service.rows("SELECT nonce, hash FROM acknowledged_nonce ORDER BY nonce")
    by_nonce = service.proxy.raws_by_nonce()
    assert [row["nonce"] for row in rows] == [1, 2]
    for row in rows:
        assert service.node.rpc("eth_getTransactionReceipt", "0x" + bytes(row["hash"]).hex())["status"] == "0x1"
    assert service.state(waiting) == "PARKED", "a trigger made before the reopening waits for the operator"
    new = [service.trigger("refund", f"new-{i}") for i in (1, 2)]
    service.wait(lambda: len(service.seen()) == 5, "the two new ones are sent")
    service.mine(3)
    for execution_id in ("refund/id/kept", *new):
        service.wait_state(execution_id, "SUCCEEDED")
    assert service.resolve(waiting).granted
    service.wait(lambda: len(service.seen()) == 6, "what was released is sent")
    service.mine(3)
    service.wait_state(waiting, "SUCCEEDED")
    assert service.balance(to) == 6 * (ETHER // 100)
    assert {len(raws) for raws in service.proxy.raws_by_nonce().values()} == {1}, "no nonce carried two payloads"
    assert {key: by_nonce[key] for key in by_nonce} == {
        key: raws for key, raws in service.proxy.raws_by_nonce().items() if key[1] <= 2
    }
    assert service.value("SELECT min(token) FROM lease_generation WHERE holder = 'after'") > token
    assert service.nonce(wallet.address) == 6
    service.judge()
