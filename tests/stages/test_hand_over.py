"""What is handed over was read before this tick's own COMMITs: one that warns shows rows nobody may act on (P12)."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from executor import pipeline
from executor.database import CommitUnknown
from tests.stages.conftest import ADDRESS, Line


class BusySenders(Executor):
    """Begins what it is given only when `begin` is true, as threads do that were busy with a slow node until then."""

    def __init__(self, begin: Callable[[], object]) -> None:
        self._begin = begin

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            deadline = time.monotonic() + 30
            while not self._begin() and time.monotonic() < deadline:
                time.sleep(0.005)
            try:
                future.set_result(fn(*args, **named))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return future


def test_bytes_whose_commit_warned_are_not_handed_over_by_the_tick_that_wrote_them(line: Line) -> None:
    line.execution("one", {})
    with line.database.transaction() as tx:
        tx.exec_driver_sql("""
            CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS
              $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;
            CREATE CONSTRAINT TRIGGER warn AFTER UPDATE ON attempt DEFERRABLE INITIALLY DEFERRED
              FOR EACH ROW EXECUTE FUNCTION warn();
        """)
    signed = "SELECT count(*) FROM attempt WHERE raw IS NOT NULL"
    senders = BusySenders(lambda: line.one(signed)[0])

    with pytest.raises(CommitUnknown):
        pipeline.tick(
            line.turn, line.client, line.signer, pipeline.Progress(), senders, False, lambda: True, lambda: True
        )

    assert line.one(signed)[0] == 1
    assert line.one("SELECT status FROM attempt")[0] == "SIGNED"
    assert line.devnet.rpc("eth_getTransactionCount", ADDRESS, "pending") == "0x0"
