"""The installation a scenario strikes: its accounts and strategies, workers that are started again, its database's restarts."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from executor.errors import ExecutorError
from tests.chaos.scenario import Scenario, Wanted, strategy_name
from tests.support.devnet import NodeProcess
from tests.support.postgres import plain_connection
from tests.support.service import ETHER, Service, Wallet
from tests.support.worker_process import WorkerProcess

PATIENCE_SECONDS = 60.0
RECEIVER, REVERTS = "0x" + "42" * 20, "0x" + "43" * 20
_REVERTING_CODE = "0x5f5ffd"
_BODY = f"""
shape = ctx.input["shape"] if ctx.input else "single"
def call(step, to="{RECEIVER}", value=1, **more):
    return Call(to, value, data=f"{{ctx.execution_id}}#{{step}}".encode(), **more)
if shape == "nothing":
    return nothing("nothing is due")
if shape == "once":
    return Call("{RECEIVER}", 1, data=f"once {{ctx.input['once']}}".encode(), once=ctx.input["once"])
if shape == "reverting":
    return call(0, "{REVERTS}", 0, gas=100_000)
if shape == "refused":
    return in_order([call(0), call(1, value={20 * ETHER})])
if shape == "single":
    return call(0)
return {{"ordered": in_order, "together": together}}[shape]([call(step) for step in range(3)])
"""
_HOLDERS = "SELECT DISTINCT holder FROM lease WHERE expires_at > clock_timestamp()"
_ENDS_ITSELF = {70: "trust ran out", 2: "refused to start"}
"""Exit codes that a supervisor answers with a new start: the watchdog's, and no database or node at start."""


class ChaosService(Service):
    """A Service whose own connections survive cut sessions and restarts of the server; its workers poll as in production."""

    def __init__(self, directory: Path, node: NodeProcess, database_url: str, **settings: Any) -> None:
        super().__init__(directory, node, database_url, **settings)
        self._sections = [section.replace('tick = "50ms"', 'tick = "200ms"') for section in self._sections]

    def rows(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        """Rows of a statement; asked again on a new connection while the server is away."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return super().rows(sql, *parameters)
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
                self._reconnect()

    def patiently(self, act: Callable[[], object]) -> None:
        """Do again what is safe to repeat until the database has taken it. Raises ExecutorError after a minute."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                act()
                return
            except ExecutorError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def ask(self, wanted: Wanted) -> None:
        """Trigger an execution."""
        self.patiently(lambda: self.trigger(strategy_name(wanted.account), wanted.key, wanted.payload))

    def _reconnect(self) -> None:
        with self._lock:
            if not self._connection.closed and self._connection.info.status == psycopg.pq.ConnStatus.OK:
                return
            try:
                fresh = plain_connection(self.database_url)
            except psycopg.OperationalError:
                return
            fresh.row_factory = self._connection.row_factory
            self._connection = fresh


@dataclass
class Crew:
    """The workers by place; a place is filled again when its worker has ended. The first `lasting` are never ended."""

    service: ChaosService
    size: int
    lasting: int
    members: list[WorkerProcess] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    refill_at: dict[int, float] = field(default_factory=dict)
    unexpected: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Fill every place."""
        self.members = [self.service.start_worker(f"worker-{place}") for place in range(self.size)]

    def pick(self, target: int, *, to_end: bool) -> int | None:
        """The place a fault strikes: the drawn one, or the next with a running worker, of those that hold accounts if any do."""
        first = self.lasting if to_end else 0
        holders = {row["holder"] for row in self.service.rows(_HOLDERS)}
        running = [place for place in range(first, self.size) if self._runs(place)]
        places = [place for place in running if self.members[place].name in holders] or running
        return places[target % len(places)] if places else None

    def _runs(self, place: int) -> bool:
        member = self.members[place]
        return place not in self.refill_at and member.exit_code is None and not member.is_frozen

    def end(self, place: int, sign: signal.Signals, refill_after: float) -> None:
        """Send a signal that ends a worker; its place is filled again some seconds later."""
        self.ended[sign.name] += 1
        self.refill_at[place] = time.monotonic() + refill_after
        os.kill(self.members[place].pid, sign)

    def tend(self) -> None:
        """Fill places whose time has come, and those whose workers ended by themselves as a supervisor would."""
        now = time.monotonic()
        for place, member in enumerate(self.members):
            due = self.refill_at.get(place)
            if due is None and member.exit_code is not None:
                self._note(member)
                self.refill_at[place] = now + 0.5
            elif due is not None and due <= now and member.exit_code is not None:
                del self.refill_at[place]
                self.members[place] = self.service.start_worker(member.name)
        self.service.workers[:] = self.members

    def thaw(self) -> None:
        """Let every frozen worker go on."""
        for member in self.members:
            if member.exit_code is None and member.is_frozen:
                member.resume()

    def is_full(self) -> bool:
        """Whether every place has a running worker."""
        return not self.refill_at and all(member.exit_code is None for member in self.members)

    def memory(self) -> dict[str, int]:
        """Resident bytes of the workers that no fault ends, by name and process."""
        lasting = [member for member in self.members[: self.lasting] if member.exit_code is None]
        return {f"{member.name} ({member.pid})": _resident(member.pid) for member in lasting}

    def _note(self, member: WorkerProcess) -> None:
        code = member.exit_code
        self.ended[_ENDS_ITSELF.get(code or 0, f"exit {code}")] += 1
        if code not in _ENDS_ITSELF:
            self.unexpected.append(f"{member.name} ended with {code}: {member.log[-1500:]}")


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def furnish(service: ChaosService, scenario: Scenario) -> list[Wallet]:
    """Accounts, each with one strategy that is scheduled and triggered; all registered."""
    service.node.rpc("anvil_setCode", REVERTS, _REVERTING_CODE)
    wallets = []
    for account in range(scenario.accounts):
        wallets.append(service.account(f"account-{account}"))
        service.strategy(
            strategy_name(account),
            _BODY,
            account=f"account-{account}",
            every=f"{scenario.every}s",
            misfire="all",
            overlap="allow",
            start_deadline="1h",
        )
    service.register()
    return wallets
