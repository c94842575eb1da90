"""The logs of a message, with one for each movement of ether where asked: what eth_simulateV1 gives (ERC-7528)."""

from typing import Final

from devnet.codec.blocks import Log
from devnet.evm.tracing import Entry, Exit, Silent

ETHER: Final = b"\xee" * 20
_TRANSFER: Final = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
_NOT_MOVING: Final = {"DELEGATECALL", "CALLCODE"}


class TransferTracer(Silent):
    """`logs` holds what stood at the end in the order it happened, numbered from `count` on.

    As with geth, what a failed frame undoes keeps its number. Without `transfers` there are events only.
    """

    def __init__(self, count: int, *, transfers: bool) -> None:
        self.logs: list[tuple[int, Log]] = []
        self.count = count
        self._transfers = transfers
        self._open: list[list[tuple[int, Log]]] = []

    def enter(self, entry: Entry) -> None:
        """Note the value a call brings."""
        self._open.append([])
        if self._transfers and entry.value and entry.kind not in _NOT_MOVING:
            ends = tuple(address.rjust(32, b"\0") for address in (entry.sender, entry.to))
            self.log(ETHER, (_TRANSFER, *ends), entry.value.to_bytes(32, "big"))

    def log(self, address: bytes, topics: tuple[bytes, ...], payload: bytes) -> None:
        """Note an event."""
        self._open[-1].append((self.count, Log(address, topics, payload)))
        self.count += 1

    def leave(self, result: Exit) -> None:
        """Hand what stood on to the frame around."""
        found = self._open.pop()
        if result.error is None:
            (self._open[-1] if self._open else self.logs).extend(found)
