"""What must wait costs no nonce and says what it waits for; what goes, goes in order and whole."""

from dataclasses import replace

import pytest

from executor.records import NewReservation
from executor.stages import reserve as stage
from executor.store import reservations
from signer.policy import Policy
from tests.stages.conftest import Line

ETHER = 10**18
GWEI = 10**9
REVERTS = bytes.fromhex("600480600b6000396000f3600080fd")
"""Creates a contract that reverts whatever it is sent."""


def nonces(line: Line) -> int:
    return int(line.one("SELECT count(*) FROM nonce_reservation")[0])


def test_a_planned_execution_gets_the_next_nonce_and_a_draft(line: Line) -> None:
    first = line.view().nonce_latest
    ids = [line.execution(f"a{i}", {}) for i in range(3)]
    assert line.reserve() == 3
    got = line.rows("SELECT nonce, execution_id FROM nonce_reservation ORDER BY nonce")
    assert [tuple(row) for row in got] == [(first + i, ids[i]) for i in range(3)]
    assert {line.state(i)[0] for i in ids} == {"RUNNING"}
    assert {row[0] for row in line.rows("SELECT status FROM attempt")} == {"DRAFT"}


@pytest.mark.parametrize(
    ("calls", "policy", "state", "reason"),
    [
        ([{"value": 20_000 * ETHER}], Policy(), "PLANNED", "funds: "),
        ([{}], Policy(max_fee_per_gas_wei=1), "PLANNED", "fee cap: the base fee is "),
        ([{"value": 6 * ETHER}], Policy(max_value_wei=5 * ETHER), "FAILED", "policy: step 0: "),
        ([{}] * 5, Policy(), "PLANNED", "in-flight limit: 0 of 4"),
    ],
    ids=["funds", "fee cap", "policy", "in flight"],
)
def test_what_cannot_go_costs_no_nonce_and_says_why(
    line: Line, calls: list[dict[str, int]], policy: Policy, state: str, reason: str
) -> None:
    line.with_policy(policy)
    execution_id = line.execution("waits", *calls)
    line.reserve()
    found, why = line.state(execution_id)
    assert found == state
    assert (why or "").startswith(reason)
    assert nonces(line) == 0


def test_a_call_that_would_revert_waits_and_goes_when_it_no_longer_would(line: Line) -> None:
    create = {"from": "0x" + line.turn.account.address.hex(), "data": "0x" + REVERTS.hex(), "gas": hex(200_000)}
    transaction = line.devnet.rpc("eth_sendTransaction", {**create, "from": line.devnet.rpc("eth_accounts")[5]})
    line.mine()
    contract = bytes.fromhex(line.devnet.rpc("eth_getTransactionReceipt", transaction)["contractAddress"][2:])
    execution_id = line.execution("reverts", {"recipient": contract, "gas": None})
    line.reserve()
    assert line.state(execution_id)[1] is not None
    assert "step 0 would revert" in str(line.state(execution_id)[1])
    assert nonces(line) == 0
    line.devnet.rpc("anvil_setCode", "0x" + contract.hex(), "0x")
    assert line.reserve() == 1


def test_an_expired_plan_is_skipped_and_says_what_it_waited_for(line: Line) -> None:
    line.with_policy(Policy(max_fee_per_gas_wei=1))
    execution_id = line.execution("late", {})
    line.reserve()
    line.turn.record(
        lambda held: held.tx.exec_driver_sql("UPDATE execution SET expires_at = clock_timestamp()").rowcount
    )
    line.reserve()
    state, why = line.state(execution_id)
    assert state == "SKIPPED"
    assert why is not None
    assert why.startswith("start deadline passed while waiting for fee cap")
    assert nonces(line) == 0


def test_the_in_flight_limit_counts_what_is_not_yet_mined(line: Line) -> None:
    for i in range(6):
        line.execution(f"b{i}", {})
    line.send()
    assert nonces(line) == 4
    line.mine()
    line.settle()
    line.send()
    assert nonces(line) == 6


