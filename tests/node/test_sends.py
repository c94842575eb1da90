"""What becomes of a send is unknown or told wrongly: the same bytes again, and nothing else (area A of the bug log)."""

import threading
from collections.abc import Callable

import psycopg
import pytest

from executor import triggering
from tests.process.conftest import BOTH
from tests.support.postgres import plain_connection
from tests.support.proxy_script import SEND, on
from tests.support.service import ETHER, Service, fresh_address

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("node-sends")]
Install = Callable[..., Service]


def pays_at_once(service: Service, count: int, strategy: str = "rent") -> list[str]:
    """Trigger `count` runs; their execution ids."""
    return [service.trigger(strategy, f"run-{i}") for i in range(count)]


def each_nonce_once(service: Service, executions: list[str]) -> list[int]:
    """The nonces of the executions, each with one attempt and one payload."""
    for execution in executions:
        assert len(service.attempts(execution)) == 1
    assert all(len(raws) == 1 for raws in service.proxy.raws_by_nonce().values())
    return sorted(row["nonce"] for execution in executions for row in service.reservations(execution))


def test_a_send_that_is_never_answered_is_neither_failed_nor_paid_again(install: Install) -> None:
    """[B02]"""
    service = install(on_order=True, lease="15s")
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.script(on(SEND).times(1).silence())
    execution = service.trigger("rent", "one")
    service.wait(lambda: service.proxy.sent, "the bytes are sent")

    assert service.state(execution) == "RUNNING"
    again = triggering.trigger(service.database, "rent", key="one")
    assert (again.execution_id, again.recorded) == (execution, False)
    service.wait(lambda: len(service.proxy.sent) >= 2, "the time-out passes and the bytes go out again", 60)
    assert service.state(execution) == "RUNNING"

    service.mine(3)
    service.assert_paid_once(execution, to)
    assert "ambiguous" in service.verdicts(execution)
    assert service.nonce(wallet.address) == 1


def test_a_database_that_goes_away_while_the_node_takes_the_bytes(install: Install, database_url: str) -> None:
    """[B05]"""
    service = install()
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    name = psycopg.conninfo.conninfo_to_dict(database_url.replace("+psycopg", "", 1))["dbname"]
    admin = plain_connection(psycopg.conninfo.make_conninfo(database_url.replace("+psycopg", "", 1), dbname="postgres"))
    own = service.value("SELECT pg_backend_pid()")

    def take_away(_: object) -> None:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s", (name, own)
        )

    taken = on(SEND).times(1).do(take_away)
    service.proxy.script(taken)
    execution = service.trigger("rent", "one")
    service.wait(lambda: taken.fired and len(service.proxy.sent) == 1, "the database is gone")
    service.wait(lambda: service.value("SELECT expires_at < clock_timestamp() FROM lease"), "the lease runs out")
    assert (service.state(execution), service.attempts(execution)[0]["status"]) == ("RUNNING", "SIGNED")
    admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    admin.close()
    service.database.close()

    service.assert_paid_once(execution, to)
    other = service.trigger("rent", "two")
    service.wait_state(other, "SUCCEEDED")
    assert each_nonce_once(service, [execution, other]) == [0, 1]


def test_nonce_too_low_about_our_own_mined_bytes_is_success(install: Install) -> None:
    """[B06] The reply is lost, the block is mined, and the retry truthfully hears "nonce too low"."""
    service = install(on_order=True)
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.script(
        on(SEND).times(1).hide_reply(),
        on(SEND).hold(mined := threading.Event()),
        on("eth_getTransactionReceipt").times(3).answer(None),
    )
    execution = service.trigger("rent", "one")
    service.wait(lambda: len(service.proxy.sent) >= 2, "the bytes are on their way again")
    service.node.rpc("anvil_mine", "0x1")
    mined.set()
    service.wait(lambda: "nonce too low" in service.verdicts(execution), "the node says that the nonce is used")
    service.mine(2)

    service.assert_paid_once(execution, to)
    assert service.account_row()["state"] == "open"
    assert service.nonce(wallet.address) == 1


