"""The rule of one nonce, one intent: histories of (request, expected decision) on an empty journal."""

import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain.transaction import UnsignedTransaction, cancel_digest, decode, intent_digest
from signer.guard import Bound, Past, Refuse, Replay, Sign, decide, highest_signed
from signer.key import Key
from signer.request import Fence, Kind, SignRequest

KEY = Key(b"\x07" * 32)
ME = KEY.address
FENCE = Fence(31337, ME, 1, uuid.UUID(int=1))
SEND, BUMP, CANCEL = Kind.SEND, Kind.BUMP, Kind.CANCEL


def ask(kind=SEND, nonce=0, step="a", fee=100, tip=10, **fields) -> SignRequest:
    usual = {"to": b"\x11" * 20, "value_wei": 5, "data": b"", "gas": 50_000}
    if kind is CANCEL:
        usual = {"to": ME, "value_wei": 0, "data": b"", "gas": 21_000}
    tx = UnsignedTransaction(
        **{"chain_id": 31337, "nonce": nonce, "type": 2, "max_fee_wei": fee, "tip_wei": tip} | usual | fields
    )
    digest = intent_digest(tx.chain_id, ME, tx.to, tx.value_wei, tx.data, tx.access_list)
    return SignRequest(step, 0, kind, tx, digest)


class Book:
    """The journal as the guard sees it, in memory."""

    def __init__(self) -> None:
        self.rows: dict[int, Bound] = {}

    def sign(self, request: SignRequest):
        nonce = request.transaction.nonce
        of_step = next(
            (b for b in self.rows.values() if (b.execution_id, b.step) == (request.execution_id, request.step)), None
        )
        at_nonce = self.rows.get(nonce)
        made = decide(FENCE, request, at_nonce, of_step)
        if isinstance(made, Sign):
            tx = request.transaction
            bound = at_nonce or Bound(nonce, request.execution_id, request.step, made.digest, tx.type, cancelled=False)
            raw = KEY.sign(tx)
            past = Past(made.sighash, request.kind, tx.max_fee_wei, tx.tip_wei, tx.gas, raw, decode(raw).hash)
            self.rows[nonce] = replace(
                bound, cancelled=bound.cancelled or request.kind is CANCEL, signatures=(*bound.signatures, past)
            )
        return made


