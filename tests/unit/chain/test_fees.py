"""Offers, raises and cancels under caps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.fees import Fees, bump, cancel_fees, ceiling, is_raise, quote

GWEI = 10**9
amount, cap = st.integers(0, 10**30), st.integers(1, 10**30)


def test_a_quote_is_twice_the_base_fee_plus_the_tip() -> None:
    assert quote(10 * GWEI, 2 * GWEI) == Fees(22 * GWEI, 2 * GWEI)
    assert quote(10 * GWEI, 2 * GWEI, multiplier=3) == Fees(32 * GWEI, 2 * GWEI)


def test_a_quote_leaves_room_for_a_cancel() -> None:
    assert quote(100 * GWEI, GWEI, cap_wei=90 * GWEI) == Fees(80 * GWEI, GWEI)
    assert quote(GWEI, 50 * GWEI, cap_wei=900 * GWEI, tip_cap_wei=9 * GWEI) == Fees(52 * GWEI, 8 * GWEI)
    assert quote(1, 50, cap_wei=9) == Fees(8, 8)


@pytest.mark.parametrize(
    ("previous", "wanted", "expected"),
    [
        (Fees(1000, 80), Fees(1, 1), Fees(1125, 90)),
        (Fees(1000, 80), Fees(2000, 81), Fees(2000, 90)),
        (Fees(1001, 81), Fees(1, 1), Fees(1127, 92)),  # rounded up
        (Fees(0, 0), Fees(0, 0), Fees(1, 1)),
        (Fees(1, 0), Fees(0, 0), Fees(2, 1)),
    ],
)
def test_a_bump_raises_both_fields(previous: Fees, wanted: Fees, expected: Fees) -> None:
    assert bump(previous, wanted) == expected


def test_a_bump_that_does_not_fit_is_none_and_a_cancel_fits() -> None:
    assert bump(Fees(80, 8), Fees(500, 8), cap_wei=90, tip_cap_wei=99) is None
    assert bump(Fees(70, 8), Fees(500, 80), cap_wei=90, tip_cap_wei=90) == Fees(80, 80)
    assert cancel_fees(Fees(80, 8), Fees(500, 8), cap_wei=90, tip_cap_wei=9) == Fees(90, 9)
    assert cancel_fees(None, Fees(500, 8), cap_wei=90, tip_cap_wei=5) == Fees(90, 5)
    assert cancel_fees(Fees(90, 9), Fees(1, 1), cap_wei=90) is None
    assert bump(Fees(10, 0), Fees(20, 0), cap_wei=900, tip_cap_wei=0) == Fees(20, 0)


@given(amount, amount, amount, amount, cap, cap)
def test_a_cancel_fits_over_everything_that_was_offered(base, tip, base_2, tip_2, cap_wei, tip_cap_wei) -> None:
    caps = {"cap_wei": cap_wei, "tip_cap_wei": tip_cap_wei}
    offered = quote(base, tip, **caps)
    for _ in range(5):
        assert offered.max_fee_wei <= ceiling(cap_wei)
        assert offered.tip_wei <= ceiling(tip_cap_wei)
        assert offered.max_fee_wei * 9 <= cap_wei * 8
        cancel = cancel_fees(offered, quote(base_2, tip_2), **caps)
        assert cancel is not None
        assert is_raise(offered, cancel)
        assert cancel.max_fee_wei <= cap_wei
        assert cancel.tip_wei <= tip_cap_wei
        raised = bump(offered, quote(base_2, tip_2), **caps)
        if raised is None:
            break
        assert is_raise(offered, raised)
        assert raised.max_fee_wei * 8 >= offered.max_fee_wei * 9
        assert raised.tip_wei * 8 >= offered.tip_wei * 9
        offered = raised


@given(amount, amount, cap)
def test_flat_offers_stay_flat(base, tip, cap_wei) -> None:
    offered = quote(base, tip, cap_wei=cap_wei).flat()
    raised = bump(offered, quote(base, tip).flat(), cap_wei=cap_wei)
    assert raised is None or raised == raised.flat()


def test_nodes_want_ten_percent_in_both_fields() -> None:
    assert is_raise(Fees(100, 10), Fees(110, 11))
    assert not is_raise(Fees(100, 10), Fees(109, 11))
    assert not is_raise(Fees(100, 10), Fees(200, 10))


def test_impossible_fees_are_refused() -> None:
    for pair in ((1, 2), (1, -1)):
        with pytest.raises(ValueError, match="does not fit"):
            Fees(*pair)
