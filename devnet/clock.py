"""Time, the machine's or one that moves on order only: what blocks carry, and what delays and lifetimes are measured by.

Two readings. `now` is the chain's second, which block timestamps come from and tests may shift; it never takes a block
below its parent. `elapsed` counts seconds for delays, intervals and lifetimes; shifting the chain's time leaves it alone.

Blocks made within one second share its timestamp, as on anvil: a chain with a block every 50 ms would otherwise run
twenty times as fast as the clocks of those who test against it. Where every block must be later than its parent, as on
mainnet, order a `block_interval` of a second or more.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

NANO = 10**9


def _whole_second() -> int:
    """The machine's present second, in nanoseconds: a clock that stops begins at no fraction, so that runs are alike."""
    return time.time_ns() // NANO * NANO


@dataclass(eq=False, slots=True)
class Timer:
    """A call to come, due when `elapsed` reaches `due` nanoseconds, and every `period` nanoseconds from then on."""

    due: int
    call: Callable[[], object]
    period: int = 0
    cancelled: bool = False

    def cancel(self) -> None:
        """Forget the call; does nothing once it is over."""
        self.cancelled = True


@dataclass(frozen=True, slots=True)
class ClockState:
    """What a snapshot keeps of a clock; `wall` (nanoseconds since 1970) only of a manual one, the machine's goes on."""

    offset: int
    skew: int
    next_exact: int | None
    block_interval: int | None
    wall: int | None


class Clock:
    """`offset` and `skew` seconds are added to the wall clock; `next_exact` is the time ordered for the next block alone,
    `block_interval` the seconds from each block to the next where that is ordered.

    With `manual` time stands still but for `advance`.
    """

    def __init__(self, *, manual: bool = False) -> None:
        self.offset = 0
        self.skew = 0
        self.next_exact: int | None = None
        self.block_interval: int | None = None
        self.manual = manual
        self._origin = time.monotonic_ns()  # where `elapsed` counts from
        self._reading: int | None = 0 if manual else None  # nanoseconds elapsed, while they are not the machine's
        self._epoch = _whole_second()  # nanoseconds since 1970 where `elapsed` is 0, while the clock is manual
        self._timers: list[tuple[int, int, Timer]] = []
        self._order = itertools.count()
        self._changed = asyncio.Event()

    def now(self) -> int:
        """The chain's present second."""
        return self._wall() // NANO + self.offset + self.skew

    def elapsed(self) -> float:
        """Seconds since the clock was made; unmoved by shifts of the chain's time."""
        return self._elapsed() / NANO

    def start_at(self, timestamp: int) -> None:
        """Make this second the present one; time runs on from it."""
        self.offset += timestamp - self.now()

    def preview(self, parent: int) -> int:
        """The timestamp a block on top of `parent`'s would get: never earlier, and within one second the same."""
        if self.next_exact is not None:
            wanted = self.next_exact
        elif self.block_interval is not None:
            wanted = parent + self.block_interval
        else:
            wanted = self.now()
        return max(wanted, parent)

    def tick(self, parent: int) -> int:
        """As `preview`, and an ordered time is used up: the clock goes on from it."""
        timestamp = self.preview(parent)
        if self.next_exact is not None:
            self.next_exact = None
            self.start_at(timestamp)
        return timestamp

    def call_at(self, elapsed: float, call: Callable[[], object]) -> Timer:
        """Run `call` when `elapsed()` has reached this many seconds.

        While it runs the clock reads that very moment, however late the machine is. Calls due at the same moment run in
        the order they were asked for.
        """
        return self._enter(Timer(round(elapsed * NANO), call))

    def call_every(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Run `call` each time this much has passed. A machine that cannot keep up leaves moments out."""
        period = max(round(seconds * NANO), 1)
        return self._enter(Timer(self._elapsed() + period, call, period))

    async def sleep(self, seconds: float) -> None:
        """Wait until this much time has passed, be it the machine's or ordered."""
        passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not passed.done():
                passed.set_result(None)

        timer = self._enter(Timer(self._elapsed() + round(seconds * NANO), wake))
        try:
            await passed
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        """Move a manual clock on, running what falls due on the way at its own moment.

        Raises ValueError where the clock runs by itself.
        """
        if not self.manual:
            raise ValueError("only a manual clock can be advanced: set it manual first")
        until = self._elapsed() + round(seconds * NANO)
        self._run_due(until)
        self._reading = until

    def set_manual(self, *, manual: bool) -> None:
        """Stop the clock until it is advanced, or let it run on from where it stands."""
        if manual == self.manual:
            return
        present, elapsed = self.now(), self._elapsed()
        if manual:
            self._epoch = _whole_second() - elapsed
        self.manual = manual
        self._origin = time.monotonic_ns() - elapsed
        self._reading = elapsed if manual else None
        self.start_at(present)
        self._changed.set()

    def save(self) -> ClockState:
        """What a snapshot needs to come back to the present time of the chain."""
        wall = self._wall() if self.manual else None
        return ClockState(self.offset, self.skew, self.next_exact, self.block_interval, wall)

    def restore(self, state: ClockState) -> None:
        """Shift the chain's time back to a snapshot's: to the second on a manual clock, by the offset on the machine's."""
        self.offset, self.skew = state.offset, state.skew
        self.next_exact, self.block_interval = state.next_exact, state.block_interval
        if self.manual and state.wall is not None:
            self._epoch = state.wall - self._elapsed()

    async def run(self) -> None:
        """Run what falls due while the clock runs by itself, until cancelled. Raises what a call raises."""
        while True:
            self._changed.clear()
            wait = self._until_due()
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            except TimeoutError:
                try:
                    self._run_due(self._elapsed())
                finally:
                    self._reading = self._elapsed() if self.manual else None

    def _elapsed(self) -> int:
        return time.monotonic_ns() - self._origin if self._reading is None else self._reading

    def _wall(self) -> int:
        """Nanoseconds since 1970 at the present reading."""
        if self.manual:
            return self._epoch + self._elapsed()
        late = 0 if self._reading is None else time.monotonic_ns() - self._origin - self._reading
        return time.time_ns() - late

    def _enter(self, timer: Timer) -> Timer:
        heapq.heappush(self._timers, (timer.due, next(self._order), timer))
        self._changed.set()
        return timer

    def _until_due(self) -> float | None:
        """Seconds until the first timer, None where nothing will fall due by itself."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        if self.manual or not self._timers:
            return None
        return max(self._timers[0][0] - self._elapsed(), 0) / NANO

    def _run_due(self, until: int) -> None:
        while self._timers and self._timers[0][0] <= until:
            _, _, timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            self._reading = timer.due
            timer.call()
            if timer.period and not timer.cancelled:
                timer.due += timer.period
                if not self.manual:
                    timer.due = max(timer.due, time.monotonic_ns() - self._origin)
                self._enter(timer)
