"""Reopening with chain or journal ahead of the rows, and the resolution of what was parked (design section 2, P3, P13)."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from chain.client import ChainClient
from executor import operations
from executor.database import Held, Refused
from executor.recurrence import slot_text
from executor.scheduler import materialise
from executor.stages import plan, reconcile
from executor.store import executions
from executor.store import operations as asked
from tests.stages.conftest import Line
from tests.stages.test_reconcile import foreign, run
from tests.support.proxy import RecordingProxy
from tests.support.proxy_script import on


def reopen(line: Line) -> tuple[bool, str]:
    return _answer(line, operations.ask_reopen(line.database, "treasury", "looked", "me"))


def resolve(line: Line, execution_id: str, paid: bytes | None = None) -> tuple[bool, str]:
    return _answer(line, operations.ask_resolve(line.database, execution_id, paid, "looked at the chain", "me"))


def _answer(line: Line, request: operations.Asked) -> tuple[bool, str]:
    assert request.request_id is not None, request.said
    reconcile.run(line.turn, line.client, line.signer)
    with line.database.read() as tx:
        found = asked.answer(tx, request.request_id)
    assert found is not None
    return found.granted, found.text


def execute(line: Line, statement: str, *parameters: Any) -> None:
    with line.database.transaction() as tx:
        tx.exec_driver_sql(statement, parameters or None)


def pending(line: Line, name: str, slot: datetime | None = None) -> str:
    """A PENDING execution of a trigger, or of a slot."""
    key = None if slot else name
    execution_id = f"pay/{slot_text(slot)}" if slot else f"pay/id/{name}"
    row = {"execution_id": execution_id, "strategy": "pay", "slot": slot, "trigger_key": key, "input": None}
    with line.database.transaction() as tx:
        assert executions.insert(tx, [row | {"state": "PENDING", "due_at": slot or datetime.now(UTC)}]) == [
            execution_id
        ]
    return execution_id


def scheduled(line: Line, since: timedelta) -> None:
    """From here on the strategy has a slot a minute, and none was looked at for `since`."""
    execute(
        line,
        "UPDATE strategy SET every_seconds = 60, next_due_at = now(), high_water_mark = high_water_mark",
    )
    with line.database.transaction() as tx:
        tx.exec_driver_sql("SET LOCAL session_replication_role = replica")
        tx.exec_driver_sql("ALTER TABLE strategy DISABLE TRIGGER change")
        tx.exec_driver_sql("UPDATE strategy SET high_water_mark = now() - %s", (since,))
        tx.exec_driver_sql("ALTER TABLE strategy ENABLE ALWAYS TRIGGER change")


def elsewhere(line: Line) -> None:
    """What the rows look like once the database was promoted."""

    def write(held: Held) -> None:
        held.tx.exec_driver_sql("UPDATE account SET timeline = timeline + 1")

    line.turn.record(write)


def test_nonces_used_above_the_rows_are_acknowledged_once_they_are_final(line: Line) -> None:
    """Chain ahead of the rows: the key was used elsewhere, or a copy of the disk lost the tail on the same timeline."""
    first = line.execution("a", {})
    line.send()
    line.finish()
    base = line.view().nonce_latest
    hashes = [foreign(line, base + i, value=5 + i) for i in range(3)]
    waiting = pending(line, "meanwhile")
    line.mine()
    assert "the key was used elsewhere or rows are lost" in str(run(line))
    granted, text = reopen(line)
    assert not granted
    assert "are not final yet: wait until the final block is past block" in text
    stray = foreign(line, base + 3)
    granted, text = reopen(line)
    assert not granted
    assert f"transactions of unknown origin wait in the node's pool (nonces {base + 3} to {base + 3})" in text
    line.devnet.rpc("anvil_dropTransaction", stray)
    line.mine(2)
    granted, text = reopen(line)
    assert granted
    assert text == f"open again, nonces {base} to {base + 2} acknowledged, 1 executions parked"
    assert line.account().state == "open"
    rows = line.rows("SELECT nonce, '0x' || encode(hash, 'hex'), execution_id FROM acknowledged_nonce ORDER BY nonce")
    assert [tuple(row) for row in rows] == [(base + i, hash_, None) for i, hash_ in enumerate(hashes)]
    assert line.state(waiting)[0] == "PARKED"
    following = line.execution("b", {})
    line.send()
    assert line.one("SELECT nonce FROM nonce_reservation WHERE execution_id = %s", following)[0] == base + 3
    assert line.finish() == {following: "SUCCEEDED"}
    assert line.state(first)[0] == "SUCCEEDED"
    assert run(line) is None, "acknowledged nonces are no ground to halt"


def test_a_clock_in_doubt_opens_nothing_and_one_that_was_ahead_parks_up_to_there(line: Line) -> None:
    """What was due before the reopening is told by the clock: set back, it would let slots of the lost tail run again."""
    scheduled(line, timedelta(minutes=3))
    elsewhere(line)
    execute(line, "UPDATE clock_guard SET anomaly = 'stepped back', anomaly_at = now(), is_settled = false")
    granted, text = reopen(line)
    assert not granted
    assert "the database's clock stepped and is not believed yet" in text
    execute(line, "UPDATE clock_guard SET is_settled = true, max_seen = now() + interval '10 minutes'")
    granted, text = reopen(line)
    assert granted, text
    assert line.one("SELECT reopened_at = max_seen FROM account, clock_guard")[0]
    assert line.one("SELECT count(*) FROM execution WHERE state = 'PARKED' AND slot > now()")[0] == 10
    assert line.one("SELECT high_water_mark = max_seen FROM strategy, clock_guard")[0]


def test_a_journal_ahead_is_acknowledged_with_what_it_was_for(line: Line) -> None:
    """A journal in a store of its own remembers what the rows lost: acknowledged if mined for good, refused while it may be."""
    line.execution("kept", {})
    line.send()
    line.finish()
    base = line.view().nonce_latest
    copied = "INSERT INTO signer.binding SELECT chain_id, address, %s, 'pay/id/gone', %s, digest, tx_type, 'intent' FROM signer.binding LIMIT 1"
    execute(line, copied, base, 0)
    assert "the rows do not: restored or copied" in str(run(line))
    granted, text = reopen(line)
    assert not granted
    assert f"bound nonce {base} to step 0 of pay/id/gone" in text
    assert "its bytes may still be mined" in text
    foreign(line, base)
    line.mine(3)
    gone = pending(line, "gone")
    assert reopen(line)[0]
    assert tuple(line.one("SELECT nonce, execution_id, step FROM acknowledged_nonce")) == (base, "pay/id/gone", 0)
    granted, text = resolve(line, gone)
    assert not granted, "the journal says that this very execution was signed"
    assert f"bound nonce {base} to it" in text
    assert run(line) is None


def test_every_slot_since_the_mark_is_parked_and_none_is_lost(line: Line) -> None:
    """The marks move to now, and each slot up to then has a row that says it waits (the lost tail used to vanish in silence)."""
    scheduled(line, timedelta(minutes=10))
    planned = line.execution("planned", {})
    elsewhere(line)
    granted, text = reopen(line)
    assert granted, text
    slots = line.rows("SELECT slot, state, evidence ->> 'why' FROM execution WHERE slot IS NOT NULL ORDER BY slot")
    assert len(slots) in (10, 11)
    assert {row[1] for row in slots} == {"PARKED"}
    assert {row[2] for row in slots} == {"looked (me)"}
    assert all(b[0] - a[0] == timedelta(minutes=1) for a, b in pairwise(slots))
    assert line.state(planned)[0] == "PARKED"
    mark, until = line.one("SELECT high_water_mark, reopened_at FROM strategy JOIN account USING (account_id)")
    assert mark == until
    assert line.account().is_rewound is False
    later = pending(line, "", (until - timedelta(hours=3)).replace(second=0, microsecond=0))
    with pytest.raises(Refused, match="due before"):
        line.turn.record(
            lambda held: held.tx.exec_driver_sql(
                "UPDATE execution SET state = 'PLANNED', steps = 1, plan_order = 'together', planned_at = now(), token = 1"
                " WHERE execution_id = %s",
                (later,),
            )
        )
    new = pending(line, "made-after")
    report = plan.run(line.turn, line.client, "pay", None)
    assert (report.moved, report.is_unplannable) == (1, True)
    assert line.state(later)[0] == "PARKED", "a slot that lies before, whoever made it and whenever"
    assert line.state(new)[0] == "PENDING", (
        "a trigger made after the reopening is new: it waits for a worker with its revision"
    )


def test_a_schedule_with_very_many_lost_slots_says_what_got_no_row(line: Line) -> None:
    scheduled(line, timedelta(days=2))
    elsewhere(line)
    granted, text = reopen(line)
    assert granted
    assert "only the newest 1000 slots of pay got a row" in text
    assert line.one("SELECT count(*) FROM execution WHERE state = 'PARKED'")[0] == 1000


def test_a_running_plan_of_ordered_steps_gets_no_further_nonce(line: Line) -> None:
    """A lost row may have paid the next step, and no journal in this cluster remembers it: it ends by what took effect (P2)."""
    execution_id = line.execution("ordered", {}, {"value": 2}, order="mined")
    line.send()
    elsewhere(line)
    granted, text = reopen(line)
    assert granted
    assert "1 running ones get no further step" in text
    line.mine()
    line.settle()
    assert line.reserve() == 0, "the step before is mined, the next one would be due"
    line.finish()
    state, reason = line.state(execution_id)
    assert state == "PARTIAL"
    assert "a lost row may have paid them" in str(reason)
    assert line.account().attention is None, "the step is not even asked for"
    assert line.one("SELECT count(*) FROM nonce_reservation WHERE execution_id = %s", execution_id)[0] == 1


def test_a_plan_whose_steps_are_all_settled_ends_at_the_reopening(line: Line) -> None:
    execution_id = line.execution("between", {}, {"value": 2}, order="final")
    line.send()
    line.finish()
    assert line.state(execution_id)[0] == "RUNNING"
    elsewhere(line)
    assert reopen(line)[0]
    assert line.state(execution_id)[0] == "PARTIAL"


def test_a_draft_that_was_sent_by_a_lost_row_is_signed_again_with_the_same_bytes(line: Line) -> None:
    """The reservation was kept, its bytes were lost and mined: the same draft gives the same bytes, which have their receipt."""
    execution_id = line.execution("drafted", {})
    line.reserve()
    line.sign()
    raw = line.one("SELECT raw FROM attempt")[0]
    line.devnet.rpc("eth_sendRawTransaction", "0x" + bytes(raw).hex())
    line.mine(3)
    with line.database.transaction() as tx:
        for table in ("attempt", "signer.signature", "signer.binding"):
            tx.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        tx.exec_driver_sql(
            "UPDATE attempt SET status = 'DRAFT', raw = NULL, hash = NULL, signed_token = NULL, signed_at = NULL"
        )
        tx.exec_driver_sql("DELETE FROM signer.signature")
        tx.exec_driver_sql("DELETE FROM signer.binding")
        for table in ("attempt", "signer.signature", "signer.binding"):
            tx.exec_driver_sql(f"ALTER TABLE {table} ENABLE TRIGGER ALL")
    elsewhere(line)
    granted, text = reopen(line)
    assert granted, text
    line.sign()
    line.broadcast()
    assert line.one("SELECT raw FROM attempt")[0] == raw
    assert line.settle() == {execution_id: "SUCCEEDED"}


def test_a_released_execution_runs_once_under_its_own_id(line: Line) -> None:
    execution_id = line.execution("planned", {"value": 3}, expires_in=-5.0)
    unplanned = pending(line, "unplanned")
    elsewhere(line)
    assert reopen(line)[0]
    assert resolve(line, execution_id) == (True, "released: it runs under its own id")
    assert line.state(execution_id) == ("PLANNED", "released as not paid, says me: looked at the chain")
    assert resolve(line, unplanned)[0]
    assert line.state(unplanned)[0] == "PENDING"
    assert line.one("SELECT expires_at FROM execution WHERE execution_id = %s", execution_id)[0] is None
    line.send()
    assert line.finish() == {execution_id: "SUCCEEDED"}
    told = line.rows("SELECT to_state, why FROM history WHERE subject = %s ORDER BY history_id", execution_id)
    assert [row[0] for row in told][:4] == ["PENDING", "PLANNED", "PARKED", "PLANNED"]
    assert "says me: looked at the chain" in told[3][1]
    assert line.one(
        "SELECT resolution ->> 'who', evidence ->> 'why' FROM execution WHERE execution_id = %s", execution_id
    ) == (
        "me",
        "looked (me)",
    )
    elsewhere(line)
    assert reopen(line)[0]
    assert tuple(line.one("SELECT state, resolution FROM execution WHERE execution_id = %s", unplanned)) == (
        "PARKED",
        None,
    )


def test_a_paid_one_ends_with_a_final_transaction_only(line: Line) -> None:
    execution_id = line.execution("paid", {})
    elsewhere(line)
    assert reopen(line)[0]
    granted, text = resolve(line, execution_id, b"\x12" * 32)
    assert not granted
    assert "the chain knows no mined transaction 0x1212" in text
    base = line.view().nonce_latest
    paid = foreign(line, base)
    line.mine()
    granted, text = resolve(line, execution_id, bytes.fromhex(paid[2:]))
    assert not granted, "the chain is ahead of the rows again"
    assert 'fenced reopen treasury --why "…" comes first' in text
    line.mine(2)
    assert reopen(line)[0]
    with RecordingProxy(line.devnet.url) as liar:
        true, line.client = line.client, ChainClient("local", 31337, [line.devnet.url, liar.url], line.client.finality)
        liar.script(on("eth_getTransactionReceipt").answer(None))
        granted, text = resolve(line, execution_id, bytes.fromhex(paid[2:]))
        line.client.close()
        line.client = true
    assert not granted
    assert f"not every endpoint says that the transaction {paid} is final" in text
    assert resolve(line, execution_id, bytes.fromhex(paid[2:])) == (True, "it is SKIPPED now")
    assert line.state(execution_id) == ("SKIPPED", f"paid by {paid}, says me: looked at the chain")
    with pytest.raises(Exception, match="SKIPPED, not PARKED"):
        resolve(line, execution_id)


def test_a_foreign_nonce_lets_its_execution_end_only(line: Line) -> None:
    """P2, P3: by the steps that took effect, whatever is said; a nonce of it is spent, so it never runs again."""
    for name, calls, end in (("all", [{"value": 7}], "CANCELLED"), ("some", [{"value": 8}, {"value": 9}], "PARTIAL")):
        execution_id = line.execution(name, *calls)
        line.reserve()
        line.sign()
        base = line.view().nonce_latest
        if len(calls) == 2:
            line.devnet.rpc(
                "eth_sendRawTransaction",
                "0x" + bytes(line.one("SELECT raw FROM attempt WHERE nonce = %s", base)[0]).hex(),
            )
        foreign(line, base + len(calls) - 1)
        line.mine(3)
        line.settle()
        assert run(line) is None
        assert line.state(execution_id)[0] == "PARKED"
        assert resolve(line, execution_id) == (True, f"it is {end} now")
        assert line.state(execution_id) == (end, "not paid, says me: looked at the chain")


def test_an_unplannable_execution_is_ended_when_released(line: Line) -> None:
    execution_id = pending(line, "old")
    elsewhere(line)
    assert reopen(line)[0]
    execute(line, "UPDATE strategy SET revision = 'another'")
    granted, text = resolve(line, execution_id)
    assert granted
    assert "trigger a run of its own with --id" in text
    assert line.state(execution_id)[0] == "CANCELLED"


def test_a_wish_from_before_the_rewind_is_refused(line: Line) -> None:
    """A request that lay in the backup is not the operator's word about the restore."""
    execute(line, "UPDATE account SET state = 'halted', reason = 'test'")
    stale = operations.ask_reopen(line.database, "treasury", "asked long ago", "me")
    with line.database.transaction() as tx:
        tx.exec_driver_sql("ALTER TABLE request DISABLE TRIGGER change")
        tx.exec_driver_sql("UPDATE request SET timeline = timeline + 7")
        tx.exec_driver_sql("ALTER TABLE request ENABLE ALWAYS TRIGGER change")
    granted, text = _answer(line, stale)
    assert (granted, text) == (False, "asked before the database was restored, promoted or copied: ask again")
    assert line.account().state == "halted"


