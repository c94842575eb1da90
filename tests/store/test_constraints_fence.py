"""G6 from a bare connection: no write without hold, and no hold for a generation that has passed."""

import uuid
from dataclasses import replace

import pytest

from tests.store import lifecycle
from tests.store.conftest import Connect
from tests.store.refusals import LOCKED, refused
from tests.store.rows import Call, Lane, Rows

# One write of every guarded table and verb; the rows they meet are made by `world`.
WRITES = {
    "plan": "UPDATE execution SET reason = 'x' WHERE execution_id = 'payroll/2026-09-02T10:00Z'",
    "intent": "INSERT INTO intent (execution_id, step, account_id, recipient, value, data, access_list, digest, token)"
    " SELECT 'payroll/2026-09-03T10:00Z', 0, account_id, recipient, 9, data, access_list, sha256(''), {token} FROM intent"
    " WHERE step = 0",
    "reservation": "INSERT INTO nonce_reservation (account_id, nonce, execution_id, step, intent_digest, transaction_type, token)"
    " SELECT account_id, 8, execution_id, step, digest, 2, {token} FROM intent WHERE step = 1",
    "attempt": "INSERT INTO attempt (account_id, nonce, seq, kind, intent_digest, gas, max_fee, tip, token)"
    " SELECT account_id, nonce, 1, 'BUMP', intent_digest, gas, max_fee + 1, tip, {token} FROM attempt",
    "outcome": "UPDATE attempt SET status = 'SENT'",
    "closing": "UPDATE nonce_reservation SET state = 'OPEN'",
    "receipt": "INSERT INTO receipt (account_id, nonce, seq, block_number, block_hash, status, gas_used, effective_gas_price,"
    " token) SELECT account_id, nonce, seq, 1, hash, 1, 1, 1, {token} FROM attempt",
    "broadcast": "INSERT INTO broadcast (account_id, nonce, seq, endpoint, verdict, token)"
    " SELECT account_id, nonce, seq, 'node', 'accepted', {token} FROM attempt",
    "already paid": "INSERT INTO already_paid (execution_id, step, account_id, once, paid_execution_id, paid_step, paid_hash,"
    " token) SELECT execution_id, 1, account_id, 'o', execution_id, step, intent_digest, {token} FROM nonce_reservation",
    "acknowledged nonce": "INSERT INTO acknowledged_nonce (account_id, nonce, witness_number, witness_hash, witness_rule,"
    " witness_endpoints, request_id, token) SELECT account_id, 8, 1, sha256(''), 'depth 0', '{{node}}', 1, {token} FROM nonce_reservation",
}
INSERTING = [name for name, statement in WRITES.items() if statement.startswith("INSERT")]


@pytest.fixture
def world(rows: Rows, lane: Lane) -> Lane:
    """A running execution whose second step waits, one pending execution, and another open account."""
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, [Call(), Call(value=2)])
    rows.reserve(lane, execution_id, [0])
    lifecycle.sign(rows, lane, 7)
    rows.pending(lane)
    rows.run("INSERT INTO request (kind, account_id, why, who) VALUES ('reopen', %s, 'looked', 'me')", lane.account_id)
    return lane


def _write(rows: Rows, write: str, token: int = 1) -> int:
    return rows.run(WRITES[write].format(token=token))


@pytest.mark.parametrize("write", WRITES)
def test_every_write_passes_under_hold(rows: Rows, world: Lane, write: str) -> None:
    with rows.held(world):
        assert _write(rows, write) == 1


@pytest.mark.parametrize("replication", ["origin", "replica"])
@pytest.mark.parametrize("write", WRITES)
def test_no_write_passes_without_hold(rows: Rows, world: Lane, write: str, replication: str) -> None:
    """Nor in a transaction after one that held, on the same connection; replica mode silences ordinary triggers only."""
    with rows.held(world):
        pass
    rows.run(f"SET session_replication_role = {replication}")
    with refused("fence_required"):
        _write(rows, write)
    with refused("fence_required"), rows.connection.transaction():
        _write(rows, write)


@pytest.mark.parametrize("write", WRITES)
def test_a_hold_is_not_lent_to_another_account(rows: Rows, world: Lane, write: str) -> None:
    other = rows.account("savings", address=b"\x01" * 20)
    with refused("fence_account"), rows.held(other):
        _write(rows, write)


@pytest.mark.parametrize("write", INSERTING)
def test_an_inserted_row_carries_the_token_of_its_holder(rows: Rows, world: Lane, write: str) -> None:
    newer = rows.take_over(world)
    with refused("fence_current"), rows.held(newer):
        _write(rows, write, token=world.token)
    with rows.held(newer):
        assert _write(rows, write, token=newer.token) == 1


def test_a_rolled_back_savepoint_takes_the_hold_with_it(rows: Rows, world: Lane) -> None:
    with rows.connection.transaction():
        with rows.connection.transaction(force_rollback=True):
            rows.hold(world)
        with refused("fence_required"), rows.connection.transaction():
            _write(rows, "broadcast")
        rows.hold(world)
        assert _write(rows, "broadcast") == 1


def test_two_accounts_may_be_held_and_a_third_not(rows: Rows, world: Lane) -> None:
    second = rows.account("savings", address=b"\x01" * 20)
    with rows.connection.transaction():
        rows.hold(world)
        rows.hold(second)
        assert _write(rows, "broadcast") == 1


def _stale(lane: Lane) -> dict[str, Lane]:
    return {
        "an older token": replace(lane, token=lane.token - 1),
        "a token of the future": replace(lane, token=lane.token + 1),
        "another lease id": replace(lane, lease_id=uuid.uuid4()),
    }


