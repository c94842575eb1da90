"""No wait is silent: what is under way for long is told by id and age, by the account's holder, and by anybody where it has none [B20]."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from executor.loops import tell_waits_forever
from tests.support.proxy_script import SEND, on
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("process-waits")]
LONG_SECONDS = 0.3


@contextmanager
def telling(service: Service, worker: str) -> Iterator[None]:
    """A loop of this worker that tells what is older than LONG_SECONDS."""
    stop = threading.Event()
    loop = threading.Thread(
        target=tell_waits_forever, args=(service.database, stop, lambda: None, worker, LONG_SECONDS, 0.02)
    )
    loop.start()
    try:
        yield
    finally:
        stop.set()
        loop.join()


def test_what_waits_for_long_is_told_by_the_holder_each_time_its_age_has_doubled(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "fenced.loops")

    def told(execution: str) -> list[logging.LogRecord]:
        return [r for r in caplog.records if str(vars(r).get("why")).startswith(execution)]

    service.account()
    to = service.pays("rent")
    service.account("idle")
    service.pays("alms", account="idle")
    service.register()
    service.proxy.script(on(SEND).error(-32000, "exceeds block gas limit"))
    worker = service.start_worker("only")
    paid = service.trigger("rent", "one")
    service.wait_attempt(paid, "SENT")
    with telling(service, "another"), telling(service, "only"):
        service.wait(lambda: len(told(paid)) >= 3, "its age has doubled twice")
    first, second, third = (record.created for record in told(paid)[:3])
    assert third - second >= second - first >= LONG_SECONDS
    why = str(vars(told(paid)[0])["why"])
    assert why.startswith(f"{paid} is RUNNING for ")
    assert ": nonce 0 is SENT, the node said " in why
    service.proxy.script()
    service.assert_paid_once(paid, to)
    caplog.clear()
    with telling(service, "another"), telling(service, "only"):
        service.wait_renewals()
    assert not told(paid), "it has ended"

    worker.kill()
    service.wait(lambda: not service.value("SELECT 1 FROM lease WHERE expires_at > clock_timestamp()"), "free")
    pending = service.trigger("alms", "nobody")
    with telling(service, "another"):
        service.wait(lambda: told(pending), "whoever is there tells what nobody holds")
    assert str(vars(told(pending)[0])["why"]).startswith(f"{pending} is PENDING for ")
    service.start_worker("next")
    service.wait_state(pending, "SUCCEEDED")
