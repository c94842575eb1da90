"""What other schedulers and lease holders did wrong, tried as it was reported; schedules themselves are in the unit tests."""

import signal
from collections.abc import Callable

import pytest

from tests.support.forwarder import DatabaseForwarder
from tests.support.postgres import plain_connection
from tests.support.service import ETHER, Service, fresh_address

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("process-area-j"),
    pytest.mark.parametrize("node_kind", ["devnet"], indirect=True),
]
Install = Callable[..., Service]
VALUE = ETHER // 100
_PAID = "SELECT count(*) FROM execution WHERE state = 'SUCCEEDED'"
_MISSED = "SELECT count(*) FROM execution WHERE reason = 'misfire_skip'"
# One plan at a time may be inside; who finds another there says so.
_ALONE = """
import fcntl
with open({place!r}, "w") as inside:
    try:
        fcntl.flock(inside, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        open({place!r} + ".twice", "w").close()
    open({place!r} + ".begun", "a").write("x")
    time.sleep({seconds})
return Call({to!r}, {value})
"""


def idle(service: Service, interval: str) -> None:
    """As if nobody had looked at any slot for so long."""
    with plain_connection(service.database_url) as connection:
        connection.execute("ALTER TABLE strategy DISABLE TRIGGER USER")  # a mark never falls
        connection.execute(
            "UPDATE strategy SET high_water_mark = clock_timestamp() - %s::interval, next_due_at = clock_timestamp() - %s::interval",
            (interval, interval),
        )
        connection.execute("ALTER TABLE strategy ENABLE TRIGGER USER")


def settle(service: Service) -> None:
    """No more slots, and what began has ended."""
    service.rows("UPDATE strategy SET paused_at = clock_timestamp(), paused_why = 'enough' RETURNING name")
    unended = "SELECT FROM execution WHERE state IN ('PENDING', 'PLANNED', 'RUNNING')"
    service.wait(lambda: not service.rows(unended), "all have ended")


def assert_paid_as_the_rows_say(service: Service, paid: dict[str, str]) -> None:
    """Each execution that succeeded has paid once, and no other has."""
    for name, to in paid.items():
        done = service.value(f"{_PAID} AND strategy = %s", name)
        assert service.balance(to) == VALUE * done, name


def plans_alone(service: Service, to: str, seconds: float, **settings: str | int) -> Callable[[str], bool]:
    """A strategy that takes `seconds` and notices a second one inside; a function that tells which of its marks are there."""
    place = str(service.directory / "inside")
    service.strategy("slow", _ALONE.format(place=place, seconds=seconds, to=to, value=VALUE), **settings)
    return lambda mark: (service.directory / f"inside.{mark}").exists()


def test_the_backlog_of_six_hours_comes_by_policy(service: Service) -> None:
    """[B78] Twelve schedules of a minute, nobody there for six hours, then three workers at once."""
    service.account(max_in_flight=64)
    paid: dict[str, str] = {}
    for misfire in ("skip", "latest", "all"):
        for number in range(4):
            name = f"{misfire}-{number}"
            paid[name] = service.pays(name, every="60s", misfire=misfire, overlap="allow")
    service.register()
    idle(service, "6 hours")
    for name in ("one", "two", "three"):
        service.start_worker(name)
    looked_at = "SELECT bool_and(next_due_at > clock_timestamp()) FROM strategy"
    service.wait(lambda: service.value(looked_at), "all slots are looked at")
    settle(service)
    caught_up = {
        row["strategy"]: row["found"]
        for row in service.rows(
            "SELECT strategy, count(*) AS found FROM history JOIN execution ON execution_id = subject"
            " WHERE kind = 'execution' AND from_state IS NULL AND to_state = 'PENDING' AND why LIKE 'catch-up: %%' GROUP BY strategy"
        )
    }
    ran = {
        row["strategy"]: row["n"]
        for row in service.rows(f"{_PAID.replace('count(*)', 'strategy, count(*) AS n')} GROUP BY strategy")
    }
    for name in paid:
        policy = name.split("-")[0]
        assert caught_up.get(name, 0) <= {"skip": 0, "latest": 0, "all": 10}[policy]
        # On time is what is less than a minute late, and a minute may begin during the test.
        assert 1 <= ran[name] <= {"skip": 1, "latest": 1, "all": 11}[policy] + 2
    assert caught_up["all-0"] >= 9
    assert service.value("SELECT count(*) FROM execution WHERE state = 'SKIPPED' AND reason IS NULL") == 0
    assert service.value("SELECT count(*) FROM execution") >= 12 * 360
    assert_paid_as_the_rows_say(service, paid)


