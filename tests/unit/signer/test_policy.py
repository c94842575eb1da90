"""What an account may sign: every limit at its edge, and what a cancel is exempt from."""

import pytest

from chain.transaction import UnsignedTransaction
from signer.policy import Policy
from signer.request import Kind, SignRequest

ME, OTHER = b"\x07" * 20, b"\x11" * 20
SEND, BUMP, CANCEL = Kind.SEND, Kind.BUMP, Kind.CANCEL


def ask(kind: Kind = SEND, **fields) -> SignRequest:
    usual = {"chain_id": 1, "nonce": 0, "type": 2, "to": OTHER, "value_wei": 5, "data": b"", "gas": 50_000}
    usual |= {"max_fee_wei": 80, "tip_wei": 8}
    return SignRequest("a", 0, kind, UnsignedTransaction(**usual | fields), bytes(32))


@pytest.mark.parametrize(
    ("policy", "request_", "words"),
    [
        (Policy(), ask(), None),
        (Policy(max_fee_per_gas_wei=90), ask(max_fee_wei=80), None),
        (Policy(max_fee_per_gas_wei=90), ask(max_fee_wei=81), "caps the fee per gas at 90 wei"),
        (Policy(max_fee_per_gas_wei=90), ask(BUMP, max_fee_wei=81), "caps the fee"),
        (Policy(max_fee_per_gas_wei=90), ask(CANCEL, max_fee_wei=90), None),
        (Policy(max_fee_per_gas_wei=90), ask(CANCEL, max_fee_wei=91), "caps the fee"),
        (Policy(max_priority_fee_per_gas_wei=9), ask(tip_wei=8), None),
        (Policy(max_priority_fee_per_gas_wei=9), ask(tip_wei=9), "caps the tip"),
        (Policy(max_priority_fee_per_gas_wei=9), ask(CANCEL, tip_wei=9), None),
        (Policy(max_priority_fee_per_gas_wei=9), ask(CANCEL, tip_wei=10), "caps the tip"),
        (Policy(max_priority_fee_per_gas_wei=9), ask(type=0, tip_wei=80), None),
        (Policy(max_fee_per_gas_wei=80), ask(type=0, tip_wei=80), "caps the fee"),
        (Policy(max_value_wei=5), ask(), None),
        (Policy(max_value_wei=4), ask(), "value of 4 wei"),
        (Policy(max_value_wei=0), ask(CANCEL, to=ME, value_wei=0), None),
        (Policy(max_gas=50_000), ask(), None),
        (Policy(max_gas=49_999), ask(), "allows 49999 gas"),
        (Policy(max_gas=21_000), ask(CANCEL), "allows 21000 gas"),
        (Policy(allowed_to=frozenset([OTHER])), ask(), None),
        (Policy(allowed_to=frozenset([ME])), ask(), "0x1111"),
        (Policy(allowed_to=frozenset()), ask(CANCEL, to=ME, value_wei=0), None),
        (Policy(allowed_to=frozenset([OTHER])), ask(to=None, create=True), "creations"),
        (Policy(), ask(to=None, create=True), "creations"),
        (Policy(allow_create=True), ask(to=None, create=True), None),
        (Policy(), ask(to=ME, value_wei=0), "reads as a cancel"),
        (Policy(), ask(BUMP, to=ME, value_wei=0), "reads as a cancel"),
        (Policy(), ask(to=ME, value_wei=1), None),
        (Policy(), ask(to=ME, value_wei=0, data=b"x"), None),
    ],
)
def test_the_policy_says(policy: Policy, request_: SignRequest, words: str | None) -> None:
    said = policy.check(request_, ME)
    if words is None:
        assert said is None
    else:
        assert said is not None
        assert words in said