def test_together_reserves_all_steps_in_one_transaction_in_order_one_after_the_other(line: Line) -> None:
    together = line.execution("together", {"value": 1}, {"value": 2})
    ordered = line.execution("ordered", {"value": 3}, {"value": 4}, order="final")
    line.send()
    steps = "SELECT step FROM nonce_reservation WHERE execution_id = %s ORDER BY nonce"
    assert [row[0] for row in line.rows(steps, together)] == [0, 1]
    assert [row[0] for row in line.rows(steps, ordered)] == [0]
    line.mine()
    line.settle()
    line.send()
    assert [row[0] for row in line.rows(steps, ordered)] == [0], "mined is not final (P17)"
    line.finish()
    line.send()
    assert [row[0] for row in line.rows(steps, ordered)] == [0, 1]
    assert line.finish() == {ordered: "SUCCEEDED"}


def test_in_order_after_mined_goes_on_when_the_step_before_is_mined(line: Line) -> None:
    ordered = line.execution("fast", {"value": 3}, {"value": 4}, order="mined")
    line.send()
    line.mine()
    line.settle()
    line.send()
    assert [row[0] for row in line.rows("SELECT step FROM nonce_reservation WHERE execution_id = %s", ordered)] == [
        0,
        1,
    ]


def test_once_waits_while_it_is_under_way_and_is_recorded_as_paid_after(line: Line) -> None:
    payer = line.execution("payer", {"once": "invoice/1"})
    second = line.execution("second", {"once": "invoice/1"})
    line.send()
    assert line.state(second) == ("PLANNED", f"once: invoice/1 is under way in {payer}") or line.state(second) == (
        "PLANNED",
        "once: invoice/1 is under way in another execution",
    )
    assert nonces(line) == 1
    line.finish()
    line.reserve()
    state, why = line.state(second)
    hash_hex = line.one("SELECT encode(hash, 'hex') FROM attempt")[0]
    assert (state, why) == ("SKIPPED", f"already paid by {payer} in 0x{hash_hex}")
    assert nonces(line) == 1


def test_an_ordered_plan_whose_every_step_was_paid_elsewhere_ends(line: Line) -> None:
    line.execution("p1", {"once": "a"})
    line.execution("p2", {"once": "b"})
    line.send()
    line.finish()
    both = line.execution("both", {"once": "a"}, {"once": "b"}, order="final")
    line.reserve()
    line.reserve()
    assert line.state(both)[0] == "SKIPPED"
    assert nonces(line) == 2


def test_a_plan_with_one_step_paid_elsewhere_sends_the_other_and_succeeds(line: Line) -> None:
    line.execution("p1", {"once": "a"})
    line.send()
    line.finish()
    mixed = line.execution("mixed", {"once": "a"}, {"once": "c"})
    line.send()
    assert line.finish() == {mixed: "SUCCEEDED"}
    assert line.one("SELECT steps_effective FROM execution WHERE execution_id = %s", mixed)[0] == 1


def test_one_row_a_constraint_refuses_does_not_hold_up_the_others(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [line.execution(f"c{i}", {"value": i + 1}) for i in range(4)]
    real = reservations.insert

    def spoil(held: object, new: list[NewReservation], kind: int) -> int:
        # The row of one execution arrives with another intent's digest, as a bug or a bent row would make it.
        bent = [
            replace(n, intent=replace(n.intent, digest=b"\1" * 32)) if n.intent.execution_id == ids[2] else n
            for n in new
        ]
        return real(held, bent, kind)  # type: ignore[arg-type]

    monkeypatch.setattr(stage.reservations, "insert", spoil)
    assert line.reserve() == 3
    assert [line.state(i)[0] for i in ids] == ["RUNNING", "RUNNING", "PLANNED", "RUNNING"]
    attention = line.account().attention
    assert attention is not None
    assert "nonce_reservation_intent" in attention
    assert ids[2] in attention
    first = line.account().first_nonce
    assert [row[0] for row in line.rows("SELECT nonce FROM nonce_reservation ORDER BY nonce")] == [
        first,
        first + 1,
        first + 2,
    ]  # type: ignore[operator]
