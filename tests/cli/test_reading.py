"""What the reading commands say: what needs a person first, one execution's whole story, JSON and CSV that parse."""

import csv
import io

from tests.cli.desk import Desk
from tests.store import lifecycle
from tests.store.rows import PAYEE, Call, Lane, Rows, Sighting

TOKEN_CALL = bytes.fromhex("a9059cbb") + PAYEE.rjust(32, b"\0") + (2_500_000).to_bytes(32, "big")


def _paid(rows: Rows, lane: Lane) -> str:
    execution_id = rows.pending(lane, key="8812")
    rows.plan(
        lane, execution_id, [Call(value=10**18, once="invoice/8812"), Call(recipient=PAYEE, value=0, data=TOKEN_CALL)]
    )
    for nonce in rows.reserve(lane, execution_id):
        lifecycle.sign(rows, lane, nonce)
        lifecycle.send(rows, lane, nonce)
        with rows.held(lane):
            rows.run(
                "INSERT INTO broadcast (account_id, nonce, seq, endpoint, verdict, token) VALUES (%s, %s, 0, 'node:8545', 'accepted', %s)",
                lane.account_id, nonce, lane.token,
            )  # fmt: skip
        lifecycle.mine(rows, lane, nonce, Sighting(number=12, gas_used=21_000, price=10**9))
    return execution_id


def test_a_story_is_found_by_every_name(desk: Desk, rows: Rows, lane: Lane) -> None:
    execution_id = _paid(rows, lane)
    transaction = rows.value("SELECT '0x' || encode(hash, 'hex') FROM attempt WHERE nonce = 7")
    told = desk.fine("show", execution_id).out
    for name in ("treasury/7", "treasury/8", transaction, "invoice/8812"):
        assert desk.fine("show", name).out == told
    for piece in (
        "payroll/id/8812: RUNNING",
        "asked for by trigger with id 8812",
        "step 0: send 1 ether to 0x70997970C51812dc3A010C7d01b50e0d17dc79C8, once invoice/8812",
        "step 1: ERC-20 transfer of 2500000 units of 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 to 0x70997970",
        "nonce treasury/7, reserved",
        "attempt 0 SEND MINED: gas 21000",
        "node:8545 said accepted",
        "in block 12",
        "success, gas 21000 at 1 gwei, cost 21000 gwei",
        "nonce treasury/7 OPEN",
        "held by worker",
        "cost: 42000 gwei in fees",
        "next: nothing; it is on its way",
    ):
        assert piece in told


def test_a_story_as_json(desk: Desk, rows: Rows, lane: Lane) -> None:
    story = desk.fine("show", _paid(rows, lane), "--json").json
    assert story["execution"]["state"] == "RUNNING"
    assert story["steps"][0]["value_wei"] == str(10**18)
    assert story["steps"][1]["data"] == "0x" + TOKEN_CALL.hex()
    assert [attempt["status"] for attempt in story["attempts"]] == ["MINED", "MINED"]
    assert story["fees_wei"] == str(42_000 * 10**9)
    assert story["events"][0]["to_state"] == "PENDING"


def test_what_nobody_knows(applied: Desk) -> None:
    for name in ("payroll/id/1", "treasury/7", "0x" + "ab" * 32, "invoice/1", "\x1b[31m"):
        assert "nothing is known as" in applied.fails(1, "show", name)


def test_status_says_what_needs_a_person(desk: Desk, rows: Rows, lane: Lane) -> None:
    parked = lifecycle.arrive(rows, lane, "PARKED")
    failed = lifecycle.arrive(rows, lane, "FAILED")
    desk.fine("halt", "treasury", "--why", "looks odd")
    run = desk.run("status")
    assert run.code == 1
    assert f"fenced show {parked}" in run.out
    assert f"fenced show {failed}" in run.out
    assert "✗ treasury: halted: looks odd" in run.out
    assert 'fenced reopen treasury --why "…"' in run.out
    assert "✗ workers: none is alive" in run.out
    assert "registered revision r1 is not this configuration's" in run.out
    assert run.out.index("needs you") < run.out.index("account  ")
    document = desk.run("status", "--json").json
    assert {need["subject"] for need in document["needs"]} >= {parked, failed, "treasury", "workers", "payroll"}
    assert document["accounts"][0]["holder"] == "worker"


