"""The database's clock stepped for real under two workers ([B89]): no slot twice, policy-many catch-ups, and nothing waits for the jump."""

import time
from datetime import UTC, datetime

import pytest

from tests.support.service import ETHER, Service
from tests.support.stepped_postgres import SteppedServer

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("stepped-clock"),
    pytest.mark.parametrize("node_kind", ["devnet"], indirect=True),
]
HOUR = 3600.0
VALUE = ETHER // 100
_BELIEVED = "SELECT is_settled AND anomalies >= %s AND abs(extract(epoch FROM clock_timestamp() - max_seen)) < 30 FROM clock_guard"


@pytest.fixture
def database_url(stepped_server: SteppedServer) -> str:
    """A database of the server whose clock is stepped, instead of the usual one."""
    return stepped_server.database()


def build(service: Service) -> dict[str, str]:
    """A strategy for triggers and two with a slot a minute; who is paid by each."""
    service.account()
    paid = {"rent": service.pays("rent")}
    for name, misfire in (("newest", "latest"), ("catch-up", "all")):
        paid[name] = service.pays(name, every="60s", misfire=misfire, overlap="allow")
    service.register()
    return paid


def step(service: Service, server: SteppedServer, offset: float, anomalies: int) -> None:
    """Step the clock, and wait until the workers have noticed and believe it again."""
    server.set_offset(offset)
    service.wait(lambda: service.value(_BELIEVED, anomalies), f"the clock {offset:+.0f} s is noticed and believed")


def assert_each_slot_once(service: Service, paid: dict[str, str], name: str) -> int:
    """Every execution of the strategy that ran has paid once; how many ran."""
    unended = "SELECT FROM execution WHERE strategy = %s AND state IN ('PLANNED', 'RUNNING')"
    service.wait(lambda: not service.rows(unended, name), f"what began of {name} has ended")
    ran = service.rows("SELECT slot, trigger_key FROM execution WHERE strategy = %s AND state = 'SUCCEEDED'", name)
    assert len({tuple(row.values()) for row in ran}) == len(ran)
    assert service.balance(paid[name]) == VALUE * len(ran)
    return len(ran)


def pays_now(service: Service, key: str) -> None:
    """A triggered payment takes effect within a usual time."""
    service.wait_state(service.trigger("rent", key), "SUCCEEDED")


def test_two_hours_forward_and_back(service: Service, stepped_server: SteppedServer) -> None:
    paid = build(service)
    first, second = service.start_pair()
    pays_now(service, "before")
    (mark,) = service.rows("SELECT max(high_water_mark) AS at FROM strategy")
    step(service, stepped_server, 2 * HOUR, 1)
    pays_now(service, "forward")
    service.wait(
        lambda: service.value(
            "SELECT bool_and(next_due_at > clock_timestamp()) FROM strategy WHERE every_seconds IS NOT NULL"
        ),
        "slots are looked at",
    )
    newest, catch_up = (assert_each_slot_once(service, paid, name) for name in ("newest", "catch-up"))
    assert 1 <= newest <= 2 + 1  # at most one a policy and step; a minute may begin during the test
    assert 1 <= catch_up <= 10 + 2
    skipped = service.rows("SELECT reason, count(*) FROM execution WHERE state = 'SKIPPED' GROUP BY 1")
    assert {row["reason"] for row in skipped} == {"misfire_coalesced", "catchup_cap"}

    step(service, stepped_server, 0.0, 2)
    pays_now(service, "back")
    first.kill()
    pays_now(service, "back-and-the-holder-is-dead")
    assert second.exit_code is None
    assert assert_each_slot_once(service, paid, "rent") == 4
    assert newest <= assert_each_slot_once(service, paid, "newest") <= newest + 1
    (ahead,) = service.rows("SELECT min(high_water_mark) AS at FROM strategy WHERE every_seconds IS NOT NULL")
    assert (ahead["at"] - mark["at"]).total_seconds() > HOUR, "no slot is due until the clock reaches the mark"
    assert "the database's clock is in doubt" in second.log