def test_one_lost_answer_among_five_replaces_nothing(install: Install) -> None:
    """[B07]"""
    service = install(on_order=True)
    wallet = service.account()
    service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.script(
        on(SEND).nonce(1).times(1).http(500, b"internal error", forward=True), on(SEND).times(4).delay(0.3)
    )
    executions = pays_at_once(service, 5)
    service.wait(lambda: len(service.proxy.raws_by_nonce(forwarded=True)) == 5, "five nonces reached the node")
    service.mine(1)
    assert service.nonce(wallet.address) == 5

    service.mine(2)
    for execution in executions:
        service.wait_state(execution, "SUCCEEDED")
    assert each_nonce_once(service, executions) == [0, 1, 2, 3, 4]


def test_a_kill_while_waiting_for_a_receipt_buys_nothing_again(install: Install) -> None:
    """[B11] Not mined for long, killed, started again, and the next tick of the schedule comes meanwhile."""
    service = install(on_order=True)
    service.account()
    to = fresh_address()
    service.strategy("buys", f"return Call({to!r}, {ETHER // 100})", every="1s", misfire="latest", overlap="skip")
    service.register()
    first = service.start_worker("only")
    service.wait(lambda: service.proxy.sent, "the bytes are sent")
    (execution,) = [row["execution_id"] for row in service.rows("SELECT execution_id FROM nonce_reservation")]
    first.kill()
    before = len(service.proxy.sent)
    service.start_worker("only")
    service.wait(lambda: len(service.proxy.sent) > before, "the bytes are sent again")
    skipped = "SELECT count(*) FROM execution WHERE state = 'SKIPPED' AND starts_with(reason, 'overlap')"
    service.wait(lambda: service.value(skipped) >= 2, "later ticks are skipped")
    assert service.state(execution) == "RUNNING"
    assert service.value("SELECT count(*) FROM nonce_reservation") == 1

    service.mine(3)
    service.wait_state(execution, "SUCCEEDED")
    assert all(len(raws) == 1 for raws in service.proxy.raws_by_nonce().values())


def test_no_answer_after_the_first_acceptance_ends_anything(install: Install) -> None:
    """[B12]"""
    service = install(on_order=True, rebroadcast="0.1s")
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("only")
    execution = service.trigger("rent", "one")
    service.wait_attempt(execution, "SENT")
    lies = [
        on(SEND).times(1).error(-32603, "internal error"),
        on(SEND).times(1).error(-32000, "insufficient funds"),
        on(SEND).times(1).error(-32000, "transaction underpriced"),
        on(SEND).times(1).error(-32000, "exceeds block gas limit"),
        on(SEND).times(1).http(503, b"<html>"),
    ]
    service.proxy.script(*lies)
    service.wait(lambda: all(lie.fired for lie in lies), "every answer was given")
    service.wait(lambda: {"accepted", "ambiguous", "insufficient funds", "underpriced", "rejected"}
                 <= set(service.verdicts(execution)), "every answer is recorded")  # fmt: skip
    assert (service.state(execution), service.attempts(execution)[0]["status"]) == ("RUNNING", "SENT")

    service.mine(3)
    service.assert_paid_once(execution, to)


@pytest.mark.parametrize("node_kind", BOTH, indirect=True)
def test_sends_that_arrive_twice_and_out_of_order_are_paid_once(install: Install) -> None:
    service = install(on_order=True)
    wallet = service.account()
    service.pays("rent")
    service.register()
    service.start_worker("only")
    backwards = on(SEND).reorder()
    service.proxy.script(backwards)
    executions = pays_at_once(service, 5)
    service.wait(lambda: backwards.fired >= 5, "five sends reach the node, the last first")
    service.proxy.script(on(SEND).duplicate())
    service.wait(lambda: service.proxy.sent[5:], "and twice")
    service.mine(3)

    for execution in executions:
        service.wait_state(execution, "SUCCEEDED")
    assert each_nonce_once(service, executions) == [0, 1, 2, 3, 4]
    assert service.nonce(wallet.address) == 5