def test_status_is_fine_with_a_worker_and_nothing_amiss(applied: Desk) -> None:
    applied.execute("INSERT INTO worker (worker_id, name, release) VALUES (gen_random_uuid(), 'w', '1')")
    out = applied.fine("status").out
    assert "tests: 1 worker alive\nnothing needs you" in out
    assert "treasury  31337  open" in out
    applied.write("payroll.py", "def plan(ctx):\n    raise KeyError\n")
    assert "fenced apply" in applied.run("status").out
    (applied.directory / "payroll.py").unlink()
    run = applied.run("status")
    assert run.code == 1
    assert "strategies.payroll.plan:" in run.out
    assert "treasury  31337  open" in run.out


def test_a_plan_for_a_revision_that_is_gone(applied: Desk) -> None:
    applied.fine("trigger", "refunds", "--id", "1")
    applied.write("payroll.py", "def plan(ctx):\n    raise KeyError\n")
    assert "1 pending execution keeps the old revision" in applied.fine("apply").out
    assert "✗ refunds/id/1: was made for a revision that is no longer registered" in applied.run("status").out
    assert "next: nothing plans it" in applied.fine("show", "refunds/id/1").out


def test_executions_as_a_table_json_and_csv(desk: Desk, rows: Rows, lane: Lane) -> None:
    paid = _paid(rows, lane)
    desk.fine("apply")
    desk.fine("trigger", "refunds", "--id", "2")
    assert paid in desk.fine("executions").out
    assert [one["execution_id"] for one in desk.fine("executions", "--json").json] == ["refunds/id/2", paid]
    assert [one["execution_id"] for one in desk.fine("executions", "--json", "--state", "running").json] == [paid]
    assert [one["execution_id"] for one in desk.fine("executions", "--json", "--strategy", "refunds").json] == [
        "refunds/id/2"
    ]
    assert len(desk.fine("executions", "--json", "--limit", "1").json) == 1
    table = list(csv.DictReader(io.StringIO(desk.fine("executions", "--csv").out)))
    assert [(one["execution_id"], one["state"], one["fees_wei"]) for one in table] == [
        ("refunds/id/2", "PENDING", ""),
        (paid, "RUNNING", str(42_000 * 10**9)),
    ]
    assert "is no state of an execution" in desk.fails(2, "executions", "--state", "DONE")


def test_accounts_say_what_is_open(desk: Desk, rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id)
    rows.reserve(lane, execution_id)
    (account,) = desk.fine("accounts", "--json").json
    assert (account["open_nonces"], account["in_flight"], account["next_nonce"], account["token"]) == (
        1,
        1,
        8,
        lane.token,
    )
    assert "1/16" in desk.fine("accounts").out


def test_an_account_with_open_nonces_is_not_dropped(desk: Desk, rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id)
    rows.reserve(lane, execution_id)
    text = (desk.directory / "fenced.toml").read_text()
    desk.write("fenced.toml", text[: text.index("[accounts.treasury]")])
    assert "has 1 open nonces" in desk.fails(1, "apply")
    assert rows.value("SELECT count(*) FROM strategy WHERE retired_at IS NOT NULL") == 0


def test_text_from_outside_moves_no_cursor(desk: Desk, rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    rows.run("UPDATE account SET attention = %s", "evil \x1b[2J\x1b]0;title\x07 text")
    for command in (["status"], ["accounts"], ["show", execution_id]):
        assert "\x1b" not in desk.run(*command).out


def test_a_parked_execution_shows_its_evidence(desk: Desk, rows: Rows, lane: Lane) -> None:
    told = desk.fine("show", lifecycle.arrive(rows, lane, "PARKED")).out
    assert "used by a transaction that is not ours" in told
    assert "look on chain whether it was paid" in told


def test_a_foreign_transaction_leads_to_the_nonce_it_took(desk: Desk, rows: Rows, lane: Lane) -> None:
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id)
    rows.reserve(lane, execution_id)
    with rows.held(lane):
        rows.run(
            "UPDATE nonce_reservation SET state = 'CLOSED', closed_as = 'foreign', foreign_hash = sha256('them'), closed_at = now(),"
            " witness_number = 1, witness_hash = sha256(''), witness_rule = 'depth 0', witness_endpoints = '{a}'"
        )
    name = "0x" + rows.value("SELECT encode(sha256('them'), 'hex')")
    assert desk.fine("show", name).out.startswith(f"{execution_id}: RUNNING")
