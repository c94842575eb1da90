"""The leases this worker holds: taken by fair share, renewed in one batch, trusted for less long than they last, given back politely.

Trust is counted on CLOCK_BOOTTIME from before the request was sent, so that the local clock may shorten it and never
extend it. Losing trust stops work; the database refuses what a worker does that never noticed (G6).
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from executor.clock import boottime
from executor.clock_guard import ClockGuard
from executor.crashpoints import CrashHook, CrashPoint
from executor.database import CommitUnknown, Database, Tx
from executor.errors import ExecutorError
from executor.records import Lease
from executor.store import leases, workers
from signer.errors import SignerError

log = logging.getLogger("fenced.tenure")
_MARGIN_SECONDS = 1.0
_RETRY_SECONDS = 0.1
_LOOK_SECONDS = 0.5
_OFFER_SECONDS = 3 * _LOOK_SECONDS
"""How long this worker stays away from an account it has more than its share of; others look that often in it."""
EXIT_UNTRUSTED = 70
"""The exit code of a worker whose trust ran out while its work would not stop."""


@dataclass(slots=True)
class _Kept:
    lease: Lease
    trusted_until: float


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this worker is: the id decides nothing about leases, the name is for people."""

    worker_id: UUID
    name: str
    release: str


class Tenure:
    """Holds leases on `accounts` (their ids); `floor` tells the signer's fence of one, asked before each acquisition (P10).

    `ttl_seconds` is a lease's length. Two threads: one acquires and renews on its own connection, one watches trust.
    `clock` watches the database's clock for the whole process; while it is in doubt, leases are renewed and none is acquired.
    """

    def __init__(
        self,
        database: Database,
        identity: Identity,
        ttl_seconds: float,
        accounts: Sequence[int],
        floor: Callable[[int], int],
        crash: CrashHook,
        on_gained: Callable[[], None],
        working: Callable[[], set[Lease]],
    ) -> None:
        self._database = database
        self._identity = identity
        self._ttl = ttl_seconds
        self._trust = ttl_seconds - min(_MARGIN_SECONDS, ttl_seconds / 5) - ttl_seconds / 100
        self._accounts, self._floor = tuple(accounts), floor
        self._crash, self._on_gained, self._working = crash, on_gained, working
        self.clock = ClockGuard()
        self._renew_at = float("-inf")
        self._lock = threading.Lock()
        self._kept: dict[int, _Kept] = {}
        self._shunned: dict[int, float] = {}
        self._patience: dict[int, float] = {}
        self._ahead: dict[int, tuple[datetime, float]] = {}
        self._live, self._share = 1, len(self._accounts)
        self._offered: dict[int, int] = {}
        self._unwanted: dict[int, int] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._renew_forever, name="tenure", daemon=True),
            threading.Thread(target=self._watch_forever, name="watchdog", daemon=True),
        ]

    def start(self) -> None:
        """Begin to take and renew leases."""
        for thread in self._threads:
            thread.start()

    def held(self) -> list[Lease]:
        """The leases that may be worked under now."""
        now = boottime()
        with self._lock:
            return [kept.lease for kept in self._kept.values() if kept.trusted_until > now]

    def is_alive(self) -> bool:
        """Whether its threads run."""
        return all(thread.is_alive() for thread in self._threads)

    def is_trusted(self, lease: Lease) -> bool:
        """Whether this very generation may still be worked under."""
        with self._lock:
            kept = self._kept.get(lease.account_id)
            return kept is not None and kept.lease == lease and kept.trusted_until > boottime()

    def drop(self, lease: Lease, why: str) -> None:
        """Forget a lease that was lost; it is not given back, somebody else has it."""
        with self._lock:
            kept = self._kept.get(lease.account_id)
            if kept is None or kept.lease != lease:
                return
            del self._kept[lease.account_id]
        log.warning("lease lost", extra={"account_id": lease.account_id, "token": lease.token, "why": why})

    def give_back(self, lease: Lease, shun_seconds: float = 0.0) -> None:
        """Release a lease and stay away from its account for a while (P18b)."""
        with self._lock:
            if self._kept.get(lease.account_id, None) is None or self._kept[lease.account_id].lease != lease:
                return
            del self._kept[lease.account_id]
            self._shunned[lease.account_id] = boottime() + shun_seconds

        def write(tx: Tx) -> None:
            leases.release(tx, [lease])
            self._crash(CrashPoint.LEASE_RETURNING)

        self._database.write(write)
        self._crash(CrashPoint.LEASE_RETURNED)

    def even_out(self, idle: Sequence[Lease]) -> None:
        """Give back, of the leases in `idle`, what is above this worker's fair share, so that one that came later has work too.

        An account that nobody else takes comes back and stays, until another number of workers lives.
        """
        with self._lock:
            above = len(self._kept) - self._share
            offered = [lease for lease in idle if self._unwanted.get(lease.account_id) != self._live]
        for lease in offered[: max(0, above)]:
            self._offered[lease.account_id] = lease.token
            self.give_back(lease, _OFFER_SECONDS)

    def set_patience(self, patience: Mapping[int, float]) -> None:
        """Seconds an account must have been free before this worker takes it (P18b)."""
        self._patience = dict(patience)

    def stop(self) -> None:
        """Give every lease back at once, so that nobody waits for an expiry."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5)
        with self._lock:
            mine = [kept.lease for kept in self._kept.values()]
            self._kept.clear()

        def write(tx: Tx) -> None:
            leases.release(tx, mine)
            workers.stopped(tx, self._identity.worker_id)
            self._crash(CrashPoint.LEASE_RELEASING)

        try:
            self._database.write(write)
            self._crash(CrashPoint.LEASE_RELEASED)
        except ExecutorError as error:
            log.warning("leases could not be released; they expire", extra={"why": str(error)})

    def _renew_forever(self) -> None:
        wait = 0.0
        while not self._stop.wait(wait):
            try:
                wait = self._round()
            except CommitUnknown as error:
                # P12: whether it took effect is unknown. Everything held is dropped and asked for again.
                with self._lock:
                    self._kept.clear()
                log.warning("a lease commit is unknown, leases dropped", extra={"why": str(error)})
                wait = 1.0
            except (ExecutorError, SignerError) as error:
                log.warning("leases could not be renewed", extra={"why": str(error)})
                wait = min(1.0, self._ttl / 10)
            except Exception as error:
                log.exception("renewing leases failed unexpectedly", extra={"why": str(error)})
                wait = min(1.0, self._ttl / 10)

    def _round(self) -> float:
        """Renew when a third of a lease has passed or something was skipped; look for free accounts every time."""
        if boottime() >= self._renew_at:
            me = self._identity
            self._database.write(lambda tx: workers.seen(tx, me.worker_id, me.name, me.release))
            skipped = self._renew()
            self._renew_at = boottime() + (_RETRY_SECONDS if skipped else self._ttl / 3)
            with self._database.read() as tx:
                self._live = max(1, workers.live(tx, self._ttl))
            self._share = -(-len(self._accounts) // self._live)
        if self.clock.look(self._database) is not None:
            self._acquire()
        return max(0.01, min(_LOOK_SECONDS, self._renew_at - boottime()))

    def _renew(self) -> bool:
        """Renew all in one statement; what was locked at that moment is retried, what is no longer ours is dropped."""
        with self._lock:
            mine = [kept.lease for kept in self._kept.values()]
        if not mine:
            return False
        sent = boottime()

        def write(tx: Tx) -> tuple[set[int], set[int]]:
            renewed = leases.renew(tx, mine, self._ttl)
            standing = leases.standing(tx, mine) if len(renewed) < len(mine) else renewed
            self._crash(CrashPoint.LEASE_RENEWING)
            return renewed, standing

        renewed, standing = self._database.write(write)
        self._crash(CrashPoint.LEASE_RENEWED)
        with self._lock:
            for lease in mine:
                kept = self._kept.get(lease.account_id)
                if kept is not None and kept.lease == lease and lease.account_id in renewed:
                    kept.trusted_until = sent + self._trust
        for lease in mine:
            if lease.account_id not in standing:
                self.drop(lease, "it expired or was taken over")
        return len(renewed) < len(standing)

    def _acquire(self) -> None:
        now = boottime()
        with self._lock:
            wanted = [a for a in self._accounts if a not in self._kept and self._shunned.get(a, 0.0) <= now]
            kept = len(self._kept)
        if not wanted:
            return
        with self._database.read() as tx:
            free = self._free(leases.select_takeable(tx, wanted))
        if not free:
            return
        self._crash(CrashPoint.LEASE_SELECTED)
        floors = {account_id: self._floor(account_id) for account_id in free}
        unchanged = {account_id: renewed_at for account_id, renewed_at in free.items() if renewed_at is not None}
        # At least one at a time even above the fair share: a free account is worse than an uneven one.
        most = max(1, self._share - kept)
        sent = boottime()

        def write(tx: Tx) -> list[Lease]:
            gained = leases.acquire(tx, floors, self._patience, self._identity.name, self._ttl, most, unchanged)
            if gained:
                self._crash(CrashPoint.LEASE_ACQUIRING)
            return gained

        gained = self._database.write(write)
        if gained:
            self._crash(CrashPoint.LEASE_ACQUIRED)
        with self._lock:
            for lease in gained:
                self._kept[lease.account_id] = _Kept(lease, sent + self._trust)
        for lease in gained:
            if self._offered.pop(lease.account_id, None) == lease.token - 1:
                self._unwanted[lease.account_id] = self._live
            log.info("lease acquired", extra={"account_id": lease.account_id, "token": lease.token})
        if gained:
            self._on_gained()

    def _free(self, found: Sequence[leases.Takeable]) -> dict[int, datetime | None]:
        """The accounts to take. One whose lease lies in the future comes with its renewal, once we saw that unchanged for its length.

        The database's clock was set back under it; its holder, if it lives, renews it within a third of its length.
        """
        now, before = boottime(), self._ahead
        self._ahead = {}
        free: dict[int, datetime | None] = {}
        for one in found:
            if one.ahead is None:
                free[one.account_id] = None
                continue
            renewed_at, since = before.get(one.account_id, (None, now))
            self._ahead[one.account_id] = (one.ahead, since if renewed_at == one.ahead else now)
            if now - self._ahead[one.account_id][1] > one.length_seconds + self._patience.get(one.account_id, 0.0):
                free[one.account_id] = one.ahead
        return free

    def _watch_forever(self) -> None:
        """End the process when trust has run out and its work has not stopped within a third of a lease."""
        overdue: dict[Lease, float] = {}
        while not self._stop.wait(min(0.5, self._ttl / 10)):
            now, working = boottime(), self._working()
            with self._lock:
                trusted = {kept.lease for kept in self._kept.values() if kept.trusted_until > now}
            overdue = {lease: overdue.get(lease, now) for lease in working - trusted}
            if any(now - since > max(2.0, self._ttl / 3) for since in overdue.values()):
                log.critical("trust ran out and work did not stop: ending the process")
                os._exit(EXIT_UNTRUSTED)
