"""A database restored from a backup taken before the last hundred executions: noticed, halted, and nothing due before is sent by itself."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from executor.recurrence import slot_text
from tests.rewind.moving import MovingService
from tests.rewind.servers import Servers
from tests.support.service import Wallet, fresh_address

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("rewind-restored"), pytest.mark.timeout(300)]

SCHEDULES = [(misfire, overlap) for misfire in ("latest", "skip", "all") for overlap in ("allow", "skip")]
LOST = 100


def _installed(service: MovingService) -> tuple[Wallet, dict[str, str]]:
    """Every misfire and overlap policy on a schedule of its own, one strategy by trigger, one whose plan waits for funds."""
    wallet = service.account(max_in_flight=64, max_value="1000 ether")
    payees = {f"{misfire}-{overlap}": fresh_address() for misfire, overlap in SCHEDULES}
    for misfire, overlap in SCHEDULES:
        name = f"{misfire}-{overlap}"
        service.strategy(
            name, f"return Call({payees[name]!r}, 1)", every="1s", misfire=misfire, overlap=overlap, start_deadline="1h"
        )
    payees["manual"] = fresh_address()
    service.strategy("manual", f"return Call({payees['manual']!r}, 1)", start_deadline="1h")
    service.strategy("rich", f"return Call({fresh_address()!r}, {500 * 10**18})", start_deadline="1h")
    service.register()
    return wallet, payees


def _paid(service: MovingService) -> dict[str, bytes]:
    """Execution → hash of the transaction that took effect."""
    found = service.rows(
        "SELECT r.execution_id, a.hash FROM nonce_reservation r JOIN attempt a ON (a.account_id, a.nonce, a.seq) ="
        " (r.account_id, r.nonce, r.closed_seq) WHERE r.effect"
    )
    return {row["execution_id"]: bytes(row["hash"]) for row in found}


def _sent(service: MovingService) -> dict[str, bytes]:
    """Execution → hash of the transaction that was sent for it."""
    found = service.rows(
        "SELECT r.execution_id, a.hash FROM nonce_reservation r JOIN attempt a USING (account_id, nonce)"
    )
    return {row["execution_id"]: bytes(row["hash"]) for row in found if row["hash"] is not None}


def test_nothing_due_before_is_sent_until_it_is_released(
    clusters: Servers, install: Callable[..., MovingService]
) -> None:
    primary = clusters.primary()
    service = install(primary)
    wallet, payees = _installed(service)
    service.start_worker("before")
    planned = service.trigger("rich", "too-much")
    service.wait_state(planned, "PLANNED")
    first = service.trigger("manual", "kept")
    service.wait_state(first, "SUCCEEDED")

    backup = clusters.backup(primary)
    kept = len(_paid(service))
    for i in range(LOST):
        service.trigger("manual", f"lost-{i}")
    service.wait(
        lambda: (
            service.value("SELECT count(*) FROM execution WHERE state = 'SUCCEEDED' AND trigger_key LIKE 'lost-%%'")
            == LOST
        ),
        "a hundred executions after the backup",
        120.0,
    )
    service.end_workers()
    used = max(nonce for _, nonce in service.proxy.raws_by_nonce()) + 1
    service.wait_mined(wallet.address, used)
    head = service.block_number()
    service.wait(lambda: service.block_number() > head + 2, "what was sent is final")
    paid, before = _sent(service), service.seen()
    balances = {name: service.balance(to) for name, to in payees.items()}
    assert len(paid) - kept >= LOST
    primary.stop()
    service.move(clusters.restored(backup))
    restored = {row["execution_id"] for row in service.rows("SELECT execution_id FROM nonce_reservation")}
    lost = {e for e in paid if e not in restored and "/id/" not in e}
    assert len(paid) - len(restored) >= LOST

    service.start_worker("after")
    service.start_worker("other")
    service.wait_halted("restored or promoted")
    assert service.seen() == before
    answer = service.reopen()
    assert answer.granted, answer.text
    assert "acknowledged" in answer.text
    assert service.value("SELECT max(nonce) FROM acknowledged_nonce") == used - 1
    until = service.account_row()["reopened_at"]

    # Every slot of the lost tail has a row again, and waits for a person.
    states = {row["execution_id"]: row["state"] for row in service.rows("SELECT execution_id, state FROM execution")}
    assert {e: states.get(e) for e in lost if states.get(e) != "PARKED"} == {}
    assert states[planned] == "PARKED"
    assert (
        service.value("SELECT count(*) FROM execution WHERE slot <= %s AND state IN ('PENDING', 'PLANNED')", until) == 0
    )
    unpaid = {
        name: [
            row["execution_id"]
            for row in service.rows(
                "SELECT execution_id FROM execution WHERE strategy = %s AND state = 'PARKED' ORDER BY slot", name
            )
            if row["execution_id"] not in paid
        ]
        for name in payees
        if name != "manual"
    }
    assert all(unpaid.values()), f"slots came due between the last worker and the reopening: {unpaid}"

    # A trigger that names such a slot is parked too, one that is new runs; schedules that allow overlap go on.
    named = service.trigger_slot("manual", slot_text((until - timedelta(minutes=5)).replace(microsecond=0)))
    service.wait_state(named, "PARKED")
    new = service.trigger("manual", "new")
    service.wait_state(new, "SUCCEEDED")
    for misfire in ("latest", "skip", "all"):
        service.wait(
            lambda name=f"{misfire}-allow": service.value(  # type: ignore[misc]  # bound now
                "SELECT count(*) FROM execution WHERE strategy = %s AND slot > %s AND state = 'SUCCEEDED'", name, until
            ),
            f"{misfire} goes on",
            60.0,
        )
    touched = service.rows(
        "SELECT e.execution_id FROM execution e JOIN nonce_reservation r USING (execution_id)"
        " WHERE e.slot <= %s AND r.reserved_at > %s",
        until,
        until,
    )
    assert touched == [], "what was due before got a nonce by itself"

    # Paid ones end and are never sent; unpaid ones run once, under their own id.
    released = {name: ids[0] for name, ids in unpaid.items()}
    for name, execution_id in released.items():
        answer = service.resolve(execution_id)
        assert answer.granted, (name, answer)
    for name in released:
        if name == "rich":
            continue
        gone = next(e for e in sorted(lost) if e.startswith(f"{name}/"))
        answer = service.resolve(gone, paid[gone])
        assert answer.granted, answer
        assert service.state(gone) == "SKIPPED"
        assert "0x" + paid[gone].hex() in service.execution(gone)["reason"]
    for name, execution_id in released.items():
        service.wait_state(execution_id, "PLANNED" if name == "rich" else "SUCCEEDED")
    service.rows("UPDATE strategy SET paused_at = now(), paused_why = 'the test ends' RETURNING name")
    service.wait(
        lambda: not service.rows("SELECT FROM execution WHERE state IN ('PENDING', 'RUNNING')"),
        "all is through",
    )
    effects = Counter(e.split("/")[0] for e in _paid(service) if e not in paid)
    for name, to in payees.items():
        assert service.balance(to) - balances[name] == effects[name], f"{name}: what ran after the restore, once each"
    assert service.nonce(wallet.address) == used + sum(effects.values())
    assert {len(raws) for raws in service.proxy.raws_by_nonce().values()} == {1}, "no nonce carried two payloads"
    service.judge()
