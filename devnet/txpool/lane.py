"""One sender's waiting transactions by nonce: the contiguous run from the account's nonce is executable, the rest queued."""

from dataclasses import dataclass
from itertools import islice

from devnet.codec.transaction import BLOB, Transaction


@dataclass(frozen=True, slots=True)
class Pooled:
    """A waiting transaction and its place in the order of arrival."""

    tx: Transaction
    arrival: int


class Lane:
    """`start` is the account's nonce, `end` the first nonce missing from there on, `cost` the run's cost in wei.

    `touched` is when something last became queued or executable here, in the pool's seconds: what the lifetime of queued
    transactions is counted from.
    """

    __slots__ = ("cost", "end", "entries", "start", "touched")

    def __init__(self, start: int) -> None:
        self.entries: dict[int, Pooled] = {}
        self.start = start
        self.end = start
        self.cost = 0
        self.touched = 0.0

    @property
    def executable(self) -> int:
        """How many are in the run."""
        return self.end - self.start

    @property
    def queued(self) -> int:
        """How many wait behind a gap."""
        return len(self.entries) - self.end + self.start

    @property
    def holds_blobs(self) -> bool:
        """Whether these are blob transactions, which geth's pool keeps apart: a sender has such or others, not both."""
        return any(entry.tx.type == BLOB for entry in islice(self.entries.values(), 1))

    def put(self, entry: Pooled) -> None:
        """Add or replace the transaction of a nonce; transactions behind a gap it fills become executable."""
        nonce = entry.tx.nonce
        old = self.entries.get(nonce)
        self.entries[nonce] = entry
        if self.start <= nonce < self.end:
            self.cost += entry.tx.cost - (old.tx.cost if old else 0)
        self._extend()

    def take_first(self) -> None:
        """The transaction at `start` was mined."""
        self.cost -= self.entries.pop(self.start).tx.cost
        self.start += 1

    def remove(self, nonce: int) -> None:
        """Take one out; what follows it in the run is queued from now on."""
        if self.start <= nonce < self.end:
            self.cost -= sum(self.entries[at].tx.cost for at in range(nonce, self.end))
            self.end = nonce
        del self.entries[nonce]

    def restart(self, start: int) -> list[Pooled]:
        """Begin at another account nonce; returns the transactions this overtakes, which are no longer here."""
        overtaken = [entry for nonce, entry in sorted(self.entries.items()) if nonce < start]
        for entry in overtaken:
            del self.entries[entry.tx.nonce]
        self.start = self.end = start
        self.cost = 0
        self._extend()
        return overtaken

    def _extend(self) -> None:
        while (entry := self.entries.get(self.end)) is not None:
            self.cost += entry.tx.cost
            self.end += 1