LIST = ((b"\x22" * 20, ()),)
HISTORIES = {
    "send, and the same again": [(ask(), Sign), (ask(), Replay)],
    "a second intent for a nonce": [(ask(), Sign), (ask(step="b"), "bound to step 0 of a")],
    "a second nonce for a step": [(ask(), Sign), (ask(nonce=1), "bound to nonce 0")],
    "another value": [
        (ask(), Sign),
        (ask(value_wei=6), "bound to digest"),
        (ask(BUMP, fee=200, tip=20, value_wei=6), "bound to digest"),
    ],
    "another recipient": [(ask(), Sign), (ask(BUMP, fee=200, tip=20, to=b"\x12" * 20), "bound to digest")],
    "other data": [(ask(), Sign), (ask(BUMP, fee=200, tip=20, data=b"x"), "bound to digest")],
    "another access list": [(ask(), Sign), (ask(BUMP, fee=200, tip=20, access_list=LIST), "bound to digest")],
    "another type": [
        (ask(), Sign),
        (ask(BUMP, fee=200, tip=200, type=1), "carries type 2"),
        (ask(CANCEL, fee=200, tip=200, type=0), "carries type 2"),
    ],
    "a bump of 10 %": [(ask(), Sign), (ask(BUMP, fee=110, tip=11), Sign), (ask(BUMP, fee=110, tip=11), Replay)],
    "a bump in one field only": [
        (ask(), Sign),
        (ask(BUMP, fee=200, tip=10), "not 10 %"),
        (ask(BUMP, fee=109, tip=20), "not 10 %"),
    ],
    "a bump over the highest, not the last": [
        (ask(), Sign),
        (ask(BUMP, fee=1000, tip=100), Sign),
        (ask(BUMP, fee=200, tip=20), "not 10 %"),
    ],
    "a bump with less gas": [
        (ask(), Sign),
        (ask(BUMP, fee=200, tip=20, gas=49_999), "less than the 50000"),
        (ask(BUMP, fee=200, tip=20, gas=60_000), Sign),
    ],
    "a bump of nothing": [(ask(BUMP), "no signature that a BUMP"), (ask(), Sign)],
    "a second send": [(ask(), Sign), (ask(fee=200, tip=20), "a further offer is a BUMP")],
    "a cancel, then anything": [
        (ask(), Sign),
        (ask(CANCEL, fee=110, tip=11), Sign),
        (ask(BUMP, fee=200, tip=20), "cancelled for ever"),
        (ask(fee=200, tip=20), "cancelled for ever"),
        (ask(), Replay),
        (ask(CANCEL, fee=110, tip=11), Replay),
        (ask(CANCEL, fee=130, tip=13), Sign),
    ],
    "a cancel without a raise": [
        (ask(), Sign),
        (ask(CANCEL, fee=109, tip=11), "not 10 %"),
        (ask(BUMP, fee=110, tip=11), Sign),
    ],
    "a cancel of an unseen nonce": [
        (ask(CANCEL), Sign),
        (ask(), "cancelled for ever"),
        (ask(nonce=1), "bound to nonce 0"),
        (ask(step="b"), "of a"),
    ],
    "a cancel by another step": [(ask(), Sign), (ask(CANCEL, step="b", fee=200, tip=20), "bound to step 0 of a")],
    "a cancel that pays": [(ask(CANCEL, value_wei=1), "does something"), (ask(CANCEL, data=b"x"), "does something")],
    "a cancel to others": [
        (ask(CANCEL, to=b"\x11" * 20), "does something"),
        (ask(CANCEL, access_list=LIST), "does something"),
    ],
    "another chain": [(ask(chain_id=1), "for chain 1 and the fence for chain 31337")],
    "a nonce out of reach": [(ask(nonce=1 << 63), "is above"), (ask(nonce=(1 << 63) - 1), Sign)],
    "a digest that lies": [(replace(ask(), intent_digest=bytes(32)), "digest"), (ask(), Sign)],
    "many nonces": [(ask(nonce=n, step=f"s{n}"), Sign) for n in range(3)],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_histories(name: str) -> None:
    book = Book()
    for number, (request, expected) in enumerate(HISTORIES[name]):
        made = book.sign(request)
        if isinstance(expected, str):
            assert isinstance(made, Refuse), (number, made)
            assert expected in made.evidence
            assert made.evidence.count("\n") == 0
        else:
            assert isinstance(made, expected), (number, made)


def test_what_was_ordered_and_never_made_is_completed_or_left() -> None:
    request = ask()
    past = Past(request.transaction.signing_hash(), SEND, 100, 10, 50_000, None, None)
    bound = Bound(0, "a", 0, request.intent_digest, 2, cancelled=False, signatures=(past,))
    assert isinstance(decide(FENCE, request, bound, bound), Sign)
    assert isinstance(decide(FENCE, ask(CANCEL, fee=1, tip=1), bound, bound), Sign)  # nothing went out: no raise
    gone = replace(bound, cancelled=True)
    assert isinstance(decide(FENCE, request, gone, gone), Refuse)
    assert highest_signed([past]) is None
    assert highest_signed([past, replace(past, pending=True, tip_wei=99)]).tip_wei == 99


requests = st.builds(
    ask,
    kind=st.sampled_from(Kind),
    nonce=st.integers(0, 2),
    step=st.sampled_from("abc"),
    fee=st.integers(50, 500),
    tip=st.integers(5, 50),
    gas=st.sampled_from((40_000, 50_000)),
)


@given(st.lists(requests, max_size=25))
def test_no_history_gives_a_nonce_two_intents_or_a_step_two_nonces(history: list[SignRequest]) -> None:
    book = Book()
    made = [request for request in history if isinstance(book.sign(request), Sign)]
    intents, nonces = {}, {}
    for request in made:
        tx, step = request.transaction, request.execution_id
        assert nonces.setdefault(step, tx.nonce) == tx.nonce
        if request.kind is CANCEL:
            intents[tx.nonce] = None
        else:
            assert intents.setdefault(tx.nonce, request.intent_digest) == request.intent_digest


def test_a_cancel_binds_the_cancel_digest() -> None:
    assert Book().sign(ask(CANCEL)).digest == cancel_digest(31337, ME)


@pytest.mark.parametrize(
    "fields",
    [
        {"chain_id": 0},
        {"chain_id": True},
        {"address": b"\x11"},
        {"address": "0x"},
        {"token": 0},
        {"token": 1 << 63},
        {"token": "1"},
    ],
    ids=str,
)
def test_a_fence_is_checked(fields: dict) -> None:
    with pytest.raises(ValueError, match=r"."):
        Fence(**{"chain_id": 1, "address": ME, "token": 1, "lease_id": uuid.UUID(int=1)} | fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"execution_id": ""},
        {"execution_id": "x" * 501},
        {"execution_id": "a\0"},
        {"step": -1},
        {"step": True},
        {"intent_digest": b""},
    ],
    ids=str,
)
def test_a_request_is_checked(fields: dict) -> None:
    with pytest.raises(ValueError, match=r"."):
        replace(ask(), **fields)
