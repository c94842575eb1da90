"""Named boundaries between act and record, where tests end or pause a worker. Inert unless armed.

FENCED_CRASH=point:action:marker arms one point: `kill` ends the process with SIGKILL, `stop` pauses it with SIGSTOP
until somebody sends SIGCONT. The marker file is made first, so that the point fires once, also across restarts.
"""

import os
import signal
import threading
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from executor.errors import ConfigError

CrashHook = Callable[["CrashPoint"], None]


class CrashPoint(StrEnum):
    """One point per boundary; the name says what has just happened."""

    RECORD_HELD = "record.held"
    RECORD_WRITTEN = "record.written"
    RECORD_COMMITTED = "record.committed"
    PLAN_COUNTED = "plan.counted"
    PLAN_MADE = "plan.made"
    PLAN_RECORDED = "plan.recorded"
    RESERVE_PREPARED = "reserve.prepared"
    RESERVE_RECORDED = "reserve.recorded"
    SIGN_SELECTED = "sign.selected"
    SIGN_JOURNALED = "sign.journaled"
    SIGN_SIGNED = "sign.signed"
    SIGN_STORED = "sign.stored"
    BROADCAST_SENT = "broadcast.sent"
    BROADCAST_RECORDED = "broadcast.recorded"
    CONFIRM_SEEN = "confirm.seen"
    CONFIRM_RECORDED = "confirm.recorded"
    FINALIZE_SEEN = "finalize.seen"
    FINALIZE_RECORDED = "finalize.recorded"
    LEASE_ACQUIRED = "lease.acquired"
    RECONCILE_RECORDED = "reconcile.recorded"


def inert(_: CrashPoint) -> None:
    """What runs in production: nothing."""


def hook_from(environment: dict[str, str]) -> CrashHook:
    """The hook that FENCED_CRASH arms, or the inert one.

    Raises:
        ConfigError: FENCED_CRASH names no point or action.
    """
    wish = environment.get("FENCED_CRASH")
    if not wish:
        return inert
    try:
        point, action, marker = wish.split(":", 2)
        armed, what = CrashPoint(point), {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[action]
    except (ValueError, KeyError):
        raise ConfigError("FENCED_CRASH is point:kill|stop:marker-file, for tests only: unset it.") from None

    def fire(reached: CrashPoint) -> None:
        if reached is armed:
            try:
                os.close(os.open(Path(marker), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                return
            # To this very thread: it stops before its next step, while a signal to the process may stop it a little later.
            signal.pthread_kill(threading.get_ident(), what)

    return fire