def test_nothing_is_signed_or_first_sent_where_the_database_moved(line: Line) -> None:
    """P16, also by a stage whose tick had looked at the account before the promotion: the statement itself asks."""
    line.execution("signed", {})
    line.reserve()
    line.sign()
    line.execution("drafted", {"value": 2})
    line.reserve()
    elsewhere(line)
    assert line.account().state == "open"
    assert line.sign() == 0
    assert line.broadcast() == 0
    assert reopen(line)[0]
    line.sign()
    assert line.broadcast() == 2
    assert len(line.finish()) == 2


def test_an_account_that_was_never_seeded_here_is_reopened_too(line: Line) -> None:
    """Restored to before its first reconcile: the journal knows nonces below the one it now begins at."""
    line.execution("known", {})
    line.send()
    line.finish()
    latest = line.view().nonce_latest
    with line.database.transaction() as tx:
        for table in ("account", "nonce_reservation", "attempt", "receipt", "broadcast"):
            tx.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        for table in ("broadcast", "receipt", "attempt", "nonce_reservation"):
            tx.exec_driver_sql(f"DELETE FROM {table}")
        tx.exec_driver_sql("UPDATE account SET first_nonce = NULL")
        for table in ("account", "nonce_reservation", "attempt", "receipt", "broadcast"):
            tx.exec_driver_sql(f"ALTER TABLE {table} ENABLE TRIGGER ALL")
    assert "the rows do not: restored or copied" in str(run(line))
    pooled = foreign(line, latest)
    assert "wait in the node's pool" in reopen(line)[1]
    line.devnet.rpc("anvil_dropTransaction", pooled)
    assert reopen(line) == (True, "open again")
    assert line.account().first_nonce == latest
    assert run(line) is None


def test_one_of_several_wishes_to_reopen_is_carried_out(line: Line) -> None:
    elsewhere(line)
    assert run(line) is None
    assert line.account().state == "halted"
    first = operations.ask_reopen(line.database, "treasury", "looked", "me")
    execute(
        line, "INSERT INTO request (kind, account_id, why, who) SELECT 'reopen', account_id, 'twice', 'me' FROM account"
    )
    assert _answer(line, first)[0]
    answers = line.rows("SELECT granted, answer FROM request ORDER BY request_id")
    assert [row[0] for row in answers] == [True, False]
    assert answers[1][1] == "a request before it has opened the account"


def test_slots_are_left_where_they_are_until_the_reopening(line: Line) -> None:
    """A misfire policy would record them as skipped, and nobody could release them."""
    scheduled(line, timedelta(minutes=5))
    elsewhere(line)
    assert materialise(line.database, datetime.now(UTC)) == 0
    assert reopen(line)[0]
    assert line.one("SELECT count(*) FROM execution WHERE state = 'PARKED' AND slot IS NOT NULL")[0] in (5, 6)
