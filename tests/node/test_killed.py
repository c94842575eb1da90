"""Killed at each step between reservation and the node's answer, and a store that cannot take the bytes ([B03], [B13], [B20])."""

from collections.abc import Callable

import pytest

from tests.support.proxy_script import SEND, on
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("node-killed")]
Install = Callable[..., Service]
_DISK_FULL = "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'"


def storing_bytes(service: Service, what: str) -> None:
    """From now on this happens in the database where signed bytes are stored, until `before_signed` is dropped."""
    service.execute(
        f"CREATE FUNCTION before_signed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; RETURN new; END $$"
    )
    service.execute(
        "CREATE TRIGGER before_signed BEFORE UPDATE ON attempt FOR EACH ROW"
        " WHEN (new.status = 'SIGNED' AND old.status = 'DRAFT') EXECUTE FUNCTION before_signed()"
    )


@pytest.mark.parametrize(
    "point", ["reserve.recorded", "sign.journaled", "sign.signed", "sign.stored", "broadcast.sent"]
)
def test_killed_and_started_again_only_stored_bytes_go_out(service: Service, point: str) -> None:
    """[B03]"""
    service.account()
    to = service.pays("rent")
    service.register()
    first = service.start_worker("only", f"{point}:kill")
    execution = service.trigger("rent", "one")
    assert first.wait_ended() == -9
    sent = {item.raw for item in service.proxy.sent}
    assert bool(sent) is (point == "broadcast.sent")
    service.start_worker("only")

    service.assert_paid_once(execution, to)

    (attempt,) = service.attempts(execution)
    assert sent <= {attempt["raw"]}


def test_killed_inside_the_storing_of_the_bytes(service: Service) -> None:
    """[B03] Before COMMIT returns: what was signed never left, and the journal gives the same bytes again."""
    service.account()
    to = service.pays("rent")
    service.register()
    storing_bytes(service, "PERFORM pg_sleep(1)")
    first = service.start_worker("only")
    execution = service.trigger("rent", "one")
    service.wait(lambda: service.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"), "storing")
    first.kill()
    service.wait(
        lambda: not service.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"), "over"
    )
    assert [row["status"] for row in service.attempts(execution)] == ["DRAFT"]
    assert service.proxy.sent == []
    signed = service.value("SELECT raw FROM signer.signature")
    service.execute("DROP FUNCTION before_signed CASCADE")
    service.start_worker("only")

    service.assert_paid_once(execution, to)
    assert service.attempts(execution)[0]["raw"] == signed


def test_bytes_that_cannot_be_stored_are_not_sent(service: Service) -> None:
    """[B03] A full disk."""
    service.account()
    to = service.pays("rent")
    service.register()
    storing_bytes(service, _DISK_FULL)
    only = service.start_worker("only")
    execution = service.trigger("rent", "one")
    service.wait(lambda: "a stage did not finish" in only.log, "the worker tells that it cannot store them")
    service.wait_renewals()
    assert [row["status"] for row in service.attempts(execution)] == ["DRAFT"]
    assert (service.state(execution), service.proxy.sent) == ("RUNNING", [])
    service.execute("DROP FUNCTION before_signed CASCADE")

    service.assert_paid_once(execution, to)
    assert only.exit_code is None


def test_a_signer_that_fails_burns_no_nonce(service: Service) -> None:
    """[B13] Five executions in a row cannot be signed after their reservation; then a sixth comes."""
    wallet = service.account()
    service.pays("rent")
    service.register()
    service.execute(
        "CREATE FUNCTION signer.broken() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'broken' USING ERRCODE = 'io_error'; END $$"
    )
    service.execute(
        "CREATE TRIGGER broken BEFORE INSERT ON signer.signature FOR EACH ROW EXECUTE FUNCTION signer.broken()"
    )
    only = service.start_worker("only")
    failed = [service.trigger("rent", f"run-{i}") for i in range(5)]
    for execution in failed:
        service.wait_attempt(execution, "DRAFT")
    service.wait(lambda: "a stage did not finish" in only.log, "the worker tells that the signer does not answer")
    assert service.proxy.sent == []
    service.execute("DROP FUNCTION signer.broken CASCADE")
    sixth = service.trigger("rent", "run-5")

    for execution in [*failed, sixth]:
        service.wait_state(execution, "SUCCEEDED")
    nonces = sorted(row["nonce"] for execution in [*failed, sixth] for row in service.reservations(execution))
    assert nonces == [0, 1, 2, 3, 4, 5]
    assert service.nonce(wallet.address) == 6
    assert all(len(raws) == 1 for raws in service.proxy.raws_by_nonce().values())


def test_the_head_of_a_queue_whose_worker_died_is_taken_up_by_another(service: Service) -> None:
    """[B20] Killed after the bytes are stored and before the first send; nobody starts it again."""
    service.account()
    service.pays("rent")
    service.register()
    first, _ = service.start_pair("sign.stored:kill")
    head = service.trigger("rent", "head")
    assert first.wait_ended() == -9
    assert service.proxy.sent == []
    behind = [service.trigger("rent", f"behind-{i}") for i in range(3)]

    for execution in [head, *behind]:
        service.wait_state(execution, "SUCCEEDED")
    assert [row["nonce"] for row in service.reservations(head)] == [0]
    assert service.attempts(head)[0]["sent_token"] == 2
    assert [item.nonce for item in service.proxy.sent][:1] == [0]


def test_a_key_used_elsewhere_between_storing_and_sending(service: Service) -> None:
    """[B19] The nonce of stored bytes is taken by a stranger: told with his hash, and the next ones go on behind it."""
    wallet = service.account()
    to = service.pays("rent")
    service.register()
    first = service.start_worker("only", "sign.stored:kill")
    robbed = service.trigger("rent", "one")
    assert first.wait_ended() == -9
    foreign = wallet.sign(0, to, 7)
    hash_ = str(service.node.rpc("eth_sendRawTransaction", "0x" + foreign.hex()))
    following = [service.trigger("rent", "two"), service.trigger("rent", "three")]
    service.start_worker("only")

    service.wait_state(robbed, "PARKED")
    for execution in following:
        service.wait_state(execution, "SUCCEEDED")
    (closed,) = service.reservations(robbed)
    assert (closed["closed_as"], "0x" + closed["foreign_hash"].hex()) == ("foreign", hash_)
    assert [item["hash"] for item in service.execution(robbed)["evidence"]] == [hash_]
    assert sorted(row["nonce"] for e in following for row in service.reservations(e)) == [1, 2]
    assert len(service.attempts(robbed)) == 1
    sent = on(SEND)
    service.proxy.script(sent)
    service.wait_renewals()
    assert sent.fired == 0  # no loop on "nonce too low"
