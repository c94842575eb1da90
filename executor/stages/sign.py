"""Sign: DRAFT → SIGNED with the bytes stored. The only caller of the signer."""

from collections.abc import Sequence

from chain.fees import Fees, cancel_fees, quote
from chain.transaction import UnsignedTransaction
from chain.types import ChainView
from executor.crashpoints import CrashPoint
from executor.database import FenceRefused, Held
from executor.records import Draft
from executor.store import attempts
from executor.turn import Turn
from signer.request import Kind, RefusalReason, Refused, Signed, SignRequest
from signer.service import Signer

_BATCH = 250
_CANCEL_GAS = 21_000


def run(turn: Turn, signer: Signer, view: ChainView, halted: bool) -> int:
    """Sign the account's drafts in nonce order; how many attempts moved.

    A policy refusal marks the draft REFUSED and adds a CANCEL in the same transaction; a guard refusal halts the
    account and cancels nothing (P6).

    Raises:
        FenceRefused: the signer has seen a newer lease generation; the caller drops its lease.
    """
    with turn.database.read() as tx:
        drafts = attempts.select_drafts(tx, turn.account.account_id, _BATCH, cancels_only=halted)
    if not drafts:
        return 0
    turn.crash(CrashPoint.SIGN_SELECTED)
    outcomes = signer.sign(turn.fence, [_request(turn, draft) for draft in drafts])
    turn.crash(CrashPoint.SIGN_SIGNED)
    signed = [(d.nonce, d.seq, o.raw, o.hash) for d, o in zip(drafts, outcomes, strict=True) if isinstance(o, Signed)]
    refused = [(d, o) for d, o in zip(drafts, outcomes, strict=True) if isinstance(o, Refused)]
    _raise_if_stale(refused)
    cancels = [
        _cancel(turn, view, d, o) for d, o in refused if o.reason is RefusalReason.POLICY and d.kind != Kind.CANCEL
    ]
    if signed or cancels:

        def write(held: Held) -> None:
            attempts.record_signed(held, signed)
            attempts.record_refused(held, cancels)

        turn.record(write)
        turn.crash(CrashPoint.SIGN_STORED)
    _tell(turn, refused)
    return len(signed) + len(cancels)


def _request(turn: Turn, draft: Draft) -> SignRequest:
    cancels = draft.kind == Kind.CANCEL
    transaction = UnsignedTransaction(
        chain_id=turn.account.chain_id,
        nonce=draft.nonce,
        type=draft.transaction_type,
        to=turn.account.address if cancels else draft.recipient,
        create=draft.creates and not cancels,
        value_wei=0 if cancels else draft.value,
        data=b"" if cancels else draft.data,
        access_list=() if cancels else draft.access_list,
        gas=draft.gas,
        max_fee_wei=draft.max_fee,
        tip_wei=draft.tip,
    )
    return SignRequest(draft.execution_id, draft.step, Kind(draft.kind), transaction, draft.intent_digest)


def _cancel(turn: Turn, view: ChainView, draft: Draft, refused: Refused) -> tuple[int, int, str, int, int, int]:
    """The refused draft and the CANCEL that takes its nonce; without signed bytes no raise is needed (P22)."""
    cap, tip_cap = turn.policy.max_fee_per_gas_wei, turn.policy.max_priority_fee_per_gas_wei
    wanted = quote(view.head.base_fee_wei, view.tip_wei, cap_wei=cap, tip_cap_wei=tip_cap)
    previous = (
        None
        if draft.signed_max_fee is None or draft.signed_tip is None
        else Fees(draft.signed_max_fee, draft.signed_tip)
    )
    gas = _CANCEL_GAS if previous is None else draft.gas  # P24: never below what was signed before
    fees = cancel_fees(previous, wanted, cap_wei=cap, tip_cap_wei=tip_cap) or wanted
    return draft.nonce, draft.seq, f"policy: {refused.detail}"[:500], gas, fees.max_fee_wei, fees.tip_wei


def _raise_if_stale(refused: Sequence[tuple[Draft, Refused]]) -> None:
    for _, refusal in refused:
        if refusal.reason is RefusalReason.STALE:
            raise FenceRefused("signer_fence", "the signer has seen a newer lease generation", refusal.detail)


def _tell(turn: Turn, refused: Sequence[tuple[Draft, Refused]]) -> None:
    for draft, refusal in refused:
        if refusal.reason is RefusalReason.GUARD:
            turn.halt(f"the signer refused nonce {draft.nonce}: {refusal.detail}")
            turn.crash(CrashPoint.SIGN_HALTED)
            return
        if draft.kind == Kind.CANCEL:
            turn.note_attention(f"the cancel of nonce {draft.nonce} was refused by policy: {refusal.detail}")
