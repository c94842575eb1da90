"""Finalize: MINED → FINAL at the chain's own depth; closes the nonce with its witness and ends the execution (G10, P2)."""

from chain.client import ChainClient
from chain.finality import is_final
from chain.types import ChainView
from executor.crashpoints import CrashPoint
from executor.database import Held
from executor.store import attempts, executions, reservations
from executor.turn import Turn

_BATCH = 1000


def run(turn: Turn, client: ChainClient, view: ChainView) -> dict[str, str]:
    """Close what is final. Receipts and block hashes are read anew: success is never declared from an old answer.

    Returns the executions that ended with their end state. Raises Unavailable when no endpoint answers.
    """
    final = view.final
    if final is None:
        return {}
    with turn.database.read() as tx:
        candidates = attempts.select_finalizable(tx, turn.account.account_id, final.number, _BATCH)
    if not candidates:
        return {}
    found = client.receipts([c.hash for c in candidates])
    canonical = client.canonical_hashes(
        [*{c.block_number for c in candidates if c.block_number is not None}, final.number]
    )
    proved = [
        c
        for c, receipt in zip(candidates, found, strict=True)
        if receipt is not None
        and receipt.block.hash == c.block_hash == canonical[receipt.block.number]
        and receipt.status == c.receipt_status
        and is_final(receipt.block.number, final)
    ]
    turn.crash(CrashPoint.FINALIZE_SEEN)
    if not proved or canonical[final.number] != final.hash:
        return {}

    def write(held: Held) -> dict[str, str]:
        attempts.record_final(held, [(c.nonce, c.seq) for c in proved])
        closed = [(c.nonce, c.seq, c.kind != "CANCEL" and c.receipt_status == 1) for c in proved]
        concerned = reservations.close(held, closed, final, turn.finality_rule, turn.endpoints)
        return executions.end_settled(held, concerned)

    ended = turn.record(write)
    turn.crash(CrashPoint.FINALIZE_RECORDED)
    return ended
