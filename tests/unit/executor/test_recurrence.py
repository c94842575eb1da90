"""Slots over changes of the clock. An oracle that walks minute by minute in UTC stands beside the real thing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.errors import ConfigError
from executor.recurrence import Cron, Every, SlotDecision, apply_misfire, parse_slot, slot_text
from executor.timezones import load_zone, tzdata_version

ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "America/Santiago",
    "UTC",
    "Asia/Kathmandu",
]
EXPRESSIONS = [
    "30 2 * * *", "30 1 * * *", "0 0 * * *", "0 3 * * *", "15,45 1-3 * * *", "0 */2 * * *", "*/15 * * * *", "0 * * * *",
    "*/30 2 * * *", "5 0,1,2,3 * * sun", "0 0 29 2 *", "59 23 L * *", "0 12 1 */3 *", "* * * * *", "45 23 * * sat", "0 2 * * sun#2",
]  # fmt: skip
CHANGES = {
    "America/New_York": [(2026, 3, 8, 7), (2026, 11, 1, 6)],
    "Europe/Berlin": [(2026, 3, 29, 1), (2026, 10, 25, 1)],
    "Australia/Lord_Howe": [(2026, 4, 4, 15), (2026, 10, 3, 15)],
    "Africa/Cairo": [(2026, 4, 23, 22), (2026, 10, 29, 21)],
    "America/Santiago": [(2026, 4, 5, 3), (2026, 9, 6, 4)],
    "UTC": [(2026, 1, 1, 0)],
    "Asia/Kathmandu": [(2026, 2, 28, 18)],
}


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def texts(slots: list[datetime]) -> list[str]:
    return [slot_text(slot) for slot in slots]


@st.composite
def windows(draw: st.DrawFn) -> tuple[Cron, datetime, datetime, datetime]:
    """A schedule and three instants around a change of its zone's clock."""
    zone = draw(st.sampled_from(ZONES))
    change = at(*draw(st.sampled_from(CHANGES[zone])))
    first, second, third = sorted(draw(st.lists(st.integers(-3 * 86_400, 3 * 86_400), min_size=3, max_size=3)))
    instants = [change + timedelta(seconds=offset) for offset in (first, second, third)]
    return Cron(draw(st.sampled_from(EXPRESSIONS)), zone), instants[0], instants[1], instants[2]


@settings(max_examples=300, deadline=None)
@given(windows())
def test_a_restart_anywhere_changes_no_slot(window: tuple[Cron, datetime, datetime, datetime]) -> None:
    cron, first, second, third = window
    whole = cron.due(first, third, 100_000)
    assert cron.due(first, second, 100_000) + cron.due(second, third, 100_000) == whole
    assert whole == sorted(set(whole))
    assert all(first < slot <= third for slot in whole)
    assert cron.due(first, third, 3) == whole[-3:]


@settings(max_examples=200, deadline=None)
@given(windows())
def test_next_walks_the_same_slots(window: tuple[Cron, datetime, datetime, datetime]) -> None:
    cron, first, second, _ = window
    walked, instant = [], cron.next(first)
    while instant is not None and instant <= second:
        walked.append(instant)
        instant = cron.next(instant)
    assert walked == cron.due(first, second, 100_000)


