"""What is never removed and never changed, from a bare connection; and the history that no store can forget."""

import pytest

from tests.store import lifecycle
from tests.store.refusals import refused
from tests.store.rows import Call, Lane, Rows

KEPT = [
    "installation",
    "account",
    "lease",
    "lease_generation",
    "strategy",
    "execution",
    "intent",
    "nonce_reservation",
    "attempt",
    "broadcast",
    "receipt",
    "already_paid",
    "acknowledged_nonce",
    "request",
    "history",
    "refused_write",
]


def test_every_table_is_kept_or_known_not_to_be(rows: Rows) -> None:
    found = rows.connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    assert {name for (name,) in found} - set(KEPT) == {"worker", "alembic_version", "clock_guard"}


@pytest.mark.parametrize("replication", ["origin", "replica"])
@pytest.mark.parametrize("table", KEPT)
def test_rows_are_never_removed(rows: Rows, lane: Lane, table: str, replication: str) -> None:
    """With a hold too, and when a superuser plays replica."""
    rows.run(f"SET session_replication_role = {replication}")
    for statement in (f"DELETE FROM {table}", f"DELETE FROM {table} WHERE false", f"TRUNCATE {table} CASCADE"):
        with refused(f"{table}_kept"):
            rows.run(statement)
        with refused(f"{table}_kept"), rows.held(lane):
            rows.run(statement)


def test_every_trigger_is_always_on(rows: Rows) -> None:
    found = rows.connection.execute(
        "SELECT tgrelid::regclass || '.' || tgname FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid"
        " WHERE NOT tgisinternal AND tgenabled <> 'A' AND c.relnamespace IN ('public'::regnamespace, 'signer'::regnamespace)"
    ).fetchall()
    assert found == []


IMMUTABLE = ("intent", "already_paid", "acknowledged_nonce", "lease_generation", "history", "refused_write")


@pytest.mark.parametrize("table", IMMUTABLE)
def test_rows_that_are_evidence_never_change(rows: Rows, lane: Lane, table: str) -> None:
    columns = {
        "lease_generation": "holder",
        "history": "why",
        "refused_write": "detail",
        "acknowledged_nonce": "witness_rule",
    }
    column = columns.get(table, "once")
    with refused(f"{table}_immutable"), rows.held(lane):
        rows.run(f"UPDATE {table} SET {column} = 'x'")