def test_forty_days_of_missed_minutes_are_looked_at_once_and_the_schedule_goes_on(service: Service) -> None:
    """[B79] Bounded rows, whatever the number of missed starts."""
    service.account()
    paid = {
        "cron": service.pays("cron", schedule="* * * * *", misfire="latest"),
        "often": service.pays("often", every="1s", misfire="latest", overlap="allow"),
    }
    service.register()
    idle(service, "40 days")
    service.start_worker("only")
    service.wait(lambda: service.value(f"{_PAID} AND strategy = 'cron'") >= 1, "the newest minute is paid")
    service.wait(lambda: service.value(f"{_PAID} AND strategy = 'often'") >= 3, "the schedule goes on")
    assert service.value("SELECT count(*) FROM execution WHERE strategy = 'cron'") <= 1000 + 2
    settle(service)
    assert_paid_as_the_rows_say(service, paid)


def test_a_stall_within_the_grace_runs_once_and_beyond_it_is_told(service: Service) -> None:
    """[B77] Three seconds at the fire instant, then five minutes, then two days, with a policy that skips what is late."""
    service.account()
    paid = {"often": service.pays("often", every="3s", misfire="skip", overlap="allow")}
    service.register()
    only = service.start_worker("only")
    service.wait(lambda: service.value(_PAID) >= 1, "a first slot is paid")
    only.pause()
    due = service.value("SELECT next_due_at FROM strategy")
    service.wait(
        lambda: service.value("SELECT clock_timestamp() > %s + interval '3 s'", due), "a slot was missed by 3 s"
    )
    only.resume()
    service.wait(lambda: service.rows("SELECT FROM execution WHERE slot = %s AND state = 'SUCCEEDED'", due), "it runs")
    for interval, least in (("5 minutes", 70), ("2 days", 900)):
        only.pause()
        before = service.value(_MISSED)
        idle(service, interval)
        only.resume()
        service.wait(lambda n=before + least: service.value(_MISSED) >= n, f"what was missed in {interval} is recorded")
    settle(service)
    assert_paid_as_the_rows_say(service, paid)


def test_a_run_longer_than_its_interval_gets_no_second_copy(service: Service) -> None:
    """[B80] Three workers, a plan of three seconds every other second; the holder is killed inside one."""
    service.account()
    to = fresh_address()
    marks = plans_alone(service, to, 3.0, every="2s", misfire="latest", overlap="skip", start_deadline="1m")
    service.register()
    first = service.start_worker("one")
    service.wait_held_by("one")
    for name in ("two", "three"):
        service.start_worker(name)
    service.wait(lambda: service.value(_PAID) >= 1, "one is paid")
    service.wait(
        lambda: service.rows("SELECT FROM execution WHERE state = 'PENDING' AND planning_attempts > 0"),
        "one is planned",
    )
    first.kill()
    paid = service.value(_PAID)
    service.wait(lambda: service.value(_PAID) >= paid + 2, "the schedule goes on")
    settle(service)
    assert not marks("twice"), "two plans of one schedule ran at once"
    skipped = service.rows("SELECT DISTINCT reason FROM execution WHERE state = 'SKIPPED' AND reason LIKE 'overlap%%'")
    assert skipped == [{"reason": "overlap: the one before is not through yet"}]
    assert service.balance(to) == VALUE * service.value(_PAID)


