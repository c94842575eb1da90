"""`fenced resolve`: what it takes, what it refuses in one sentence, and the request it leaves for the holder."""

import threading
from typing import Any

import pytest

from tests.cli.desk import Desk
from tests.store import lifecycle
from tests.store.rows import Lane, Rows

HASH = "0x" + "ab" * 32


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "exactly one of --paid HASH and --not-paid"),
        (("--paid", HASH, "--not-paid"), "exactly one of --paid HASH and --not-paid"),
        (("--paid", "0x12"), "0x and 64 hexadecimal digits"),
        (("--paid", HASH[2:]), "0x and 64 hexadecimal digits"),
    ],
)
def test_wrong_usage(desk: Desk, options: tuple[str, ...], told: str) -> None:
    assert told in desk.fails(2, "resolve", "payroll/id/1", *options, "--why", "looked")


def test_only_a_parked_execution_is_resolved(desk: Desk, rows: Rows, lane: Lane) -> None:
    assert "no execution is called" in desk.fails(2, "resolve", "payroll/id/1", "--not-paid", "--why", "looked")
    ended = lifecycle.arrive(rows, lane, "SUCCEEDED")
    assert "is SUCCEEDED, not PARKED" in desk.fails(1, "resolve", ended, "--not-paid", "--why", "looked")
    parked = lifecycle.arrive(rows, lane, "PARKED")
    desk.fine("halt", "treasury", "--why", "looks odd")
    assert "fenced reopen treasury" in desk.fails(1, "resolve", parked, "--not-paid", "--why", "looked")
    assert rows.value("SELECT count(*) FROM request") == 0
    assert "takes a reason" in desk.fails(2, "resolve", parked, "--not-paid", "--why", " ")


def test_it_is_a_request_with_who_and_why(desk: Desk, rows: Rows, lane: Lane) -> None:
    parked = lifecycle.arrive(rows, lane, "PARKED")
    told = desk.fine("resolve", parked, "--paid", HASH, "--why", "seen in the explorer", "--no-wait").out
    assert f"request 1: resolve {parked}" in told
    desk.fine("resolve", parked, "--paid", HASH, "--why", "seen in the explorer", "--no-wait")
    found = rows.connection.execute("SELECT kind, execution_id, paid_hash, why, who <> '' FROM request").fetchall()
    assert found == [("resolve", parked, bytes.fromhex(HASH[2:]), "seen in the explorer", True)], (
        "asking twice is one request"
    )
    waiting = desk.run("status").out
    assert f"resolve {parked}, by" in waiting
    assert f'fenced resolve {parked} --paid HASH | --not-paid --why "…"' in waiting
    assert f"fenced resolve {parked}" in desk.fine("show", parked).out
    assert parked in desk.fine("executions", "--state", "parked").out


@pytest.mark.parametrize(("granted", "code"), [(True, 0), (False, 1)])
def test_the_answer_is_told(desk: Desk, rows: Rows, lane: Lane, granted: bool, code: int) -> None:
    parked = lifecycle.arrive(rows, lane, "PARKED")
    done = threading.Event()

    def answer() -> None:
        statement = (
            "UPDATE request SET answered_at = now(), granted = %s, answer = 'so it is' WHERE answered_at IS NULL"
        )
        while not done.is_set() and rows.run(statement, granted) == 0:
            done.wait(0.05)

    holder = threading.Thread(target=answer)
    holder.start()
    try:
        run: Any = desk.run("resolve", parked, "--not-paid", "--why", "looked", "--json")
    finally:
        done.set()
        holder.join()
    assert run.code == code
    if granted:
        assert run.json == {"request": 1, "granted": True, "answer": "so it is"}
    else:
        assert "was refused: so it is" in run.err


def test_status_counts_what_it_does_not_list_and_show_tells_an_acknowledged_nonce(
    desk: Desk, rows: Rows, lane: Lane
) -> None:
    for _ in range(12):
        parked = rows.pending(lane)
        with rows.held(lane):
            rows.run("UPDATE execution SET expires_at = clock_timestamp() WHERE execution_id = %s", parked)
        assert "begins by" in desk.run("show", parked).out
        lifecycle.change(rows, lane, parked, "PARKED")
    assert "begins by" not in desk.run("show", parked).out, "released, it has no deadline"
    assert "✗ executions: 2 more are parked\n      fenced executions --state PARKED" in desk.run("status").out
    request = rows.value(
        "INSERT INTO request (kind, account_id, why, who) VALUES ('reopen', %s, 'restored', 'me') RETURNING request_id",
        lane.account_id,
    )
    with rows.held(lane):
        rows.run(
            "INSERT INTO acknowledged_nonce (account_id, nonce, hash, execution_id, step, witness_number, witness_hash, witness_rule,"
            " witness_endpoints, request_id, token) VALUES (%s, 7, %s, 'payroll/id/gone', 0, 1, sha256(''), 'depth 2', '{node}', %s, %s)",
            lane.account_id,
            bytes.fromhex(HASH[2:]),
            request,
            lane.token,
        )
    for name in ("treasury/7", HASH):
        told = desk.fails(1, "show", name)
        assert f"nonce treasury/7 was used by {HASH} (the signer's journal had bound it to payroll/id/gone)" in told
        assert "me acknowledged it after a rewind: restored" in told
    assert desk.fine("accounts", "--json").json[0]["next_nonce"] == 8
