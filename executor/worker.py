"""A worker: the threads that schedule, plan and tick, and how they end.

One loop wakes what has work: accounts are ticked by a small pool per chain, so that a dead endpoint starves only its
own chain; plans are made by a pool of their own. NOTIFY only wakes the loop earlier; polling is the truth.
"""

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from random import Random

from chain.client import ChainClient
from chain.errors import ChainError, Inconsistent, WrongChain
from executor import pipeline
from executor.clock import boottime
from executor.crashpoints import CrashHook
from executor.database import CommitUnknown, Database, FenceRefused
from executor.errors import ExecutorError
from executor.loops import listen_forever, schedule_forever, tell_locks_forever, tell_waits_forever
from executor.plan_process import PlanPool
from executor.records import Account, Lease
from executor.stages import plan
from executor.store import accounts, executions, requests, strategies, workers
from executor.telemetry import FAILURES, LEASES, PLANNED, REFUSED, TICK
from executor.tenure import Tenure
from executor.turn import Turn
from signer import errors as signer_errors
from signer.errors import SignerError, StaleFence
from signer.policy import Policy
from signer.service import Signer

log = logging.getLogger("fenced.worker")
_TICK_THREADS = 4
_PLAN_THREADS = 16
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Served:
    """An account this worker can serve, and all that is needed for it."""

    account: Account
    policy: Policy
    client: ChainClient
    endpoint_url: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Durations in seconds."""

    lease_seconds: float
    tick_seconds: float
    plan_timeout_seconds: float
    rebroadcast_seconds: float


@dataclass(slots=True)
class _Desk:
    """What is under way for one account in this process."""

    progress: pipeline.Progress = field(default_factory=pipeline.Progress)
    ticking: Lease | None = None
    planning: set[str] = field(default_factory=set)
    missed: bool = False
    settle_only: bool = False
    released_at: float = float("-inf")

    @property
    def is_idle(self) -> bool:
        """Whether nothing of it is under way now."""
        return self.ticking is None and not self.planning


class Worker:
    """Runs until `stop`. `served` by account id; `definitions` are the strategies as configured here."""

    def __init__(
        self,
        name: str,
        database: Database,
        signer: Signer,
        served: Mapping[int, Served],
        definitions: Mapping[str, plan.Definition],
        pool: PlanPool,
        settings: Settings,
        crash: CrashHook,
    ) -> None:
        self.name = name
        self._database, self._signer, self._served = database, signer, served
        self._definitions, self._pool, self._settings, self._crash = definitions, pool, settings, crash
        self._dice = Random()  # noqa: S311  (nothing secret hangs on it)
        self._desks = {account_id: _Desk() for account_id in served}
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._turned_at = boottime()
        self._tickers = {
            s.client.name: ThreadPoolExecutor(_TICK_THREADS, f"tick-{s.client.name}") for s in served.values()
        }
        self._senders = ThreadPoolExecutor(_TICK_THREADS * max(1, len(self._tickers)), "send")
        self._planners = ThreadPoolExecutor(_PLAN_THREADS, "plan")
        self.tenure: Tenure | None = None
        self.is_outdated = False

    def run(self, tenure: Tenure) -> None:
        """Work until another thread calls `stop`, then end politely."""
        self.tenure = tenure
        threads = [
            threading.Thread(target=loop, name=name, args=(self._database, self._stop, self.wake), daemon=True)
            for name, loop in (
                ("schedule", partial(schedule_forever, clock=tenure.clock, crash=self._crash)),
                ("listen", listen_forever),
                ("locks", tell_locks_forever),
                ("waits", partial(tell_waits_forever, worker=self.name)),
            )
        ]
        tenure.start()
        for thread in threads:
            thread.start()
        try:
            self._turn_forever(tenure)
        finally:
            self._end(tenure)

    def stop(self) -> None:
        """Ask the worker to end. Not for a signal handler itself: it takes locks that the interrupted thread may hold."""
        self._stop.set()
        self._wake.set()

    def wake(self) -> None:
        """Look for work now."""
        self._wake.set()

    def working(self) -> set[Lease]:
        """The lease generations under which a tick is under way."""
        return {desk.ticking for desk in self._desks.values() if desk.ticking is not None}

    def is_live(self) -> bool:
        """Whether the loop turns and leases are looked after."""
        if self.tenure is not None and not self.tenure.is_alive():
            return False
        return boottime() - self._turned_at < max(10.0, 20 * self._settings.tick_seconds)

    def is_ready(self) -> bool:
        """Whether the loop turns and the database answers."""
        try:
            with self._database.read() as tx:
                strategies.seconds_to_next(tx)
        except ExecutorError:
            return False
        return self.is_live()

    def _turn_forever(self, tenure: Tenure) -> None:
        while not self._stop.is_set():
            woken = self._wake.wait(self._settings.tick_seconds)
            self._wake.clear()
            try:
                self._turn(tenure, woken)
                self._turned_at = boottime()
            except ExecutorError as error:
                FAILURES.labels(type(error).__name__).inc()
                log.warning("the worker's loop could not look for work", extra={"why": str(error)})
                self._stop.wait(1.0)

    def _turn(self, tenure: Tenure, woken: bool) -> None:
        tenure.even_out([lease for lease in tenure.held() if self._desks[lease.account_id].is_idle])
        held = {lease.account_id: lease for lease in tenure.held()}
        LEASES.set(len(held))
        if not held:
            return
        with self._database.read() as tx:
            work = set(accounts.with_work(tx, list(held)))
            # Deadlines are the database's clock: while that is in doubt nothing may end by them.
            to_plan = executions.select_to_plan(tx, list(held)) if tenure.clock.is_trusted else []
        for account_id, lease in held.items():
            desk = self._desks[account_id]
            if account_id not in work and desk.progress.token == lease.token:
                continue
            if desk.ticking is not None:
                desk.missed |= woken
                continue
            desk.ticking, desk.missed = lease, False
            ticking = self._tickers[self._served[account_id].client.name].submit(self._tick, lease, desk)
            ticking.add_done_callback(partial(self._ticked, desk))
        for account_id, strategy in to_plan:
            desk, lease = self._desks[account_id], held[account_id]
            if strategy not in desk.planning and desk.progress.token == lease.token:
                desk.planning.add(strategy)
                planning = self._planners.submit(self._plan, lease, desk, strategy)
                planning.add_done_callback(partial(self._planned, desk, strategy))

    def _ticked(self, desk: _Desk, _: Future[None]) -> None:
        """The tick ended, or was never begun. What was to be looked at meanwhile is looked at now."""
        desk.ticking = None
        if desk.missed:
            self.wake()

    def _planned(self, desk: _Desk, strategy: str, planning: Future[int]) -> None:
        """The planning ended, or was never begun. There may be something to reserve, and more to plan."""
        desk.planning.discard(strategy)
        if not planning.cancelled() and planning.result():
            self.wake()

    def _turn_of(self, lease: Lease) -> Turn:
        served = self._served[lease.account_id]
        return Turn(
            self._database,
            served.account,
            served.policy,
            served.client.finality,
            tuple(served.client.labels),
            lease.token,
            lease.lease_id,
            self._crash,
            self._settings.rebroadcast_seconds,
            self._dice,
        )

    def _tick(self, lease: Lease, desk: _Desk) -> None:
        served, tenure = self._served[lease.account_id], self._tenure()
        if not tenure.is_trusted(lease):
            return  # dropped since the loop looked: nothing is asked of a node under it
        try:
            with TICK.time():
                with self._database.read() as tx:
                    has_requests = bool(requests.select_waiting(tx, lease.account_id))
                pipeline.tick(
                    self._turn_of(lease),
                    served.client,
                    self._signer,
                    desk.progress,
                    self._senders,
                    has_requests,
                    lambda: tenure.is_trusted(lease),
                    lambda: tenure.clock.is_trusted,
                )
        except Exception as error:  # noqa: BLE001  (a tick's failure is told and the next tick looks again)
            self._failed(lease, "tick", error)

    def _plan(self, lease: Lease, desk: _Desk, strategy: str) -> int:
        """Plan what is due; how many executions moved."""
        served, tenure = self._served[lease.account_id], self._tenure()
        if not tenure.is_trusted(lease):
            return 0
        try:
            definition = self._definitions.get(strategy)
            planner = (
                None
                if definition is None
                else plan.Planner(self._pool, definition, served.endpoint_url, self._settings.plan_timeout_seconds)
            )
            report = plan.run(self._turn_of(lease), served.client, strategy, planner)
            PLANNED.labels(served.account.name).inc(report.moved)
            if report.is_unplannable and self._may_be_planned_elsewhere(desk):
                log.warning(
                    "another revision of a strategy is due, the account is released",
                    extra={"strategy": strategy},
                )
                desk.settle_only, desk.released_at = True, boottime()
                tenure.set_patience({a: self._settings.lease_seconds for a, d in self._desks.items() if d.settle_only})
                tenure.give_back(lease, 2 * self._settings.lease_seconds)
            return report.moved
        except Exception as error:  # noqa: BLE001  (as for a tick)
            self._failed(lease, "plan", error)
            return 0

    def _may_be_planned_elsewhere(self, desk: _Desk) -> bool:
        """Whether to release an account this worker cannot plan for: somebody with the right revision may wait for it (P18b).

        Taken again since nobody did, it is released again from time to time once there is another worker, which may be newer.
        """
        if boottime() - desk.released_at < 4 * self._settings.lease_seconds:
            return False
        if not desk.settle_only:
            return True
        with self._database.read() as tx:
            return workers.live(tx, self._settings.lease_seconds) > 1

    def _failed(self, lease: Lease, stage: str, error: Exception) -> None:
        """Tell a failure; losing the fence is evidence worth a row, and the lease is dropped."""
        FAILURES.labels(type(error).__name__).inc()
        fields = {"account_id": lease.account_id, "token": lease.token, "stage": stage, "why": str(error)}
        desk = self._desks[lease.account_id]
        if isinstance(error, WrongChain | Inconsistent) and desk.progress.blocked is None:
            desk.progress = pipeline.Progress()  # so that everything is compared now, which halts the account (P15)
        if isinstance(error, FenceRefused | StaleFence):
            constraint = error.constraint if isinstance(error, FenceRefused) else "signer_fence"
            detail = error.detail if isinstance(error, FenceRefused) else str(error)
            REFUSED.labels(constraint).inc()
            if constraint == "fence_epoch":
                # P27: the schema has moved past this release. Leases are given back, not dropped, and the process ends.
                log.critical("this release does not fit the database any more: ending", extra=fields)
                self.is_outdated = True
                self.stop()
                return
            log.warning("a stale write was refused", extra={**fields, "constraint": constraint})
            self._tenure().drop(lease, f"a write was refused by {constraint}")
            try:
                self._database.write(
                    lambda tx: accounts.note_refused(
                        tx, lease.account_id, constraint, stage, lease.token, self.name, detail
                    )
                )
            except ExecutorError as unwritten:
                log.warning("the refused write could not be noted", extra={"why": str(unwritten)})
        elif isinstance(error, CommitUnknown | signer_errors.CommitUnknown):
            self._tenure().drop(lease, "whether a commit took effect is unknown")
            log.warning("a commit is unknown, the lease is dropped", extra=fields)
        elif isinstance(error, ExecutorError | ChainError | SignerError):
            log.warning("a stage did not finish", extra=fields)
        else:
            log.error("a stage failed unexpectedly", extra=fields, exc_info=error)

    def _end(self, tenure: Tenure) -> None:
        deadline = boottime() + _STOP_SECONDS
        for executor in [self._planners, *self._tickers.values()]:
            executor.shutdown(wait=False, cancel_futures=True)
        self._pool.close()
        while self.working() and boottime() < deadline:
            time.sleep(0.01)
        self._senders.shutdown(wait=False, cancel_futures=True)
        tenure.stop()

    def _tenure(self) -> Tenure:
        if self.tenure is None:
            raise RuntimeError("a worker works only under a tenure")
        return self.tenure
