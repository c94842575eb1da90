"""The rule of one nonce, one intent (G3, P6, P7, P22), pure: a request and the journal's rows in, a decision out.

1. A step of an execution has one nonce, a nonce has one step, for ever.
2. A nonce carries one digest. A SEND is its first signature, a BUMP repeats the digest with higher fees, the same type
   and no less gas. A first signature is a SEND or a CANCEL.
3. A CANCEL sends nothing to oneself. It may come first, it binds the nonce (and the step) to cancel for ever, and after
   it nothing but further CANCELs is signed.
4. What is signed over signed bytes raises both fees by 10 % at least over the highest so far: less, nodes refuse.
5. The same transaction again is answered with the stored bytes, or signed if the bytes never came to be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chain.fees import Fees, is_raise
from chain.transaction import cancel_digest, intent_digest
from signer.request import Fence, Kind, SignRequest, reads_as_cancel

MAX_NONCE = (1 << 63) - 1
"""The journal's nonces fit a signed 64-bit column; no account has used that many."""


@dataclass(frozen=True, slots=True)
class Past:
    """A signature that was ordered. `raw` is None while its bytes are not stored; `pending` if ordered in this call."""

    sighash: bytes
    kind: Kind
    max_fee_wei: int
    tip_wei: int
    gas: int
    raw: bytes | None = field(repr=False)
    hash: bytes | None
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """What a nonce is bound to, with every signature ordered for it, oldest first. `cancelled` is for ever."""

    nonce: int
    execution_id: str
    step: int
    digest: bytes
    type: int
    cancelled: bool
    signatures: tuple[Past, ...] = ()


@dataclass(frozen=True, slots=True)
class Sign:
    """Order this signature and bind the nonce as told."""

    sighash: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Replay:
    """The bytes are stored already."""

    raw: bytes = field(repr=False)
    hash: bytes


@dataclass(frozen=True, slots=True)
class Refuse:
    """No, and why: one sentence with the row that stands against it."""

    evidence: str


Decision = Sign | Replay | Refuse


def decide(fence: Fence, request: SignRequest, at_nonce: Bound | None, of_step: Bound | None) -> Decision:
    """Judge a request by what its nonce (`at_nonce`) and its step (`of_step`) are bound to, if anything."""
    transaction = request.transaction
    step = f"step {request.step} of {request.execution_id}"
    refusal = _misfit(fence, request) or _foreign(request, at_nonce, of_step, step)
    if refusal is not None:
        return Refuse(refusal)
    sighash = transaction.signing_hash()
    if at_nonce is None:
        if request.kind is Kind.BUMP:
            return Refuse(f"nonce {transaction.nonce} has no signature that a BUMP for {step} could raise")
        return Sign(sighash, _digest(fence, request))
    again = next((past for past in at_nonce.signatures if past.sighash == sighash), None)
    if again is not None and again.raw is not None and again.hash is not None:
        return Replay(again.raw, again.hash)
    refusal = _unfit(request, at_nonce)
    if refusal is None and again is None:
        refusal = _no_raise(request, at_nonce)
    return Refuse(refusal) if refusal is not None else Sign(sighash, at_nonce.digest)


def _misfit(fence: Fence, request: SignRequest) -> str | None:
    """What the request says of itself must be so."""
    transaction = request.transaction
    if transaction.chain_id != fence.chain_id:
        return f"the transaction is for chain {transaction.chain_id} and the fence for chain {fence.chain_id}"
    if transaction.nonce > MAX_NONCE:
        return f"nonce {transaction.nonce} is above {MAX_NONCE}"
    if request.kind is Kind.CANCEL:
        if not reads_as_cancel(
            transaction.to, transaction.value_wei, transaction.data, transaction.access_list, fence.address
        ):
            return (
                f"a CANCEL sends nothing to its own account, and this one for nonce {transaction.nonce} does something"
            )
        return None
    digest = _digest(fence, request)
    if digest != request.intent_digest:
        return f"the transaction's digest is {digest.hex()} and the request says {request.intent_digest.hex()}"
    return None


def _foreign(request: SignRequest, at_nonce: Bound | None, of_step: Bound | None, step: str) -> str | None:
    """Rule 1."""
    nonce = request.transaction.nonce
    if of_step is not None and of_step.nonce != nonce:
        return f"{step} is bound to nonce {of_step.nonce}, and nonce {nonce} was asked for"
    if at_nonce is not None and (at_nonce.execution_id, at_nonce.step) != (request.execution_id, request.step):
        return f"nonce {nonce} is bound to step {at_nonce.step} of {at_nonce.execution_id}, and {step} asked for it"
    return None


def _unfit(request: SignRequest, bound: Bound) -> str | None:
    """Rules 2 and 3, for a nonce that is bound to this step already."""
    transaction, nonce = request.transaction, bound.nonce
    if transaction.type != bound.type:
        return f"nonce {nonce} carries type {bound.type}, and type {transaction.type} was asked for"
    if request.kind is Kind.CANCEL:
        return None
    if bound.cancelled:
        return f"nonce {nonce} is cancelled for ever, and a {request.kind} was asked for"
    if request.intent_digest != bound.digest:
        return f"nonce {nonce} is bound to digest {bound.digest.hex()}, not {request.intent_digest.hex()}"
    return None


def _no_raise(request: SignRequest, bound: Bound) -> str | None:
    """Rules 2 and 4, for a signature that was not ordered before."""
    transaction, nonce = request.transaction, bound.nonce
    if request.kind is Kind.SEND:
        return f"nonce {nonce} has its SEND, and this one differs from it: a further offer is a BUMP"
    if request.kind is Kind.BUMP and bound.signatures and transaction.gas < bound.signatures[0].gas:
        return (
            f"a BUMP of nonce {nonce} has {transaction.gas} gas, less than the {bound.signatures[0].gas} of the first"
        )
    highest = highest_signed(bound.signatures)
    if highest is not None and not is_raise(highest, Fees(transaction.max_fee_wei, transaction.tip_wei)):
        return (
            f"a {request.kind} of nonce {nonce} offers {transaction.max_fee_wei} wei with a tip of {transaction.tip_wei}, "
            f"not 10 % more than {highest.max_fee_wei} with {highest.tip_wei}"
        )
    return None


def highest_signed(signatures: Sequence[Past]) -> Fees | None:
    """The highest of each fee field among those with bytes; None if there are none (P22: then no raise is needed)."""
    signed = [past for past in signatures if past.raw is not None or past.pending]
    if not signed:
        return None
    return Fees(max(past.max_fee_wei for past in signed), max(past.tip_wei for past in signed))


def _digest(fence: Fence, request: SignRequest) -> bytes:
    tx = request.transaction
    if request.kind is Kind.CANCEL:
        return cancel_digest(fence.chain_id, fence.address)
    return intent_digest(fence.chain_id, fence.address, tx.to, tx.value_wei, tx.data, tx.access_list)
