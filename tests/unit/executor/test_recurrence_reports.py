"""Schedules that other products got wrong, tried as they were reported: [B74], [B75], [B84]."""

import itertools
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest

from executor.errors import ConfigError
from executor.recurrence import Cron, Every, slot_text
from executor.timezones import load_zone

CHANGES = {
    "America/New_York": [(2026, 3, 8), (2026, 11, 1), (2027, 3, 14), (2027, 11, 7)],
    "Europe/Berlin": [(2026, 3, 29), (2026, 10, 25), (2027, 3, 28), (2027, 10, 31)],
}


def at(year: int, month: int, day: int, hour: int = 0) -> datetime:
    return datetime(year, month, day, hour, tzinfo=UTC)


def around(change: tuple[int, int, int]) -> tuple[datetime, datetime]:
    return at(*change) - timedelta(days=2), at(*change) + timedelta(days=3)


@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("expression", ["30 2 * * *", "30 1 * * *"])
def test_a_daily_time_runs_once_on_every_local_date_over_each_change(expression: str, zone: str) -> None:
    """[B74] Neither twice on the night that has the hour twice, nor never on the night that lacks it."""
    for change in CHANGES[zone]:
        after, until = around(change)
        slots = Cron(expression, zone).due(after, until, 1000)
        dates = Counter(slot.astimezone(load_zone(zone)).date() for slot in slots)
        assert set(dates.values()) == {1}
        assert (max(dates) - min(dates)).days + 1 == len(dates) >= 4
        assert len({slot_text(slot) for slot in slots}) == len(slots), "the key of an execution is its instant"


@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize(("expression", "minutes"), [("*/15 * * * *", 15), ("0 * * * *", 60)])
def test_a_rhythm_below_a_day_keeps_every_real_interval(expression: str, minutes: int, zone: str) -> None:
    """[B74] An hour that comes twice is two hours, one that is skipped is none."""
    for change in CHANGES[zone]:
        after, until = around(change)
        slots = Cron(expression, zone).due(after, until, 10_000)
        assert {later - earlier for earlier, later in itertools.pairwise(slots)} == {timedelta(minutes=minutes)}


@pytest.mark.parametrize(
    ("first", "days"), [((2026, 3, 10), 7), ((2026, 3, 3), 10), ((2026, 11, 1), 7), ((2026, 10, 28), 10)]
)
def test_midnight_is_missing_on_no_local_date(first: tuple[int, int, int], days: int) -> None:
    """[B75] The next ten fire times, asked for each day over the change, as a scheduler would that wakes once a day."""
    zone = load_zone("US/Pacific")
    cron = Cron("0 0 * * *", "US/Pacific")
    begin = at(*first, hour=12)
    for passed in range(days):
        instant, seen = begin + timedelta(days=passed), list[date]()
        for _ in range(10):
            following = cron.next(instant)
            assert following is not None
            seen.append(following.astimezone(zone).date())
            instant = following
        assert all(later - earlier == timedelta(days=1) for earlier, later in itertools.pairwise(seen))


def test_a_rhythm_of_seconds_goes_on_over_the_change() -> None:
    """[B75] It counts elapsed time and knows no zone."""
    slots = Every(90).due(at(2026, 3, 8, 9), at(2026, 3, 8, 11), 1000)
    assert {later - earlier for earlier, later in itertools.pairwise(slots)} == {timedelta(seconds=90)}


def texts(expression: str) -> list[str]:
    found, instant = [], datetime(2026, 9, 1, tzinfo=UTC)
    for _ in range(10):
        following = Cron(expression).next(instant)
        assert following is not None
        found.append(f"{following:%a %d.%m. %H:%M}")
        instant = following
    return found


@pytest.mark.parametrize(
    ("expression", "begins"),
    [
        ("0 9 1 * 1", ["Tue 01.09. 09:00", "Mon 07.09. 09:00", "Mon 14.09. 09:00"]),  # either field, as cron has it
        ("0 11 1-7 * FRI", ["Tue 01.09. 11:00", "Wed 02.09. 11:00", "Thu 03.09. 11:00"]),
        ("0 0 * * 6,7", ["Sat 05.09. 00:00", "Sun 06.09. 00:00", "Sat 12.09. 00:00"]),
        ("0 0 * * 5-7", ["Fri 04.09. 00:00", "Sat 05.09. 00:00", "Sun 06.09. 00:00"]),
        ("*/40 * * * *", ["Tue 01.09. 00:40", "Tue 01.09. 01:00", "Tue 01.09. 01:40"]),
        ("@daily", ["Wed 02.09. 00:00", "Thu 03.09. 00:00", "Fri 04.09. 00:00"]),
        ("0 0 1 1 *", ["Fri 01.01. 00:00", "Sat 01.01. 00:00", "Mon 01.01. 00:00"]),
    ],
)
def test_days_of_month_and_week(expression: str, begins: list[str]) -> None:
    """[B84] The next ten of each, with the rule that cron itself has."""
    assert texts(expression)[:3] == begins


def test_sunday_is_0_and_7() -> None:
    """[B84]"""
    assert texts("0 0 * * 7") == texts("0 0 * * 0") == texts("0 0 * * SUN")
    assert all(text.startswith("Sun") for text in texts("0 0 * * 7"))


@pytest.mark.parametrize(
    "expression", ["0 0 31 2 *", "0 0 * * * *", "0 0 0 * * *", "MON-FRI", "0-59/0 * * * *", "0 0 * * 8"]
)
def test_the_impossible_is_refused_with_a_reason(expression: str) -> None:
    """[B84] Refused when it is read, not a hang when it is due."""
    with pytest.raises(ConfigError, match=r"never happens|fields|is not a cron schedule"):
        Cron(expression)