def oracle(expression: str, zone: str, after: datetime, until: datetime) -> list[datetime]:
    """The rule of the module's docstring, minute by minute: slow and plain."""
    tz = load_zone(zone)
    minute, hour = expression.split()[:2]
    fixed = not minute.startswith("*") and not hour.startswith("*")

    def matches(naive: datetime) -> bool:
        return next(CronSim(expression, naive - timedelta(minutes=1))) == naive

    slots = []
    instant = after.replace(second=0, microsecond=0)
    while (instant := instant + timedelta(minutes=1)) <= until:
        local = instant.astimezone(tz)
        naive = local.replace(tzinfo=None, fold=0)
        before = (instant - timedelta(minutes=1)).astimezone(tz).replace(tzinfo=None, fold=0)
        skipped = [before + timedelta(minutes=n) for n in range(1, int((naive - before).total_seconds()) // 60)]
        first = matches(naive) and not (fixed and local.fold)
        if first or (fixed and any(map(matches, skipped))):
            slots.append(instant)
    return slots


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "expression", ["30 2 * * *", "15,45 1-3 * * *", "0 0 * * *", "*/15 * * * *", "0 */2 * * *", "*/30 0 * * *"]
)
def test_equal_to_the_minute_by_minute_rule(zone: str, expression: str) -> None:
    for change in CHANGES[zone]:
        after, until = at(*change) - timedelta(hours=14), at(*change) + timedelta(hours=14)
        assert Cron(expression, zone).due(after, until, 10_000) == oracle(expression, zone, after, until)


@pytest.mark.parametrize(
    ("expression", "zone", "day", "expected"),
    [
        ("30 2 * * *", "America/New_York", (2026, 3, 8), ["2026-03-08T07:00Z"]),  # gap: once, first instant after
        (
            "0,30 2,3 * * *",
            "America/New_York",
            (2026, 3, 8),
            ["2026-03-08T07:00Z", "2026-03-08T07:30Z"],
        ),  # two on one: one slot
        ("*/30 2 * * *", "America/New_York", (2026, 3, 8), []),  # wildcard: nothing in a gap
        ("30 1 * * *", "America/New_York", (2026, 11, 1), ["2026-11-01T05:30Z"]),  # fold: first only
        (
            "*/30 1 * * *",
            "America/New_York",
            (2026, 11, 1),
            [f"2026-11-01T0{t}Z" for t in ("5:00", "5:30", "6:00", "6:30")],
        ),
        ("0 0 * * *", "Africa/Cairo", (2026, 4, 23), ["2026-04-23T22:00Z"]),  # midnight does not exist
        ("0 0 * * 0", "America/Santiago", (2026, 9, 6), ["2026-09-06T04:00Z"]),
        ("15 2 * * *", "Australia/Lord_Howe", (2026, 10, 3), ["2026-10-03T15:30Z"]),  # half-hour gap
        ("45 1 * * *", "Australia/Lord_Howe", (2026, 4, 4), ["2026-04-04T14:45Z"]),  # half-hour fold
    ],
)
def test_gaps_and_folds(expression: str, zone: str, day: tuple[int, ...], expected: list[str]) -> None:
    start = at(*day)
    assert texts(Cron(expression, zone).due(start, start + timedelta(days=1), 99)) == expected


def test_a_start_inside_the_repeated_hour_runs_nothing_twice() -> None:
    cron = Cron("30 1 * * *", "America/New_York")
    assert cron.next(at(2026, 11, 1, 5, 40)) == at(2026, 11, 2, 6, 30)
    assert cron.next(at(2026, 11, 1, 6, 10)) == at(2026, 11, 2, 6, 30)


def test_feb_29_over_the_missing_leap_year() -> None:
    cron = Cron("0 0 29 2 *")
    assert cron.next(at(2096, 3, 1)) == at(2104, 2, 29)
    assert texts(cron.due(at(2020, 1, 1), at(2033, 1, 1), 9)) == [
        "2020-02-29T00:00Z",
        "2024-02-29T00:00Z",
        "2028-02-29T00:00Z",
        "2032-02-29T00:00Z",
    ]


def test_a_year_of_minutes_gives_the_newest() -> None:
    slots = Cron("* * * * *", "Europe/Berlin").due(at(2026, 1, 1), at(2027, 1, 1), 1000)
    assert (slots[0], slots[-1], len(slots)) == (at(2026, 12, 31, 7, 21), at(2027, 1, 1), 1000)


@pytest.mark.parametrize(
    ("alias", "expected"),
    [("@hourly", "T11:00Z"), ("@daily", "03T00:00Z"), ("@weekly", "06T00:00Z"), ("@MONTHLY", "10-01T00:00Z")],
)
def test_aliases(alias: str, expected: str) -> None:
    slot = Cron(alias).next(at(2026, 9, 2, 10, 0))
    assert slot is not None
    assert slot_text(slot).endswith(expected)


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 31 4,6 *", "bad day-of-month"),
        ("60 * * * *", "bad minute"),
        ("0 0 * * fri-mon", "bad day-of-week"),
        ("* * * *", "has 4 fields"),
        ("0 0 10 * * mon", "has 6 fields"),
        ("@yearly", "is no known alias"),
        ("@reboot", "is no known alias"),
        ("", "has 0 fields"),
        ("٣ * * * *", "bad minute"),
        ("H * * * *", "bad minute"),
        ("0 0 ? * *", "bad day-of-month"),
        ("0 0 * * 5L,1#2/2", "is not a cron schedule"),
        ("0 0 L/L * *", "is not a cron schedule"),
        ("1" * 300, "longer than 256"),
        (",".join("1" * 66) + " * * * *", "64 terms"),
        ("9" * 200 + " * * * *", "bad minute"),
    ],
)
def test_bad_schedules_say_why(expression: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Cron(expression)
    assert part in str(caught.value)
    assert str(caught.value).endswith(".")


@settings(deadline=None)
@given(st.text("0123456789*/,-LW#? monfriJAN@", max_size=30))
def test_any_text_is_a_schedule_or_a_config_error(text: str) -> None:
    try:
        Cron(text)
    except ConfigError:
        return


@pytest.mark.parametrize(
    "name",
    [
        "Europe/Berln",
        "",
        "/etc/passwd",
        "../zoneinfo/UTC",
        "Europe/",
        "posixrules/../UTC",
        "__init__.py",
        "zone.tab",
        "leapseconds",
    ],
)
def test_bad_zones_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a time zone of tzdata"):
        load_zone(name)


def test_every_zone_of_the_package_loads_and_the_host_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONTZPATH", "/nowhere")
    load_zone.cache_clear()
    assert load_zone("Europe/Berlin").key == "Europe/Berlin"
    assert tzdata_version()[:2] == "20"


def test_every_is_elapsed_time() -> None:
    every = Every(5)
    assert texts(every.due(at(2026, 9, 2, 10), at(2026, 9, 2, 10, 0, 12), 9)) == [
        "2026-09-02T10:00:05Z",
        "2026-09-02T10:00:10Z",
    ]
    assert every.next(at(2026, 9, 2, 10)) == at(2026, 9, 2, 10, 0, 5)
    assert every.next(at(2026, 9, 2, 10) - timedelta(microseconds=1)) == at(2026, 9, 2, 10)
    newest = every.due(at(2020, 1, 1), at(2026, 9, 2), 2)
    assert newest == [at(2026, 9, 1, 23, 59, 55), at(2026, 9, 2)]


@settings(deadline=None)
@given(st.integers(1, 10**6), st.lists(st.integers(0, 10**5), min_size=3, max_size=3))
def test_every_is_stable_over_restarts(seconds: int, offsets: list[int]) -> None:
    first, second, third = (at(2026, 1, 1) + timedelta(seconds=offset) for offset in sorted(offsets))
    every = Every(seconds)
    assert every.due(first, second, 10**7) + every.due(second, third, 10**7) == every.due(first, third, 10**7)


@pytest.mark.parametrize("seconds", [0, 0.5, -1, 1.5])
def test_every_below_a_second_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigError, match="whole number of seconds"):
        Every(seconds)


