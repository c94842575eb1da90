"""Fee arithmetic, pure. All amounts in wei per gas.

Rule P22: every SEND and BUMP stays at or below cap / 1.125 in both fields, so that a CANCEL, which may use the whole
cap, always fits on top of it. A raise is at least +12.5 % in both fields, rounded up, and at least 1 wei: geth asks
for 10 % and strictly more in each, others for less.

For types 0 and 1, which have one gas price, use `flat()` fees throughout and give no `tip_cap_wei`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fees:
    """The two fee fields of a transaction."""

    max_fee_wei: int
    tip_wei: int

    def __post_init__(self) -> None:
        if not 0 <= self.tip_wei <= self.max_fee_wei:
            raise ValueError(f"a tip of {self.tip_wei} wei does not fit a fee cap of {self.max_fee_wei} wei")

    def flat(self) -> "Fees":
        """The same as one gas price, for transactions of types 0 and 1."""
        return Fees(self.max_fee_wei, self.max_fee_wei)


def ceiling(cap_wei: int) -> int:
    """The most a SEND or BUMP may offer under this cap: cap / 1.125, rounded down (P22)."""
    return cap_wei * 8 // 9


def quote(
    base_fee_wei: int, tip_wei: int, *, multiplier: int = 2, cap_wei: int | None = None, tip_cap_wei: int | None = None
) -> Fees:
    """What a first transaction offers: `multiplier` times the base fee plus the tip, cut to the ceilings of the caps.

    With a multiplier of 2 it stays includable through six full blocks. A cut offer may be below the base fee: then the
    transaction waits, which the caller sees by comparing.
    """
    most, most_tip = _ceiling(cap_wei), _ceiling(tip_cap_wei)
    max_fee_wei = _cut(base_fee_wei * multiplier + tip_wei, most)
    return Fees(max_fee_wei, min(_cut(tip_wei, most_tip), max_fee_wei))


def bump(previous: Fees, wanted: Fees, *, cap_wei: int | None = None, tip_cap_wei: int | None = None) -> Fees | None:
    """The next offer for a nonce: `wanted`, and at least the raise over `previous` in both fields.

    `previous` holds the highest of each field among the *signed* attempts. None when the raise does not fit the
    ceilings: then the offers are used up and only a cancel is left.
    """
    return _raise(previous, wanted, _ceiling(cap_wei), _ceiling(tip_cap_wei))


def cancel_fees(
    previous: Fees | None, wanted: Fees, *, cap_wei: int | None = None, tip_cap_wei: int | None = None
) -> Fees | None:
    """What a cancel offers. `previous` is as for `bump`; None if the nonce has no signed bytes: no raise is needed.

    It may use the whole cap, so over SENDs and BUMPs it always fits; None only over a cancel that used the cap.
    """
    if previous is not None:
        return _raise(previous, wanted, cap_wei, tip_cap_wei)
    max_fee_wei = _cut(wanted.max_fee_wei, cap_wei)
    return Fees(max_fee_wei, min(_cut(wanted.tip_wei, tip_cap_wei), max_fee_wei))


def is_raise(previous: Fees, offered: Fees) -> bool:
    """Say whether nodes would take the offer as a replacement: both fields up by 10 % at least (geth's PriceBump)."""
    return offered.max_fee_wei * 10 >= previous.max_fee_wei * 11 and offered.tip_wei * 10 >= previous.tip_wei * 11


def _raise(previous: Fees, wanted: Fees, most: int | None, most_tip: int | None) -> Fees | None:
    max_fee_wei = _raised(previous.max_fee_wei, wanted.max_fee_wei, most)
    tip_wei = _raised(previous.tip_wei, wanted.tip_wei, most_tip)
    if max_fee_wei is None or tip_wei is None:
        return None
    return Fees(max_fee_wei, min(tip_wei, max_fee_wei))


def _raised(previous: int, wanted: int, most: int | None) -> int | None:
    if previous == 0 and most == 0:
        return 0  # a cap of zero forbids the field: chains without tips
    least = max(previous + 1, -(-previous * 9 // 8))
    if most is not None and least > most:
        return None
    return max(least, _cut(wanted, most))


def _ceiling(cap_wei: int | None) -> int | None:
    return None if cap_wei is None else ceiling(cap_wei)


def _cut(amount: int, most: int | None) -> int:
    return amount if most is None else min(amount, most)
