"""The codec between a plan's process and the executor, read with the eyes of a hostile strategy."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.strategy import Call, InvalidPlan, in_order, nothing, together
from executor.strategy_values import (
    NothingToDo,
    PlanFailed,
    Planned,
    PlannedCall,
    check_planned,
    decode_outcome,
    encode_failure,
    encode_plan,
    one_line,
)

TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
RAW = bytes.fromhex(TO[2:])

calls = st.builds(
    Call,
    st.just(TO),
    st.integers(0, 2**256 - 1),
    st.binary(max_size=64),
    once=st.none() | st.sampled_from(["invoice/1", "Ünïcödé"]),
    gas=st.none() | st.integers(21_000, 2**63 - 1),
    access_list=st.lists(st.tuples(st.just(TO), st.lists(st.binary(min_size=32, max_size=32), max_size=2)), max_size=2),
    label=st.none() | st.just("pay"),
)


def through(value: dict[str, Any]) -> Any:
    return decode_outcome(json.loads(json.dumps(value)))


@settings(deadline=None)
@given(st.lists(calls, min_size=1, max_size=5), st.sampled_from(["together", "final", "mined"]))
def test_a_plan_arrives_as_it_was_made(made: list[Call], order: Any) -> None:
    outcome = through(encode_plan(together(made) if order == "together" else in_order(made, after=order)))
    expected = tuple(
        PlannedCall(
            step, call.once, RAW, call.value, call.data,
            tuple((bytes.fromhex(address[2:]), tuple(keys)) for address, keys in call.access_list), call.gas, call.label,
        )
        for step, call in enumerate(made)
    )  # fmt: skip
    assert outcome == Planned(order, expected)


def test_the_other_outcomes_arrive() -> None:
    assert through(encode_plan(nothing("not due"))) == NothingToDo("not due")
    assert through(encode_plan(Call(TO, 1))).order == "together"
    assert through(encode_failure("raised", "a\nb" + "x" * 600)) == PlanFailed(
        "raised", ("a b" + "x" * 600)[:499] + "…"
    )


GOOD: dict[str, Any] = {
    "kind": "calls",
    "order": "together",
    "calls": [
        {
            "to": RAW.hex(),
            "value": "1",
            "data": "00",
            "once": None,
            "gas": None,
            "access_list": [[RAW.hex(), ["00" * 32]]],
            "label": None,
        }
    ],
}


def mutated(key: str, value: Any, call: bool = True) -> dict[str, Any]:
    changed = copy.deepcopy(GOOD)
    (changed["calls"][0] if call else changed)[key] = value
    return changed


HOSTILE: list[Any] = [
    None, [], "calls", 7, {}, {"kind": "nothing"}, {"kind": "nothing", "reason": ""}, {"kind": "nothing", "reason": 7},
    {"kind": "nothing", "reason": "x", "extra": 1}, {"kind": "failed", "failure": "own", "message": "x"},
    {"kind": "failed", "failure": [], "message": "x"}, {"kind": "failed", "failure": "raised", "message": None},
    {"kind": ["calls"]}, {"kind": "ready", "source": "x"}, {**GOOD, "calls": []}, {**GOOD, "calls": {}}, {**GOOD, "calls": [None]},
    {**GOOD, "calls": GOOD["calls"] * 101}, {**GOOD, "order": "random"}, {**GOOD, "order": ["final"]}, {**GOOD, "nonce": 1},
    mutated("to", RAW.hex()[:-2]), mutated("to", "0x" + RAW.hex()), mutated("to", RAW.hex().upper()), mutated("to", 7), mutated("to", []),
    mutated("value", 1), mutated("value", "-1"), mutated("value", "01"), mutated("value", "1.0"), mutated("value", "1e3"), mutated("value", ""),
    mutated("value", str(2**256)), mutated("value", "٣"), mutated("value", "1\n"), mutated("value", "9" * 5000),
    mutated("data", "0"), mutated("data", "0g"), mutated("data", "00\n"), mutated("data", "00" * (128 * 1024 + 1)), mutated("data", None),
    mutated("gas", 1.5), mutated("gas", True), mutated("gas", 1), mutated("gas", 2**63), mutated("gas", "21000"),
    mutated("once", ""), mutated("once", "x" * 201), mutated("once", "a\x00"), mutated("once", 1), mutated("label", {}),
    mutated("access_list", None), mutated("access_list", [[RAW.hex()]]), mutated("access_list", [[RAW.hex(), "00" * 32]]),
    mutated("access_list", [[RAW.hex(), ["00"]]]), mutated("access_list", [["00", []]]), mutated("nonce", 1),
    {**GOOD, "calls": [{**GOOD["calls"][0], "to": None, "data": ""}]},
]  # fmt: skip


def test_the_pattern_of_the_hostile_is_good_itself() -> None:
    assert isinstance(through(GOOD), Planned)


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_anything_odd_is_a_bad_result(value: Any) -> None:
    outcome = decode_outcome(value)
    assert isinstance(outcome, PlanFailed)
    assert outcome.kind == "bad_result"
    assert outcome.message.startswith("the plan's process sent ")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["calls", "failed", "nothing"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "order", "calls", "reason", "to", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(json_values)
def test_no_json_value_breaks_the_decoder(value: Any) -> None:
    assert isinstance(decode_outcome(value), (Planned, NothingToDo, PlanFailed))


def test_a_call_that_reads_as_a_cancel_is_refused() -> None:
    for harmless in (Call(TO, 1), Call(TO, 0, b"\x00")):
        outcome = through(encode_plan(harmless))
        assert check_planned(outcome, RAW, allow_create=False) is outcome
    failed = check_planned(through(encode_plan(together([Call(TO, 1), Call(TO)]))), RAW, allow_create=False)
    assert isinstance(failed, PlanFailed)
    assert failed.message.startswith("call 1 goes to the account itself")
    assert isinstance(check_planned(through(encode_plan(Call(TO))), bytes(20), allow_create=False), Planned)


def test_creation_needs_the_policy() -> None:
    outcome = through(encode_plan(Call(None, data=b"\x60", create=True)))
    assert check_planned(outcome, RAW, allow_create=True) is outcome
    assert isinstance(check_planned(outcome, RAW, allow_create=False), PlanFailed)


@pytest.mark.parametrize(
    "result", [None, [], [Call(TO)], [Call(TO), Call(TO)], (Call(TO),), {}, 7, "x", Call, lambda: None]
)
def test_what_is_no_plan_is_refused_when_encoded(result: Any) -> None:
    with pytest.raises(InvalidPlan, match="the plan returned"):
        encode_plan(result)


def test_one_line_is_printable_and_bounded() -> None:
    assert one_line(" a\r\n\tb\x1b[31m ") == "a b [31m"
    assert len(one_line("x" * 10_000)) == 500
