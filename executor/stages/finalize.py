"""Finalize: MINED → FINAL at the chain's own depth; closes the nonce with its witness and ends the execution (G10, P2)."""

import logging

from chain.agreement import Claim
from chain.client import ChainClient
from chain.types import BlockRef, ChainView
from executor.crashpoints import CrashPoint
from executor.database import Held
from executor.store import attempts, executions, receipts, reservations
from executor.turn import Turn

log = logging.getLogger("fenced.finalize")
_BATCH = 1000


def run(turn: Turn, client: ChainClient, view: ChainView) -> dict[str, str]:
    """Close what is final by every endpoint that has a say, asked anew: success is never declared from an old answer.

    Returns the executions that ended with their end state. Raises Unavailable when no endpoint answers.
    """
    final = view.final
    if final is None:
        return {}
    with turn.database.read() as tx:
        candidates = [
            (c, Claim(c.hash, BlockRef(c.block_number, c.block_hash), c.receipt_status))
            for c in attempts.select_finalizable(tx, turn.account.account_id, final.number, _BATCH)
            if c.block_number is not None and c.block_hash is not None and c.receipt_status is not None
        ]
        witness = reservations.witness(tx, turn.account.account_id) if candidates else None
    if witness is None:
        return {}
    if _is_changed(client, witness):
        # P14. Reconcile looks at the newest witness only: the one that this closing would add must not bury an older one.
        turn.halt(
            f"block {witness.witness_number} that proved a closed nonce is no longer canonical: a reorg past finality"
        )
        return {}
    found = client.proofs([claim for _, claim in candidates], final)
    proved = [c for (c, _), is_proved in zip(candidates, found.proved, strict=True) if is_proved]
    turn.crash(CrashPoint.FINALIZE_SEEN)
    if found.contradicting:
        _tell(turn, found.contradicting, final)
    unfounded = [
        (c.nonce, c.seq)
        for (c, _), is_denied in zip(candidates, found.denied, strict=True)
        if is_denied and view.nonce_final is not None and view.nonce_final <= c.nonce
    ]
    if unfounded:
        turn.record(lambda held: _unbelieve(held, unfounded))
    if not proved:
        return {}

    def write(held: Held) -> dict[str, str]:
        attempts.record_final(held, [(c.nonce, c.seq) for c in proved])
        closed = [(c.nonce, c.seq, c.kind != "CANCEL" and c.receipt_status == 1) for c in proved]
        concerned = reservations.close(held, closed, final, turn.finality_rule, found.endpoints)
        return executions.end_settled(held, concerned)

    ended = turn.record(write)
    turn.crash(CrashPoint.FINALIZE_RECORDED)
    return ended


def _is_changed(client: ChainClient, witness: reservations.Witness) -> bool:
    if witness.witness_number is None:
        return False
    canonical = client.canonical_hashes([witness.witness_number])[witness.witness_number]
    return canonical is not None and canonical != witness.witness_hash


def _unbelieve(held: Held, rows: list[tuple[int, int]]) -> None:
    """A receipt that nobody affirms, of a nonce that is unused at the final block above it, was never true: send again."""
    receipts.record_orphaned(held, rows)
    attempts.record_orphaned(held, rows)


def _tell(turn: Turn, contradicting: list[str], final: BlockRef) -> None:
    why = f"{', '.join(contradicting)} contradicts another endpoint below the final block {final.number}: what they dispute is not called final"
    log.warning("endpoints disagree", extra={"account": turn.account.name, "why": why})
    turn.note_attention(why)