def test_two_hours_back_for_good_with_payments_and_leases_under_way(
    install: object, stepped_server: SteppedServer
) -> None:
    service: Service = install(on_order=True)  # type: ignore[operator]  # the fixture of conftest
    paid = build(service)
    first, second = service.start_pair()
    sent = service.trigger("rent", "sent-before")
    service.wait_attempt(sent, "SENT")
    pending = service.value("SELECT count(*) FROM execution WHERE strategy <> 'rent' AND state = 'PENDING'")
    stepped_server.set_offset(-2 * HOUR)
    first.kill()  # its leases were renewed two hours from now, and it renews them no more
    service.wait(lambda: service.value(_BELIEVED, 1), "the step back is noticed and believed")
    ahead = service.rows("SELECT FROM lease WHERE holder = 'first' AND renewed_at > clock_timestamp()")
    service.wait_held_by("second")
    assert ahead or second.exit_code is None
    after = service.trigger("rent", "triggered-after")
    service.wait_attempt(after, "SENT")
    for execution in (sent, after):
        service.wait(lambda e=execution: service.mine(1) or service.state(e) == "SUCCEEDED", f"{execution} ends")
    assert assert_each_slot_once(service, paid, "rent") == 2
    assert service.value("SELECT count(*) FROM execution WHERE strategy <> 'rent' AND state <> 'SKIPPED'") >= pending
    assert service.value("SELECT count(*) FROM lease_generation WHERE holder = 'second'") == 1


def test_bytes_signed_and_plans_put_off_before_a_step_back_do_not_wait_for_it(
    service: Service, stepped_server: SteppedServer
) -> None:
    """The instants in the rows lie an hour ahead; the work they belong to goes on at once."""
    service.account()
    marker = service.directory / "node-is-back"
    to = service.pays("rent")
    service.strategy(
        "waits",
        f"if not os.path.exists({str(marker)!r}):\n    raise RuntimeError('later')\nreturn Call({to!r}, {VALUE})",
    )
    service.register()
    service.start_worker("first", "sign.stored:kill")
    signed = service.trigger("rent", "signed")
    service.wait(lambda: service.attempts(signed) and service.attempts(signed)[0]["status"] == "SIGNED", "it is signed")
    service.workers[0].wait_ended()
    put_off = service.trigger("waits", "put-off")
    second = service.start_worker("second", "plan.recorded:stop")
    second.wait_frozen()
    assert service.execution(put_off)["retry_at"]
    stepped_server.set_offset(-HOUR)
    second.resume()
    marker.touch()
    service.wait_state(signed, "SUCCEEDED")
    service.wait_state(put_off, "SUCCEEDED")
    assert second.exit_code is None


def test_a_clock_slewed_a_second_a_minute_gives_each_slot_once(service: Service, stepped_server: SteppedServer) -> None:
    service.account()
    paid = {"often": service.pays("often", every="2s", misfire="all", overlap="allow")}
    service.register()
    service.start_pair()
    begun = time.monotonic()
    done = "SELECT count(*) FROM execution WHERE state = 'SUCCEEDED'"

    def slews() -> bool:
        stepped_server.set_offset((time.monotonic() - begun) / 60)
        return int(service.value(done)) >= 4

    service.wait(slews, "slots are paid while the clock is slewed")
    service.rows("UPDATE strategy SET paused_at = clock_timestamp(), paused_why = 'enough' RETURNING name")
    service.wait(
        lambda: not service.rows("SELECT FROM execution WHERE state IN ('PENDING', 'PLANNED', 'RUNNING')"), "all end"
    )
    assert_each_slot_once(service, paid, "often")
    slots = [row["slot"].timestamp() for row in service.rows("SELECT slot FROM execution ORDER BY slot")]
    assert slots == [slots[0] + 2 * i for i in range(len(slots))], "none is missing"
    assert service.value("SELECT anomalies FROM clock_guard") == 0
    assert datetime.fromtimestamp(slots[0], UTC).second % 2 == 0