@pytest.mark.parametrize("kind", ["an older token", "a token of the future", "another lease id"])
def test_only_the_present_generation_holds(rows: Rows, world: Lane, kind: str) -> None:
    with refused("fence_current"), rows.connection.transaction():
        rows.hold(_stale(world)[kind])


def test_a_holder_whose_lease_passed_on_is_refused(rows: Rows, world: Lane) -> None:
    rows.take_over(world, "another worker")
    with refused("fence_current"), rows.held(world):
        _write(rows, "broadcast")


def test_a_released_holder_is_refused(rows: Rows, world: Lane) -> None:
    """P10: the token stays, the lease id is new."""
    rows.run("UPDATE lease SET lease_id = gen_random_uuid(), holder = NULL, expires_at = clock_timestamp()")
    with refused("fence_current"), rows.held(world):
        _write(rows, "broadcast")


def test_an_expired_lease_still_holds_until_somebody_takes_it(rows: Rows, world: Lane) -> None:
    """Identity is the fence, time is only for acquiring (P8)."""
    rows.run("UPDATE lease SET expires_at = '-infinity'")
    with rows.held(world):
        assert _write(rows, "broadcast") == 1


def test_the_mark_on_the_account_outlives_the_lease_table(rows: Rows, world: Lane) -> None:
    newer = rows.take_over(world)
    with rows.held(newer):
        pass
    rows.run("ALTER TABLE lease DISABLE TRIGGER change")
    rows.run("UPDATE lease SET token = %s, lease_id = %s", world.token, world.lease_id)
    with refused("fence_high_water"), rows.held(world):
        _write(rows, "broadcast")
    with refused("fence_high_water"):
        rows.run("UPDATE account SET fence = fence - 1")


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_worker_of_another_schema_epoch_is_refused(rows: Rows, world: Lane, epoch: int) -> None:
    """P27."""
    with refused("fence_epoch"):
        rows.run("SELECT hold(%s, %s, %s, %s)", world.account_id, world.token, world.lease_id, epoch)


def test_another_timeline_halts_the_account_and_keeps_the_reason(rows: Rows, world: Lane) -> None:
    """P13: and only a holder takes the account back."""
    rows.run("ALTER TABLE account DISABLE TRIGGER change")
    rows.run("UPDATE account SET timeline = timeline + 1")
    rows.run("ALTER TABLE account ENABLE ALWAYS TRIGGER change")
    with rows.connection.transaction():
        assert rows.hold(world) == "halted"
    assert "timeline" in rows.value("SELECT reason FROM account")
    with refused("account_open"), rows.held(world):
        _write(rows, "reservation")
    with refused("fence_required"):
        rows.run("UPDATE account SET timeline = current_timeline()")
    with rows.held(world):
        rows.run("UPDATE account SET timeline = current_timeline(), state = 'open', reason = NULL")


@pytest.mark.parametrize(("before", "after"), [("halted", "open"), ("halted", "draining"), ("draining", "open")])
def test_an_account_is_opened_by_its_holder_only(rows: Rows, world: Lane, before: str, after: str) -> None:
    """P21: an operator's switch only ever stops work."""
    rows.run("UPDATE account SET state = %s, reason = 'x'", before)
    with refused("fence_required"):
        rows.run("UPDATE account SET state = %s", after)
    with rows.held(world):
        rows.run("UPDATE account SET state = %s", after)


def test_hold_bounds_its_transaction(rows: Rows, world: Lane) -> None:
    rows.run("SET synchronous_commit = off")
    names = ("synchronous_commit", "lock_timeout", "idle_in_transaction_session_timeout")
    before = [rows.value(f"SHOW {name}") for name in names]
    with rows.held(world):
        assert [rows.value(f"SHOW {name}") for name in names] == ["on", "1s", "2s"]
    assert [rows.value(f"SHOW {name}") for name in names] == before


def test_a_takeover_waits_for_the_record_transaction_and_a_renewal_does_not(
    rows: Rows, world: Lane, connect: Connect
) -> None:
    """P9, P11, two connections: the row lock is what makes the comparison a fence."""
    second = Rows(connect())
    take = "SELECT 1 FROM lease FOR UPDATE NOWAIT"
    with rows.held(world):
        _write(rows, "broadcast")
        with refused(None, LOCKED):
            second.run(take)
        second.run("SET lock_timeout = '1ms'")
        with refused(None, LOCKED):
            second.take_over(world)
        assert second.run("SELECT 1 FROM lease FOR NO KEY UPDATE NOWAIT") == 1
        assert (
            second.run("UPDATE lease SET renewed_at = clock_timestamp(), expires_at = clock_timestamp() + '1 h'") == 1
        )
        assert second.run("SELECT account_id FROM lease WHERE expires_at > now() FOR UPDATE SKIP LOCKED") == 0
    assert second.run(take) == 1
    assert second.take_over(world).token == world.token + 1


def test_record_transactions_of_one_account_are_serial(rows: Rows, world: Lane, connect: Connect) -> None:
    """P8 b: whatever threads of one holder do."""
    second = Rows(connect())
    with rows.held(world), refused(None, LOCKED):
        second.run("SELECT 1 FROM account FOR NO KEY UPDATE NOWAIT")
    assert second.run("SELECT 1 FROM account FOR NO KEY UPDATE NOWAIT") == 1


def test_the_scheduler_may_insert_what_does_nothing_by_itself(rows: Rows, world: Lane) -> None:
    """P21: PENDING and SKIPPED executions need no hold; history notes them without a token."""
    execution_id = rows.pending(world)
    assert rows.value("SELECT token FROM history WHERE subject = %s", execution_id) is None
