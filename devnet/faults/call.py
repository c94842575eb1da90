"""What rules see of a JSON-RPC call."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """One call, alone or in a batch. `sender`, `nonce` and `hash` are those of the transaction or account it is about.

    `node` is the lagging view that answers it (None without views), `connection` the number of its connection.
    """

    method: str
    sender: bytes | None = None
    nonce: int | None = None
    hash: bytes | None = None
    node: int | None = None
    connection: int | None = None
    in_batch: bool = False

    @property
    def key(self) -> str:
        """What draws depend on: method, sender and nonce, else the hash; nothing that timing or other calls can move."""
        parts = [self.method]
        if self.sender is not None:
            parts.append("0x" + self.sender.hex())
        if self.nonce is not None:
            parts.append(str(self.nonce))
        elif self.hash is not None:
            parts.append("0x" + self.hash.hex())
        return " ".join(parts)