def test_four_copies_and_a_rolling_restart_give_each_slot_once(service: Service) -> None:
    """[B81] New ones are up before the old ones go, over several fire times."""
    service.account()
    paid = {"often": service.pays("often", every="2s", misfire="all", overlap="allow")}
    service.register()
    old = [service.start_worker(f"old-{number}") for number in range(4)]
    service.wait(lambda: service.value(_PAID) >= 1, "a slot is paid")
    for number, leaving in enumerate(old[:3]):
        seen = service.value(_PAID)
        service.start_worker(f"new-{number}")
        service.wait(
            lambda n=number: service.rows("SELECT FROM worker WHERE name = %s", f"new-{n}"), "the new one is up"
        )
        leaving.terminate()
        service.wait(lambda s=seen: service.value(_PAID) > s, "slots are paid meanwhile")
    settle(service)
    slots = [int(row["slot"].timestamp()) for row in service.rows("SELECT slot FROM execution ORDER BY slot")]
    assert slots == list(range(slots[0], slots[-1] + 1, 2))
    assert_paid_as_the_rows_say(service, paid)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.chaos)])
def test_work_longer_than_a_lease_is_not_begun_by_another(install: Install, number: signal.Signals) -> None:
    """[B82] A plan of three lease lengths keeps its lease; asked to end in the middle of one, its worker hands over."""
    service = install(plan_timeout="20s")
    service.account()
    to = fresh_address()
    marks = plans_alone(service, to, 6.0)
    service.register()
    first, _ = service.start_pair(fresh=True)
    one = service.trigger("slow", "one")
    service.wait_state(one, "SUCCEEDED")
    assert service.value("SELECT count(*) FROM lease_generation") == 1, "it renewed all along"
    two = service.trigger("slow", "two")
    begun = service.directory / "inside.begun"
    service.wait(lambda: begun.read_text() == "xx", "the second is inside its plan")
    first.signal(number)
    service.wait_state(two, "SUCCEEDED")
    assert first.wait_ended() == 0
    assert begun.read_text() == "xxx", "the other began it anew"
    assert not marks("twice"), "two plans of one execution ran at once"
    assert service.balance(to) == 2 * VALUE


def test_nobody_works_before_its_lease_is_its_own_again(service: Service) -> None:
    """[B90] Both lose the database over several slots; it comes back for one, whose first lease call fails, then for the other."""
    service.account()
    paid = {"often": service.pays("often", every="2s", misfire="all", overlap="allow")}
    service.register()
    ways = {name: DatabaseForwarder(service.directory / name, service.database_url) for name in ("a", "b")}
    for name, way in ways.items():
        service.start_worker(name, environment={"FENCED_TEST_DATABASE": way.url})
    service.wait(lambda: service.value(_PAID) >= 2, "slots are paid")
    for way in ways.values():
        way.cut()
    cut_at = service.value("SELECT clock_timestamp()")
    service.wait(lambda: service.value("SELECT clock_timestamp() > %s + interval '8 s'", cut_at), "four lease lengths")
    during = service.value("SELECT count(*) FROM history WHERE at > %s + interval '2 s'", cut_at)
    assert during == 0, "nothing was written meanwhile"
    ways["a"].restore()
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'a lease'"
    service.wait(lambda: service.rows(ended), "a lease call of the first is made to fail")
    service.wait(
        lambda: service.value("SELECT count(*) FROM lease WHERE expires_at > clock_timestamp()"),
        "it has its lease again",
    )
    ways["b"].restore()
    before = service.value(_PAID)
    service.wait(lambda: service.value(_PAID) >= before + 4, "what was missed is paid")
    settle(service)
    slots = [int(row["slot"].timestamp()) for row in service.rows("SELECT slot FROM execution ORDER BY slot")]
    assert slots == list(range(slots[0], slots[-1] + 1, 2))
    assert_paid_as_the_rows_say(service, paid)
