"""Which transactions a full pool gives up first: geth's two heaps, one by tip at the next base fee, one by fee cap.

The cheapest by tip are moved to the heap by fee cap, four stay for each one there, and what is cheapest in that is given
up (go-ethereum, core/txpool/legacypool/list.go). Equal prices: the higher nonce goes first, then the later arrival.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import Final

from devnet.codec.transaction import BLOB, Transaction
from devnet.txpool.lane import Pooled

SLOT: Final = 32 * 1024
_URGENT_PER_FLOATING: Final = 4

Price = tuple[int, int, int]
Ranked = tuple[Price, int, int, Pooled]


def slots(tx: Transaction) -> int:
    """How much room a transaction takes in a pool: one for each 32 KiB begun. Blob transactions have a pool of their own."""
    return 0 if tx.type == BLOB else (len(tx.raw) + SLOT - 1) // SLOT


class PriceOrder:
    """The pool's transactions by price at one base fee (wei per gas). `present` tells those that have left since."""

    def __init__(self, entries: Iterable[Pooled], present: Mapping[bytes, Pooled], base_fee: int) -> None:
        self.base_fee = base_fee
        self._present = present
        self._urgent = [self._by_tip(entry) for entry in entries if entry.tx.type != BLOB]
        heapq.heapify(self._urgent)
        cheap = [heapq.heappop(self._urgent)[3] for _ in range(len(self._urgent) // (_URGENT_PER_FLOATING + 1))]
        self._floating = [self._by_cap(entry) for entry in cheap]
        heapq.heapify(self._floating)

    def put(self, entry: Pooled) -> None:
        """A transaction came."""
        if entry.tx.type != BLOB:
            heapq.heappush(self._urgent, self._by_tip(entry))

    def underpriced(self, tx: Transaction) -> bool:
        """Whether a newcomer pays no more than the cheapest, by either measure."""
        worse = []
        for heap, price in ((self._urgent, self._tip_price(tx)), (self._floating, self._cap_price(tx))):
            while heap and not self._is_present(heap[0][3]):
                heapq.heappop(heap)
            if heap:
                worse.append(heap[0][0] >= price)
        return bool(worse) and all(worse)

    def take_cheapest(self, room: int) -> list[Pooled] | None:
        """Take out the cheapest until so many slots are free; None, and nothing is taken, if they do not suffice."""
        taken: list[Pooled] = []
        while room > 0:
            if len(self._urgent) > len(self._floating) * _URGENT_PER_FLOATING:
                entry = heapq.heappop(self._urgent)[3]
                if self._is_present(entry):
                    heapq.heappush(self._floating, self._by_cap(entry))
            elif self._floating:
                entry = heapq.heappop(self._floating)[3]
                if self._is_present(entry):
                    taken.append(entry)
                    room -= slots(entry.tx)
            else:
                self.put_back(taken)
                return None
        return taken

    def put_back(self, entries: Iterable[Pooled]) -> None:
        """They stay after all."""
        for entry in entries:
            self.put(entry)

    def _is_present(self, entry: Pooled) -> bool:
        return self._present.get(entry.tx.hash) is entry

    def _tip_price(self, tx: Transaction) -> Price:
        return tx.tip(self.base_fee), tx.max_fee, tx.max_priority_fee

    def _cap_price(self, tx: Transaction) -> Price:
        return tx.max_fee, tx.max_priority_fee, 0

    def _by_tip(self, entry: Pooled) -> Ranked:
        return self._tip_price(entry.tx), -entry.tx.nonce, -entry.arrival, entry

    def _by_cap(self, entry: Pooled) -> Ranked:
        return self._cap_price(entry.tx), -entry.tx.nonce, -entry.arrival, entry
