"""The face a strategy imports: values are refused where they are made, with one sentence."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from eth_abi import encode
from hypothesis import given
from hypothesis import strategies as st

import executor.strategy as face
from executor.strategy import MAX_CALLS, Call, InvalidPlan, erc20_transfer, in_order, nothing, together

TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
TOKEN = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


def test_the_face_is_sorted_and_complete() -> None:
    assert face.__all__ == sorted(face.__all__)
    assert all(hasattr(face, name) for name in face.__all__)


def test_a_call_is_frozen_and_keeps_bytes() -> None:
    call = Call(TO, 1, bytearray(b"\x01"))  # type: ignore[arg-type]
    assert type(call.data) is bytes
    with pytest.raises(dataclasses.FrozenInstanceError):
        call.value = 2  # type: ignore[misc]
    assert Call(TO, 2**256 - 1).value == 2**256 - 1


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((TO, 1.0), {}, "Call.value is a float; pass a whole number of wei as int."),
        ((TO, "1"), {}, "Call.value is a str; pass a whole number of wei as int."),
        ((TO, True), {}, "Call.value is a bool; pass a whole number of wei as int."),
        ((TO, 2**256), {}, "Call.value is more than a chain can hold"),
        ((TO, -1), {}, "Call.value is below 0"),
        ((TO.lower(),), {}, f'write "{TO}"'),
        ((None,), {}, "Call.to: None is not an address"),
        (([],), {}, "Call.to: a list is not an address"),
        ((bytes(20),), {}, "Call.to: a value of type bytes is not an address"),
        ((TO, 0, "0x"), {}, "Call.data is text; pass bytes"),
        ((TO, 0, None), {}, "Call.data is None; pass bytes"),
        ((TO, 0, bytes(128 * 1024 + 1)), {}, "Call.data is longer than 131072 bytes"),
        ((TO,), {"gas": 20_999}, "Call.gas is below 21000"),
        ((TO,), {"gas": 30_000.0}, "Call.gas is a float"),
        ((TO,), {"once": ""}, "Call.once must be 1 to 200 printable characters"),
        ((TO,), {"once": 7}, "Call.once is an int; pass text."),
        ((TO,), {"once": "a\nb"}, "Call.once must be"),
        ((TO,), {"label": "x" * 201}, "Call.label must be"),
        ((TO,), {"access_list": [TO]}, "Call.access_list holds something else than a pair"),
        ((TO,), {"access_list": [(TO, [b"short"])]}, "a storage key that is not 32 bytes"),
        ((TO,), {"access_list": [(TO, "0x" + "00" * 32)]}, "a storage key that is not 32 bytes"),
        ((TO,), {"access_list": [("0x", [])]}, "Call.access_list: "),
        ((TO,), {"access_list": TO}, "Call.access_list is a str"),
        ((TO, 0, b"x"), {"create": True}, "Call.to must be None with create=True"),
        ((None,), {"create": True}, "Call.data is empty with create=True"),
    ],
)
def test_a_wrong_call_says_why(arguments: tuple[Any, ...], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidPlan) as caught:
        Call(*arguments, **options)
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError)


def test_positions_hold_only_what_is_plain() -> None:
    with pytest.raises(TypeError):
        Call(TO, 0, b"", "invoice/1")  # type: ignore[misc]


@pytest.mark.parametrize("make", [together, in_order])
def test_several_calls(make: Any) -> None:
    call = Call(TO, 1)
    assert make([call] * MAX_CALLS).calls == (call,) * 100
    assert make(iter([call])).calls == (call,)
    for wrong, sentence in (
        ([], "is empty"),
        ([call] * 101, "more than 100 calls"),
        (call, "takes a list of Call, not a Call"),
        (None, "not None"),
        ([call, 7], "holds an int at position 1"),
        ([nothing("x")], "holds a Nothing at position 0"),
    ):
        with pytest.raises(InvalidPlan) as caught:
            make(wrong)
        assert sentence in str(caught.value)


def test_in_order_waits_for_final_or_mined() -> None:
    assert in_order([Call(TO)]).after == "final"
    with pytest.raises(InvalidPlan, match='must be "final" or "mined"'):
        in_order([Call(TO)], after="sent")  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", ["", "  ", None, "x" * 201, "a\x00b"])
def test_nothing_needs_a_reason(reason: Any) -> None:
    with pytest.raises(InvalidPlan, match="the reason of nothing"):
        nothing(reason)


@given(st.integers(0, 2**256 - 1))
def test_erc20_transfer_is_what_eth_abi_encodes(amount: int) -> None:
    call = erc20_transfer(TOKEN, TO, amount, once="invoice/1")
    assert call.data == bytes.fromhex("a9059cbb") + encode(["address", "uint256"], [TO, amount])
    assert (call.to, call.value, call.once) == (TOKEN, 0, "invoice/1")


@pytest.mark.parametrize(("recipient", "amount"), [(TO.lower(), 1), (TO, 1.5), (TO, -1), (TO, 2**256)])
def test_erc20_transfer_refuses_early(recipient: str, amount: Any) -> None:
    with pytest.raises(InvalidPlan, match="erc20_transfer"):
        erc20_transfer(TOKEN, recipient, amount)
