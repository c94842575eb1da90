"""The canonical chain: blocks by height and hash, transactions by hash. It only grows and shrinks at its head."""

from dataclasses import dataclass, field

from devnet.codec.blocks import Block, Receipt


@dataclass
class Chain:
    """Blocks from genesis on, with their indexes. `safe` and `finalized` are one and two epochs below the head."""

    slots_in_an_epoch: int = 32
    blocks: list[Block] = field(default_factory=list)
    by_hash: dict[bytes, Block] = field(default_factory=dict)
    included: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    total_difficulty: int = 0
    _former: dict[bytes, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def head(self) -> Block:
        """The newest block."""
        return self.blocks[-1]

    @property
    def safe(self) -> Block:
        """An epoch below the head, genesis at least: what `safe` names."""
        return self.blocks[max(self.head.number - self.slots_in_an_epoch, 0)]

    @property
    def finalized(self) -> Block:
        """Two epochs below the head, genesis at least: what `finalized` names."""
        return self.blocks[max(self.head.number - 2 * self.slots_in_an_epoch, 0)]

    def append(self, block: Block) -> None:
        """Make a block the new head."""
        self.blocks.append(block)
        self.by_hash[block.hash] = block
        self.total_difficulty += block.header.difficulty
        for receipt in block.receipts:
            tx_hash = receipt.tx.hash
            if tx_hash in self.included:  # a nonce was set back by hand
                self._former.setdefault(tx_hash, []).append(self.included[tx_hash])
            self.included[tx_hash] = (block.number, receipt.index)

    def pop(self) -> Block:
        """Take the head off."""
        block = self.blocks.pop()
        del self.by_hash[block.hash]
        self.total_difficulty -= block.header.difficulty
        for receipt in block.receipts:
            tx_hash = receipt.tx.hash
            former = self._former.get(tx_hash)
            if former:
                self.included[tx_hash] = former.pop()
            else:
                del self.included[tx_hash]
        return block

    def at(self, number: int) -> Block | None:
        """The block of a height, None above the head."""
        return self.blocks[number] if 0 <= number < len(self.blocks) else None

    def find(self, tx_hash: bytes) -> tuple[Block, Receipt] | None:
        """The block and receipt of an included transaction."""
        place = self.included.get(tx_hash)
        if place is None:
            return None
        block = self.blocks[place[0]]
        return block, block.receipts[place[1]]

    def block_hash(self, number: int) -> bytes:
        """A block's hash for the BLOCKHASH opcode; empty above the head."""
        block = self.at(number)
        return block.hash if block else b""
