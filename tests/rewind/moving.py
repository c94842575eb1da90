"""An installation whose database is moved under it: restored, promoted, copied."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from executor import operations, triggering
from executor.audit import audit
from executor.store.operations import Answer
from tests.rewind.servers import Address, Cluster
from tests.support.devnet import NodeProcess
from tests.support.postgres import plain_connection
from tests.support.service import CHAIN_ID, PATIENCE_SECONDS, Service
from tests.support.worker_process import WorkerProcess


class MovingService(Service):
    """A Service behind an Address. Its judgement at the end counts bytes that a lost row had stored as known."""

    def __init__(self, directory: Path, node: NodeProcess, address: Address, **settings: Any) -> None:
        self.address = address
        self.unjudged: list[bytes] = []
        super().__init__(directory, node, address.url(), **settings)

    def move(self, cluster: Cluster) -> None:
        """From now on the address is `cluster`'s; every connection is cut."""
        self.address.point(cluster)
        self.database.engine.dispose()

    def rows(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        """As in a Service, on a new connection where the old one was cut."""
        for _ in range(2):
            try:
                return super().rows(sql, *parameters)
            except psycopg.OperationalError:
                with contextlib.suppress(psycopg.Error):
                    self._connection.close()
                self._connection = plain_connection(self.database_url)
                self._connection.row_factory = dict_row  # type: ignore[assignment]  # rows by name
        return super().rows(sql, *parameters)

    def _uncommitted(self, raws: Sequence[bytes]) -> list[str]:
        try:
            return super()._uncommitted(raws)
        except psycopg.OperationalError:
            self.unjudged += raws  # the server they were committed to is gone
            return []

    def seen(self) -> set[bytes]:
        """All the distinct bytes that ever arrived at the node."""
        return {item.raw for item in list(self.proxy.sent)}

    def end_workers(self, *workers: WorkerProcess) -> None:
        """End them politely."""
        for worker in workers or self.workers:
            if worker.exit_code is None:
                worker.terminate()
        for worker in workers or self.workers:
            worker.wait_ended()

    def reopen(self, account: str = "treasury", why: str = "restored on purpose") -> Answer:
        """`fenced reopen`: the holder's answer."""
        asked = operations.ask_reopen(self.database, account, why, "operator@desk")
        return self._answer(asked)

    def resolve(self, execution_id: str, paid: bytes | None = None, why: str = "looked at the chain") -> Answer:
        """`fenced resolve`: the holder's answer."""
        return self._answer(operations.ask_resolve(self.database, execution_id, paid, why, "operator@desk"))

    def block_number(self) -> int:
        """The node's head."""
        return int(self.node.rpc("eth_blockNumber"), 16)

    def trigger_slot(self, strategy: str, slot: str) -> str:
        """`fenced trigger --slot`: the execution id."""
        return triggering.trigger(self.database, strategy, slot=slot).execution_id

    def _answer(self, asked: operations.Asked) -> Answer:
        assert asked.request_id is not None, asked.said
        found = operations.wait_for_answer(self.database, asked.request_id, PATIENCE_SECONDS)
        assert found is not None, f"no answer to {asked.said}\n{self.describe()}"
        return found

    def wait_halted(self, because: str) -> None:
        """Wait until the account is halted, for this reason."""
        self.wait(lambda: self.account_row()["state"] == "halted", f"halted: {because}")
        assert because in self.account_row()["reason"], self.account_row()

    def wait_mined(self, address: str, count: int) -> None:
        """Wait until the wallet has used `count` nonces."""
        self.wait(lambda: self.nonce(address) >= count, f"{count} transactions of {address} are mined", 90.0)

    def judge(self) -> None:
        """The audit finds nothing, and bytes that went out had been committed first (G4)."""
        self.end_workers()
        assert self.proxy.complaints == []
        report = audit(self.database_url, {CHAIN_ID: [self.node.url]})
        assert report.clean, report.violations