CHANGES = {
    "another chain": ("account_identity", "UPDATE account SET chain_id = 1"),
    "another address": ("account_identity", "UPDATE account SET address = substr(sha256(''), 1, 20)"),
    "another cancel digest": ("account_identity", "UPDATE account SET cancel_digest = sha256('')"),
    "another first nonce": ("account_identity", "UPDATE account SET first_nonce = 8"),
    "no first nonce": ("account_identity", "UPDATE account SET first_nonce = NULL"),
    "a lower fence": ("fence_high_water", "UPDATE account SET fence = 0"),
    "a lower lease token": ("lease_token_grows", "UPDATE lease SET token = 0"),
    "a lease of another account": ("lease_token_grows", "UPDATE lease SET account_id = 2"),
    "another strategy name": ("strategy_identity", "UPDATE strategy SET name = 'x'"),
    "a falling mark": (
        "strategy_high_water_mark",
        "UPDATE strategy SET high_water_mark = high_water_mark - interval '1 s'",
    ),
    "a falling pruned mark": ("strategy_high_water_mark", "UPDATE strategy SET pruned_through = '-infinity'"),
    "pruning what was not looked at": (
        "strategy_pruned_through",
        "UPDATE strategy SET pruned_through = high_water_mark + interval '1 s'",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("held", [True, False])
def test_what_only_grows_or_never_changes(rows: Rows, lane: Lane, case: str, held: bool) -> None:
    constraint, statement = CHANGES[case]
    rows.run("UPDATE strategy SET pruned_through = '2026-09-01'")
    with refused(constraint), rows.connection.transaction():
        if held:
            rows.hold(lane)
        rows.run(statement)


def test_the_genesis_is_seeded_once_by_a_holder(rows: Rows, lane: Lane) -> None:
    with refused("fence_required"):
        rows.run("UPDATE account SET genesis_hash = sha256('genesis')")
    with rows.held(lane):
        rows.run("UPDATE account SET genesis_hash = sha256('genesis')")
    with refused("account_identity"), rows.held(lane):
        rows.run("UPDATE account SET genesis_hash = sha256('another chain')")


@pytest.fixture
def mined(rows: Rows, lane: Lane) -> Lane:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, [Call()])
    rows.reserve(lane, execution_id)
    lifecycle.sign(rows, lane, 7)
    lifecycle.send(rows, lane, 7)
    lifecycle.mine(rows, lane, 7)
    return lane


@pytest.mark.parametrize(
    "assignment", ["status = 0", "block_number = 11", "block_hash = sha256('x')", "seen_at = now()"]
)
def test_a_receipt_changes_once_when_its_block_leaves(rows: Rows, mined: Lane, assignment: str) -> None:
    """P23."""
    with refused("receipt_immutable"), rows.held(mined):
        rows.run(f"UPDATE receipt SET {assignment}")
    with rows.held(mined):
        rows.run("UPDATE receipt SET orphaned_at = clock_timestamp()")
    for again in ("orphaned_at = NULL", "orphaned_at = now()"):
        with refused("receipt_immutable"), rows.held(mined):
            rows.run(f"UPDATE receipt SET {again}")
    lifecycle.mine(rows, mined, 7)


def test_one_receipt_of_an_attempt_is_believed_at_a_time(rows: Rows, mined: Lane) -> None:
    with refused("receipt_believed", "23505"):
        lifecycle.mine(rows, mined, 7)


def test_a_request_is_answered_once(rows: Rows, lane: Lane) -> None:
    rows.run(
        "INSERT INTO request (kind, account_id, why, who) VALUES ('reopen', %s, 'looked at it', 'me')", lane.account_id
    )
    with refused("request_answered_once"):
        rows.run("UPDATE request SET why = 'another why'")
    answer = "UPDATE request SET answered_at = clock_timestamp(), granted = true, answer = 'open'"
    rows.run(answer)
    with refused("request_answered_once"):
        rows.run(answer)


def test_history_tells_every_transition_with_token_and_actor(rows: Rows, lane: Lane) -> None:
    rows.run("SET application_name = 'a worker'")
    execution_id = lifecycle.running(rows, lane, "SUCCEEDED", [Call()])
    lifecycle.change(rows, lane, execution_id, "SUCCEEDED")
    rows.run("UPDATE account SET state = 'halted', reason = 'enough'")
    rows.run("UPDATE strategy SET paused_at = now(), paused_why = 'holiday'")
    told = rows.connection.execute(
        "SELECT kind, subject, from_state, to_state, token, actor FROM history ORDER BY history_id"
    ).fetchall()
    nonce, attempt = f"{lane.account_id}/7", f"{lane.account_id}/7/0"
    assert told == [
        ("execution", execution_id, None, "PENDING", None, "a worker"),
        ("execution", execution_id, "PENDING", "PLANNED", 1, "a worker"),
        ("nonce", nonce, None, "OPEN", 1, "a worker"),
        ("attempt", attempt, None, "DRAFT", 1, "a worker"),
        ("execution", execution_id, "PLANNED", "RUNNING", 1, "a worker"),
        ("attempt", attempt, "DRAFT", "SIGNED", 1, "a worker"),
        ("attempt", attempt, "SIGNED", "SENT", 1, "a worker"),
        ("attempt", attempt, "SENT", "MINED", 1, "a worker"),
        ("attempt", attempt, "MINED", "FINAL", 1, "a worker"),
        ("nonce", nonce, "OPEN", "CLOSED", 1, "a worker"),
        ("execution", execution_id, "RUNNING", "SUCCEEDED", 1, "a worker"),
        ("account", "treasury", "open", "halted", None, "a worker"),
        ("strategy", "payroll", "active", "paused", None, "a worker"),
    ]
