"""Reopening after a rewind: what chain and journal know above the rows, and which slots came due meanwhile (design §2).

A database restored from a backup, rewound by an asynchronous failover, or copied has lost the rows of transactions that are
out. Their nonces are acknowledged once they are final, so that nothing of ours is put on them; the slots that came due
since the rows' marks get a row each, so that an operator can say of each whether it was paid.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from chain.agreement import Claim
from chain.client import ChainClient
from chain.types import BlockRef, ChainView
from executor.recurrence import recurrence_of, slot_text
from executor.store.parking import Schedule
from signer.request import JournalEntry

SLOTS: Final = 1000
"""How many slots of one schedule get a row, the newest; an older one gets its own if somebody triggers it by name, PARKED too."""

_SEARCHED: Final = 100
_SEARCH_BLOCKS: Final = 4096
"""How many of the nonces used above the rows are looked up on the chain, the newest, and how many blocks back."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is above the rows: nonces the chain has used, and journal entries for nonces that no row binds."""

    used: range
    entries: tuple[JournalEntry, ...]

    @property
    def ground(self) -> str:
        """Why the account is halted for it, as one sentence (P15)."""
        if self.entries:
            first = self.entries[0]
            return f"the signer's journal binds nonce {first.nonce} to step {first.step} of {first.execution_id}, the rows do not: restored or copied"
        return (
            f"the chain counts nonce {self.used.stop}, the rows reach {self.used.start - 1}: "
            "the key was used elsewhere or rows are lost"
        )


def frontier(view: ChainView, first_nonce: int | None, highest: int | None) -> int:
    """The nonce that the rows would give next; what the chain counts for an account that has none yet."""
    if highest is not None:
        return highest + 1
    return view.nonce_latest if first_nonce is None else first_nonce


def ahead(
    view: ChainView,
    first_nonce: int | None,
    highest: int | None,
    known: Collection[int],
    entries: Sequence[JournalEntry],
) -> Ahead | None:
    """What chain and journal have above the rows, None where the rows know it all.

    `highest` is the account's highest nonce in the rows, `known` those that rows bind or acknowledge.
    """
    following = frontier(view, first_nonce, highest)
    lost = tuple(e for e in entries if e.nonce not in known and (first_nonce is None or e.nonce >= first_nonce))
    used = range(following, max(following, view.nonce_latest))
    return Ahead(used, lost) if used or lost else None


def obstacle(view: ChainView, following: int, found: Ahead | None) -> str | None:
    """What must happen before the account can be reopened, None if nothing: all that is above the rows must be final."""
    if view.final is None or view.nonce_final is None:
        return "the chain names no final block yet: wait for one and ask again"
    if view.nonce_pending is None:
        return "the node does not tell this account's pending transactions: ask again with an endpoint that does"
    above = max(following, view.nonce_latest)
    if view.nonce_pending > above:
        return (
            f"transactions of unknown origin wait in the node's pool (nonces {above} to {view.nonce_pending - 1}): "
            "let them be mined or drop them, and ask again"
        )
    if found is None:
        return None
    if found.used and view.nonce_final < view.nonce_latest:
        return (
            f"nonces {found.used.start} to {found.used.stop - 1} were used above the rows and are not final yet: "
            f"wait until the final block is past block {view.head.number} and ask again"
        )
    unused = next((e for e in found.entries if e.nonce >= view.nonce_final), None)
    if unused is not None:
        return (
            f"the signer's journal bound nonce {unused.nonce} to step {unused.step} of {unused.execution_id}, and the chain has not used "
            "it for good: its bytes may still be mined; wait until they are, or spend that nonce with the key elsewhere, and ask again"
        )
    return None


def above(
    client: ChainClient, address: bytes, view: ChainView, found: Ahead
) -> list[tuple[int, bytes | None, str | None, int | None, BlockRef]]:
    """For each nonce used above the rows: the transaction that used it where it can be found, what the journal had bound it to, the final block.

    Raises Unavailable when no endpoint answers.
    """
    final = view.final
    if final is None:
        return []
    journaled = {entry.nonce: entry for entry in found.entries}
    hashes = [h for entry in found.entries for h in entry.hashes]
    mined = {receipt.hash for receipt in client.receipts(hashes) if receipt is not None}
    rows = []
    for nonce in found.used:
        entry = journaled.get(nonce)
        spent_by = next((h for h in (entry.hashes if entry else ()) if h in mined), None)
        if spent_by is None and nonce >= found.used.stop - _SEARCHED:
            spending = client.find_spending(address, nonce, max(0, final.number - _SEARCH_BLOCKS), final.number)
            spent_by = spending.hash if spending else None
        rows.append((nonce, spent_by, entry.execution_id if entry else None, entry.step if entry else None, final))
    return rows


def unproved(client: ChainClient, view: ChainView, paid: bytes) -> str | None:
    """Why a transaction proves no payment, None if it took effect in a block that every endpoint calls final.

    Raises Unavailable when no endpoint answers.
    """
    (receipt,) = client.receipts([paid])
    if receipt is None:
        return f"the chain knows no mined transaction 0x{paid.hex()}: correct the hash, or wait until it is mined and ask again"
    if receipt.status != 1:
        return f"the transaction 0x{paid.hex()} reverted in block {receipt.block.number}: it paid nothing"
    if view.final is None or receipt.block.number > view.final.number:
        return f"block {receipt.block.number} with the transaction 0x{paid.hex()} is not final yet: wait and ask again"
    if not client.proofs([Claim(paid, receipt.block, receipt.status)], view.final).proved[0]:
        return f"not every endpoint says that the transaction 0x{paid.hex()} is final: wait and ask again"
    return None


def slots_due(schedules: Sequence[Schedule], until: datetime) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Execution rows for the slots that came due since each schedule's mark, and the schedules with more than SLOTS of them."""
    rows: list[Mapping[str, Any]] = []
    longer = []
    for one in schedules:
        recurrence = recurrence_of(one.schedule, one.every_seconds, one.timezone)
        due = [] if recurrence is None else recurrence.due(one.high_water_mark, until, SLOTS + 1)
        if len(due) > SLOTS:
            longer.append(one.strategy)
        rows += [
            {
                "execution_id": f"{one.strategy}/{slot_text(slot)}",
                "strategy": one.strategy,
                "slot": slot,
                "input": one.input,
                "state": "PENDING",
                "due_at": slot,
            }
            for slot in due[-SLOTS:]
        ]
    return rows, longer
