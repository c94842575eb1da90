"""Named boundaries between act and record, where tests end, pause or cut off a worker. Inert unless armed.

FENCED_CRASH=point:action:marker arms one point. `kill` ends the process with SIGKILL. `stop` pauses it with SIGSTOP until
somebody sends SIGCONT. `exit` asks it to end (SIGTERM) and goes on. `cut` waits at the point until the file marker.go
exists; meanwhile the test ends the worker's database sessions. The marker file is made first and gets the process id, so
that the point fires once, also across restarts and in whichever process that shares the marker reaches it first.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

from executor.errors import ConfigError

CrashHook = Callable[["CrashPoint"], None]
_LOOK_SECONDS = 0.01


class CrashPoint(StrEnum):
    """One point per boundary; the name says what has just happened.

    A name in -ing: rows are written in a transaction that is not committed yet.
    """

    SCHEDULE_COMPUTED = "schedule.computed"
    SCHEDULE_RECORDED = "schedule.recorded"
    PLAN_EXPIRED = "plan.expired"
    PLAN_COUNTED = "plan.counted"
    PLAN_MADE = "plan.made"
    PLAN_RECORDED = "plan.recorded"
    RESERVE_PREPARED = "reserve.prepared"
    RESERVE_WAITING = "reserve.waiting"
    RESERVE_RECORDED = "reserve.recorded"
    RESERVE_HALTED = "reserve.halted"
    SIGN_SELECTED = "sign.selected"
    SIGN_JOURNALING = "sign.journaling"
    SIGN_JOURNALED = "sign.journaled"
    SIGN_MADE = "sign.made"
    SIGN_KEEPING = "sign.keeping"
    SIGN_KEPT = "sign.kept"
    SIGN_SIGNED = "sign.signed"
    SIGN_STORED = "sign.stored"
    SIGN_HALTED = "sign.halted"
    BROADCAST_SELECTED = "broadcast.selected"
    BROADCAST_SENT = "broadcast.sent"
    BROADCAST_RECORDED = "broadcast.recorded"
    CONFIRM_SEEN = "confirm.seen"
    CONFIRM_RECORDED = "confirm.recorded"
    FINALIZE_SEEN = "finalize.seen"
    FINALIZE_RECORDED = "finalize.recorded"
    RECONCILE_FENCED = "reconcile.fenced"
    RECONCILE_SEEN = "reconcile.seen"
    RECONCILE_HALTED = "reconcile.halted"
    RECONCILE_FOREIGN_SEEN = "reconcile.foreign_seen"
    RECONCILE_FOREIGN_CLOSED = "reconcile.foreign_closed"
    RECONCILE_RECORDED = "reconcile.recorded"
    LEASE_SELECTED = "lease.selected"
    LEASE_ACQUIRING = "lease.acquiring"
    LEASE_ACQUIRED = "lease.acquired"
    LEASE_RENEWING = "lease.renewing"
    LEASE_RENEWED = "lease.renewed"
    LEASE_RETURNING = "lease.returning"
    LEASE_RETURNED = "lease.returned"
    LEASE_RELEASING = "lease.releasing"
    LEASE_RELEASED = "lease.released"
    RECORD_HELD = "record.held"
    RECORD_WRITTEN = "record.written"
    RECORD_COMMITTED = "record.committed"


def inert(_: CrashPoint) -> None:
    """What runs in production: nothing."""


def hook_from(environment: Mapping[str, str]) -> CrashHook:
    """The hook that FENCED_CRASH arms, or the inert one.

    Raises:
        ConfigError: FENCED_CRASH names no point or action.
    """
    wish = environment.get("FENCED_CRASH")
    if not wish:
        return inert
    try:
        point, action, marker = wish.split(":", 2)
        armed, act = CrashPoint(point), _ACTIONS[action]
    except (ValueError, KeyError):
        raise ConfigError(
            f"FENCED_CRASH is point:{'|'.join(_ACTIONS)}:marker-file, for tests only: unset it."
        ) from None

    def fire(reached: CrashPoint) -> None:
        if reached is armed:
            try:
                made = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            except FileExistsError:
                return
            os.write(made, f"{os.getpid()}\n".encode())
            os.close(made)
            act(Path(marker))

    return fire


def _kill(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(_: Path) -> None:
    # To this very thread: it stops before its next step, while a signal to the process may stop it a little later.
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def _exit(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _cut(marker: Path) -> None:
    go = marker.with_name(marker.name + ".go")
    while not go.exists():
        time.sleep(_LOOK_SECONDS)


_ACTIONS: dict[str, Callable[[Path], None]] = {"kill": _kill, "stop": _stop, "exit": _exit, "cut": _cut}
