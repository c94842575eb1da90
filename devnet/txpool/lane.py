"""One sender's waiting transactions by nonce: the contiguous run from the account's nonce is executable, the rest queued."""

from dataclasses import dataclass

from devnet.codec.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Pooled:
    """A waiting transaction and its place in the order of arrival."""

    tx: Transaction
    arrival: int


class Lane:
    """`start` is the account's nonce, `end` the first nonce missing from there on, `cost` the run's cost in wei."""

    def __init__(self, start: int) -> None:
        self.entries: dict[int, Pooled] = {}
        self.start = start
        self.end = start
        self.cost = 0

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
