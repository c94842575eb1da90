"""Confirm: which of our transactions stand in canonical blocks. SENT ⇄ MINED, and back after a reorg."""

from collections.abc import Sequence
from dataclasses import dataclass

from chain.client import ChainClient
from chain.types import ChainView, Receipt
from executor.crashpoints import CrashPoint
from executor.database import Held
from executor.records import Watched
from executor.store import attempts, receipts
from executor.turn import Turn

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Sightings:
    """What the chain says about watched attempts."""

    mined: list[tuple[int, int, Receipt]]
    orphaned: list[tuple[int, int]]
    unresolved: int


def run(turn: Turn, client: ChainClient, view: ChainView) -> tuple[int, int]:
    """Look at every attempt with bytes whose nonce the chain has passed, and at those believed mined.

    Returns how many rows moved and how many nonces stay unexplained (a lagging endpoint, or foreign use of the key).
    Raises Unavailable when no endpoint answers.
    """
    with turn.database.read() as tx:
        watched = attempts.select_watched(tx, turn.account.account_id, view.nonce_latest, _BATCH)
    if not watched:
        return 0, 0
    seen = _look(watched, client)
    turn.crash(CrashPoint.CONFIRM_SEEN)
    if seen.mined or seen.orphaned:
        turn.record(lambda held: _record(held, seen))
        turn.crash(CrashPoint.CONFIRM_RECORDED)
    return len(seen.mined) + len(seen.orphaned), seen.unresolved


def _record(held: Held, seen: Sightings) -> None:
    # A nonce has one MINED attempt at a time: the orphaned one makes room first.
    receipts.record_orphaned(held, seen.orphaned)
    attempts.record_orphaned(held, seen.orphaned)
    receipts.record_seen(held, seen.mined)
    attempts.record_mined(held, [(nonce, seq) for nonce, seq, _ in seen.mined])


def _look(watched: Sequence[Watched], client: ChainClient) -> Sightings:
    """Receipts count only in blocks that are canonical now; a block nobody knows proves nothing."""
    believed = [w for w in watched if w.status == "MINED"]
    searched = [w for w in watched if w.status != "MINED"]
    found = dict(zip(searched, client.receipts([w.hash for w in searched]), strict=True))
    numbers = {w.block_number for w in believed if w.block_number is not None} | {
        r.block.number for r in found.values() if r
    }
    canonical = client.canonical_hashes(sorted(numbers))
    orphaned = [
        (w.nonce, w.seq)
        for w in believed
        if w.block_number is not None
        and canonical[w.block_number] is not None
        and canonical[w.block_number] != w.block_hash
    ]
    settled = {w.nonce for w in believed} - {nonce for nonce, _ in orphaned}
    mined = [
        (w.nonce, w.seq, r)
        for w, r in found.items()
        if r is not None and w.nonce not in settled and canonical[r.block.number] == r.block.hash
    ]
    unresolved = {w.nonce for w in watched} - settled - {nonce for nonce, _, _ in mined}
    return Sightings(mined, orphaned, len(unresolved))
