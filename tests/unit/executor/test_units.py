from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.units import UINT256_MAX, format_seconds, format_wei, parse_address, parse_seconds, parse_wei


@pytest.mark.parametrize(
    ("text", "wei"),
    [
        ("0 wei", 0),
        ("100 wei", 100),
        ("2 gwei", 2 * 10**9),
        ("2gwei", 2 * 10**9),
        ("0.5 ether", 5 * 10**17),
        ("0.50000000000000000000 ether", 5 * 10**17),
        ("1.000000001 gwei", 10**9 + 1),
        ("1_000 GWEI", 10**12),
        ("0.1 ether", 10**17),
        (f"{UINT256_MAX} wei", UINT256_MAX),
        ("115792089237316195423570985008687907853269984665640564039457.584007913129639935 ether", UINT256_MAX),
    ],
)
def test_amounts_are_exact(text: str, wei: int) -> None:
    assert parse_wei(text) == wei


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (2, "the bare number 2 is not an amount"),
        (2.5, "the bare number 2.5"),
        (True, "a value of type bool"),
        (None, "None"),
        ("2", "write a number and a unit"),
        ("gwei", "write a number and a unit"),
        ("-1 gwei", "write a number and a unit"),
        ("+1 gwei", "write a number and a unit"),
        ("1e9 wei", "write a number and a unit"),
        ("1,5 gwei", "write a number and a unit"),
        ("٣ gwei", "write a number and a unit"),
        (".5 ether", "write a number and a unit"),
        ("1 bitcoin", "is not a unit of ether"),
        ("0.5 wei", "not a whole number of wei"),
        ("0.0000000001 gwei", "not a whole number of wei"),
        (f"{UINT256_MAX + 1} wei", "more than 2^256 - 1"),
        ("9" * 200 + " wei", "write a number and a unit"),
    ],
)
def test_what_is_no_amount_says_why(value: object, part: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_wei(value)
    assert part in str(caught.value)


@given(st.integers(0, UINT256_MAX))
def test_format_wei_reads_back(wei: int) -> None:
    assert parse_wei(format_wei(wei)) == wei


@pytest.mark.parametrize(
    ("wei", "text"),
    [
        (0, "0 wei"),
        (10**5, "100000 wei"),
        (2 * 10**9, "2 gwei"),
        (15 * 10**8, "1.5 gwei"),
        (5 * 10**17, "0.5 ether"),
        (-1, "-1 wei"),
    ],
)
def test_format_wei(wei: int, text: str) -> None:
    assert format_wei(wei) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15m", 900), ("30s", 30), ("200ms", 0.2), ("1h", 3600), ("1d", 86400), ("0.5s", 0.5), ("1.5 h", 5400), ("0s", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("value", [5, 0.5, "5", "5 minutes", "-5s", "1h30m", "0.5ms", "", None, "s", "1w"])
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"write a number and one of ms|milliseconds"):
        parse_seconds(value)


@given(st.integers(0, 10**9))
def test_format_seconds_reads_back(milliseconds: int) -> None:
    assert parse_seconds(format_seconds(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


GOOD = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"


def test_an_address_is_twenty_bytes() -> None:
    assert parse_address(GOOD) == bytes.fromhex(GOOD[2:])


@pytest.mark.parametrize("text", [GOOD.lower(), "0x" + GOOD[2:].upper(), GOOD[:-2] + "c8"])
def test_a_wrong_spelling_is_told_the_right_one(text: str) -> None:
    with pytest.raises(ValueError, match=GOOD):
        parse_address(text)


@pytest.mark.parametrize(
    "value", ["", "0x", GOOD[:-1], GOOD + "0", GOOD[2:], "alice.eth", 7, None, b"x" * 20, "0x" + "g" * 40]
)
def test_what_is_no_address_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not an address; write 0x and 40 hex digits"):
        parse_address(value)
