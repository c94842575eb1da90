"""Every raw transaction ever received, with its verdict and what became of it: the oracle of tests that count sends."""

import time
from dataclasses import dataclass, field

from devnet.codec.transaction import Transaction
from devnet.errors import RpcError


@dataclass(slots=True)
class Submission:
    """One raw transaction as it arrived. `received` is the wall clock in seconds; `tx` is None for undecodable bytes."""

    index: int
    received: float
    raw: bytes
    hash: bytes
    tx: Transaction | None
    verdict: str
    error: RpcError | None


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a transaction and at which head: mined, orphaned, replaced (`by` which), overtaken, dropped, or
    taken out of the pool by a return to a snapshot (reverted)."""

    kind: str
    block: int
    block_hash: bytes
    by: bytes | None = None


@dataclass
class Ledger:
    """Append-only: neither snapshots nor reorgs take anything out of it."""

    submissions: list[Submission] = field(default_factory=list)
    events: dict[bytes, list[Event]] = field(default_factory=dict)

    def record(
        self, raw: bytes, tx_hash: bytes, tx: Transaction | None, verdict: str, error: RpcError | None = None
    ) -> None:
        """Note a submission: verdict `pending`, `queued` or `rejected`."""
        index = len(self.submissions)
        self.submissions.append(Submission(index, time.time(), raw, tx_hash, tx, verdict, error))

    def note(self, tx_hash: bytes, event: Event) -> None:
        """Note what happened to a transaction."""
        self.events.setdefault(tx_hash, []).append(event)