NOW = at(2026, 9, 2, 12)
SLOTS = [NOW - timedelta(minutes=minutes) for minutes in (180, 50, 40, 30, 0)]


def decided(policy: str, **options: object) -> list[str]:
    decisions = apply_misfire(SLOTS, NOW, policy, 60, **options)  # type: ignore[arg-type]
    assert [decision.slot for decision in decisions] == SLOTS
    assert all(decision.run == (decision.reason is None) for decision in decisions)
    return [decision.reason or "run" for decision in decisions]


def test_latest_runs_the_newest() -> None:
    assert decided("latest") == ["misfire_coalesced"] * 4 + ["run"]
    late = apply_misfire(SLOTS[:1], NOW, "latest", 60)
    assert late == [SlotDecision(SLOTS[0], True, None)]
    assert apply_misfire([], NOW, "latest", 60) == []


def test_skip_runs_only_what_is_on_time() -> None:
    assert decided("skip") == ["misfire_skip"] * 4 + ["run"]


def test_all_runs_within_its_caps() -> None:
    assert decided("all") == ["catchup_cap", "run", "run", "run", "run"]
    assert decided("all", catchup_max=1) == ["catchup_cap"] * 3 + ["run", "run"]
    assert decided("all", catchup_max=0) == ["catchup_cap"] * 4 + ["run"]
    assert decided("all", catchup_window=timedelta(hours=4)) == ["run"] * 5


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda instant: instant.year >= 1970))
def test_slot_text_reads_back(instant: datetime) -> None:
    slot = instant.replace(microsecond=0)
    assert parse_slot(slot_text(slot)) == slot


def test_slot_text_is_the_utc_instant() -> None:
    assert slot_text(datetime(2026, 9, 2, 12, tzinfo=load_zone("Europe/Berlin"))) == "2026-09-02T10:00Z"
    for bad in (at(2026, 9, 2).replace(tzinfo=None), at(2026, 9, 2, 0, 0, 0, 1)):
        with pytest.raises(ValueError, match="aware instant of a whole second"):
            slot_text(bad)


@pytest.mark.parametrize(
    "text",
    ["2026-09-02", "2026-09-02T10:00", "2026-09-02T10:00+02:00", "2026-13-02T10:00Z", "2026-09-02T10:00:00.5Z", "now"],
)
def test_other_spellings_of_a_slot_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a slot"):
        parse_slot(text)
