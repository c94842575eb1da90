"""Every raw transaction ever received, with its verdict and what became of it: the oracle of tests that count sends."""

import time
from dataclasses import dataclass, field
from typing import Literal

from devnet.codec.transaction import Transaction
from devnet.errors import RpcError

# Whose submission it is: a client's, that of another holder of the key (devnet_rival), or one a tester's order made.
Author = Literal["client", "rival", "order"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request came from: the number of its connection, the node its path names (`/node/1`), its X-Fence header."""

    connection: int | None = None
    node: int | None = None
    fence: int | None = None


@dataclass(frozen=True, slots=True)
class Struck:
    """The fault a call met: its kind and the rule that ordered it."""

    kind: str
    rule: str


@dataclass(slots=True)
class Submission:
    """One raw transaction as it arrived. `received` is the wall clock in seconds; `tx` is None for undecodable bytes.

    `node` is the view that took it, `fault` what kept the pool from it or the sender from the truth, `resend` how often
    the same bytes had come before.
    """

    index: int
    received: float
    raw: bytes
    hash: bytes
    tx: Transaction | None
    verdict: str
    error: RpcError | None
    origin: Origin
    node: int | None
    fault: Struck | None
    author: Author
    resend: int


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to a transaction, in which block or at which head: mined, orphaned, replaced (`by` which), overtaken, dropped,
    evicted, lost (in a restart, a reorg by order, or one after which the client forgets orphans), unpropagated (known to one node only), or taken out of the pool by a
    return to a snapshot (reverted). `seen` is how many submissions there had been."""

    kind: str
    block: int
    block_hash: bytes
    by: bytes | None = None
    seen: int = 0


@dataclass
class Ledger:
    """Append-only: neither snapshots nor reorgs take anything out of it.

    `origin`, `node`, `fault` and `author` are those of the call that runs now. `sent` counts what clients have sent.
    """

    submissions: list[Submission] = field(default_factory=list)
    events: dict[bytes, list[Event]] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    node: int | None = None
    fault: Struck | None = None
    author: Author = "client"
    sent: int = 0
    _times: dict[bytes, int] = field(default_factory=dict)

    def record(
        self, raw: bytes, tx_hash: bytes, tx: Transaction | None, verdict: str, error: RpcError | None = None
    ) -> None:
        """Note a submission: verdict `pending`, `queued`, `rejected`, `injected` (put into a block by a tester), or by
        a fault `unseen` (the node never saw it) or `forgotten` (answered as accepted, and not pooled).
        """
        if self.author == "client" and verdict != "injected":
            self.sent += 1
        times = self._times[raw] = self._times.get(raw, -1) + 1
        self.submissions.append(
            Submission(
                len(self.submissions),
                time.time(),
                raw,
                tx_hash,
                tx,
                verdict,
                error,
                self.origin,
                self.node,
                self.fault,
                self.author,
                times,
            )
        )

    def story(self, item: Submission) -> list[Event]:
        """What happened to its transaction since a submission."""
        return [event for event in self.events.get(item.hash, ()) if event.seen > item.index]

    def note(self, tx_hash: bytes, event: Event) -> None:
        """Note what happened to a transaction."""
        self.events.setdefault(tx_hash, []).append(event)
