"""Time as the worker may use it: durations on CLOCK_BOOTTIME, which counts a suspended machine too.

Every instant that is stored or compared between workers is the database's clock_timestamp(), never ours. Whether that
clock runs evenly is judged here, from what it said and what we counted meanwhile.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Final

BEHIND_SECONDS: Final = 1.0
"""A clock this far behind the newest instant any worker has seen went back."""
TOLERANCE_SECONDS: Final = 2.0
TOLERANCE_SHARE: Final = 0.01
"""Between two looks the two clocks may differ by the greater of the two: slewing is no step."""
AGREEING: Final = 3
"""After a step, this many looks that agree with the one before make the clock believed again."""
SPACING_SECONDS: Final = 0.5
"""Looks closer together than this count as one."""


def boottime() -> float:
    """Seconds since boot, suspended time included; only differences of it mean something."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class ClockLook:
    """What one question for the time brought: the database's clock, read between `before` and `after` of our boottime.

    `max_seen` is the newest instant that any worker has believed; `is_doubted` says that one of them is in doubt now.
    """

    now: datetime
    before: float
    after: float
    max_seen: datetime
    is_doubted: bool


@dataclass(frozen=True, slots=True)
class ClockVerdict:
    """Whether the look's instant may be acted on; `anomaly` says what this very look showed, in one sentence.

    `resumes` marks the look that ended a doubt: what it said is the newest instant seen from now on, earlier or later.
    """

    is_trusted: bool
    anomaly: str | None = None
    resumes: bool = False


class ClockJudge:
    """Judges the looks of one process at the database's clock, in any order of their arrival. Pure: no clock of its own.

    A step is doubted until the clock has run evenly for three looks, and then believed, forward or back, however far it
    went: a doubt never lasts as long as the jump. A process without a look of its own joins the doubt of the others.
    """

    def __init__(self) -> None:
        self._last: ClockLook | None = None
        self._agreed: int | None = None
        self._counted_at = float("-inf")
        self._refuted: datetime | None = None

    def judge(self, look: ClockLook) -> ClockVerdict:
        """The verdict on one look."""
        anomaly = self._anomaly(look)
        joins = self._last is None and look.is_doubted
        if self._last is None or look.before > self._last.before:
            self._last = look
        if anomaly is not None or joins:
            self._agreed, self._counted_at = 0, look.before
            return ClockVerdict(is_trusted=False, anomaly=anomaly)
        if self._agreed is None:
            return ClockVerdict(is_trusted=True)
        if look.before - self._counted_at >= SPACING_SECONDS:
            self._agreed, self._counted_at = self._agreed + 1, look.before
        if self._agreed < AGREEING:
            return ClockVerdict(is_trusted=False)
        # The mark of before a step back, until somebody has written the new one.
        self._agreed, self._refuted = None, look.max_seen
        return ClockVerdict(is_trusted=True, resumes=True)

    def _anomaly(self, look: ClockLook) -> str | None:
        if self._last is not None:
            least, most = look.before - self._last.after, look.after - self._last.before
            moved = (look.now - self._last.now).total_seconds()
            off = moved - most if moved > most else min(0.0, moved - least)
            if abs(off) > max(TOLERANCE_SECONDS, TOLERANCE_SHARE * abs(most)):
                return (
                    f"the database's clock stepped {'forward' if off > 0 else 'back'} by {abs(off):.1f} s: it moved "
                    f"{moved:.1f} s while this worker counted {most:.1f} s"
                )
        behind = (look.max_seen - look.now).total_seconds()
        if self._agreed is None and behind > BEHIND_SECONDS and look.max_seen != self._refuted:
            return f"the database's clock is {behind:.1f} s behind what a worker has seen before"
        return None
