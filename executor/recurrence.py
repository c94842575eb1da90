"""Schedules turned into slots: pure functions of expression, zone and window.

The cron library sees naive local time only; what happens at a change of the clock is decided here, in one place:

* fixed-time expression (neither minute nor hour starts with `*`): a time inside a spring gap runs once, at the first
  instant after the gap; a time that an autumn fold repeats runs at its first occurrence only;
* any other expression keeps its elapsed cadence: nothing in a gap, both occurrences in a fold.

Zones come from the pinned `tzdata` package, never from the host: two replicas must compute the same slots (P20).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, Literal, TypeAlias

from cronsim import CronSim, CronSimError

from executor.errors import ConfigError
from executor.timezones import load_zone

Misfire: TypeAlias = Literal["latest", "skip", "all"]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ALIASES: Final = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}
_SECOND: Final = timedelta(seconds=1)
_STRIDE: Final = timedelta(hours=12)
_SLOT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(:\d\d)?Z", re.ASCII)


class Cron:
    """A five-field cron expression, or one of @hourly, @daily, @weekly, @monthly, in an IANA zone.

    Raises:
        ConfigError: the expression or zone cannot be read, or the expression never happens.
    """

    def __init__(self, expression: str, zone: str = "UTC") -> None:
        self.expression, self.zone = expression, zone
        self._zone = load_zone(zone)
        self._fields = _parse(expression)
        minute, hour = self._fields.split()[:2]
        self._fixed = not minute.startswith("*") and not hour.startswith("*")

    def due(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """The newest `limit` slots s with after < s <= until, ascending, as aware UTC instants."""
        return list(islice(self._descending(_whole(after), _whole(until)), limit))[::-1]

    def next(self, after: datetime) -> datetime | None:
        """The first slot after `after`, or None if there is none within fifty years."""
        after = _whole(after)
        while True:
            offset = self._offset(after)
            match = _first(CronSim(self._fields, _naive(after, offset)))
            if match is None:
                return None
            slot = (match - offset).replace(tzinfo=UTC)
            change = _first(self._changes(after, slot))
            if change is None:
                if not self._repeated(slot):
                    return slot
                after = slot
            elif self._lands(change) or self._begins(change):
                return change
            else:
                after = change

    def _descending(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Slots in (after, until], newest first: each stretch of constant offset, then the change that began it."""
        end = until + _SECOND
        for change in [*reversed(list(self._changes(after, until))), None]:
            begin = after + _SECOND if change is None else change
            offset = self._offset(begin)
            yielded = None
            for match in CronSim(self._fields, _naive(end, offset), reverse=True):
                slot = (match - offset).replace(tzinfo=UTC)
                if slot < begin:
                    break
                if not self._repeated(slot):
                    yielded = slot
                    yield slot
            if change is not None:
                if yielded != change and self._lands(change):
                    yield change
                end = change

    def _changes(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The instants in (after, until] at which the zone's offset changes, ascending."""
        low, before = after, self._offset(after)
        while low < until:
            high = min(low + _STRIDE, until)
            if self._offset(high) != before:
                left, right = low, high
                while right - left > _SECOND:
                    middle = _whole(left + (right - left) / 2)
                    left, right = (middle, right) if self._offset(middle) == before else (left, middle)
                yield right
                high, before = right, self._offset(right)
            low = high

    def _lands(self, change: datetime) -> bool:
        """Whether a fixed time falls into the gap that `change` opens, and so runs at `change`."""
        before, behind = self._offset(change - _SECOND), self._offset(change)
        if not self._fixed or behind <= before:
            return False
        match = _first(CronSim(self._fields, _naive(change, before) - _SECOND))
        return match is not None and match < _naive(change, behind)

    def _begins(self, change: datetime) -> bool:
        """Whether `change` itself, in its new offset, is a slot."""
        local = _naive(change, self._offset(change))
        return _first(CronSim(self._fields, local - _SECOND)) == local and not self._repeated(change)

    def _repeated(self, slot: datetime) -> bool:
        """Whether `slot` is the second occurrence of a fixed time that a fold repeats."""
        return self._fixed and slot.astimezone(self._zone).fold == 1

    def _offset(self, instant: datetime) -> timedelta:
        return instant.astimezone(self._zone).utcoffset() or timedelta()


class Every:
    """A slot each `seconds` since `anchor`, in elapsed time. Raises ConfigError below one second or on a fraction."""

    def __init__(self, seconds: float, anchor: datetime = EPOCH) -> None:
        if seconds < 1 or seconds != int(seconds):
            raise ConfigError(
                'every must be a whole number of seconds and at least 1s; write, for example, every = "5s".'
            )
        self.seconds, self.anchor = int(seconds), _whole(anchor)

    def due(self, after: datetime, until: datetime, limit: int) -> list[datetime]:
        """The newest `limit` slots s with after < s <= until, ascending, as aware UTC instants."""
        first, last = self._index(after) + 1, self._index(until)
        return [self._slot(index) for index in range(max(first, last - limit + 1), last + 1)]

    def next(self, after: datetime) -> datetime | None:
        """The first slot after `after`."""
        return self._slot(self._index(after) + 1)

    def _index(self, instant: datetime) -> int:
        return (instant - self.anchor) // timedelta(seconds=self.seconds)

    def _slot(self, index: int) -> datetime:
        return self.anchor + timedelta(seconds=self.seconds * index)


def recurrence_of(schedule: str | None, every_seconds: float | None, zone: str) -> Cron | Every | None:
    """When a strategy with these settings is due; None means only by trigger. Raises ConfigError."""
    if schedule is not None:
        return Cron(schedule, zone)
    return None if every_seconds is None else Every(every_seconds)


@dataclass(frozen=True, slots=True)
class SlotDecision:
    """Whether a due slot runs; a slot that does not is recorded as skipped with `reason`."""

    slot: datetime
    run: bool
    reason: str | None


def apply_misfire(
    slots: Sequence[datetime],
    now: datetime,
    policy: Misfire,
    grace_seconds: float,
    catchup_max: int = 10,
    catchup_window: timedelta = timedelta(hours=1),
) -> list[SlotDecision]:
    """What becomes of the due `slots`, ascending; `now` is the database's time.

    latest: the newest runs, older ones are "misfire_coalesced". skip: slots later than the grace are "misfire_skip".
    all: slots later than the grace run oldest first, at most the newest `catchup_max` of those inside
    `catchup_window`; the rest are "catchup_cap".
    """
    ordered = sorted(slots)
    if policy == "latest":
        return [
            SlotDecision(slot, slot == ordered[-1], None if slot == ordered[-1] else "misfire_coalesced")
            for slot in ordered
        ]
    missed = [slot for slot in ordered if (now - slot).total_seconds() > grace_seconds]
    if policy == "skip":
        kept, reason = set(ordered) - set(missed), "misfire_skip"
    else:
        recent = [slot for slot in missed if now - slot <= catchup_window]
        kept, reason = set(ordered) - set(missed) | set(recent[max(0, len(recent) - catchup_max) :]), "catchup_cap"
    return [SlotDecision(slot, slot in kept, None if slot in kept else reason) for slot in ordered]


def slot_text(slot: datetime) -> str:
    """The name of a slot in ids: `2026-09-02T10:00Z`, with seconds only where they are not zero.

    Raises:
        ValueError: the instant is naive or not a whole second.
    """
    if slot.tzinfo is None or slot.microsecond:
        raise ValueError("a slot is an aware instant of a whole second")
    return slot.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ" if slot.second else "%Y-%m-%dT%H:%MZ")


def parse_slot(text: str) -> datetime:
    """The slot that `text` names, as `slot_text` writes it. Raises ConfigError on any other spelling."""
    match = _SLOT.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return datetime.fromisoformat(f"{match[1]}{match[2] or ''}+00:00")
    except ValueError:
        raise ConfigError(f'"{text[:40]}" is not a slot; write the UTC instant as 2026-09-02T10:00Z.') from None


def _parse(expression: str) -> str:
    """The expression with its alias resolved, after proof that it is one and happens."""
    fields = _ALIASES.get(expression.strip().lower(), expression)
    if len(fields) > 256 or fields.count(",") >= 64:
        raise ConfigError("the schedule is longer than 256 characters or 64 terms; split the strategy.")
    shown = " ".join(fields.split())
    if fields.startswith("@"):
        raise ConfigError(f'"{shown}" is no known alias; use one of {", ".join(_ALIASES)} or five cron fields.')
    if len(fields.split()) != 5:
        raise ConfigError(
            f'"{shown}" has {len(fields.split())} fields; write five, minute hour day month weekday, or use every.'
        )
    try:
        happens = _first(CronSim(fields, datetime(2024, 1, 1))) is not None  # noqa: DTZ001 naive on purpose
    except (CronSimError, ValueError, TypeError, AssertionError) as error:
        reason = str(error) if isinstance(error, CronSimError) else "it cannot be read"
        raise ConfigError(
            f'"{shown}" is not a cron schedule ({reason.lower()}); for example "0 10 * * mon-fri".'
        ) from None
    if not happens:
        raise ConfigError(f'"{shown}" never happens within fifty years; correct the day or month.')
    return shown


def _first(matches: Iterator[datetime]) -> datetime | None:
    return next(iter(matches), None)


def _naive(instant: datetime, offset: timedelta) -> datetime:
    """Local wall time as a naive datetime."""
    return instant.astimezone(UTC).replace(tzinfo=None) + offset


def _whole(instant: datetime) -> datetime:
    """`instant` in UTC, cut to the second."""
    return instant.astimezone(UTC).replace(microsecond=0)
