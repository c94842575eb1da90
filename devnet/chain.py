"""The canonical chain: blocks by height and hash, transactions by hash. It only grows and shrinks at its head."""

from dataclasses import dataclass, field

from devnet.codec.blocks import Block, Receipt

SAFE_DEPTH = 32
FINALIZED_DEPTH = 64


@dataclass
class Chain:
    """Blocks from genesis on, with their indexes."""

    blocks: list[Block] = field(default_factory=list)
    by_hash: dict[bytes, Block] = field(default_factory=dict)
    included: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    @property
    def head(self) -> Block:
        """The newest block."""
        return self.blocks[-1]

    @property
    def safe(self) -> Block:
        """32 blocks below the head, genesis at least: what `safe` names."""
        return self.blocks[max(self.head.number - SAFE_DEPTH, 0)]

    @property
    def finalized(self) -> Block:
        """64 blocks below the head, genesis at least: what `finalized` names."""
        return self.blocks[max(self.head.number - FINALIZED_DEPTH, 0)]

    def append(self, block: Block) -> None:
        """Make a block the new head."""
        self.blocks.append(block)
        self.by_hash[block.hash] = block
        for receipt in block.receipts:
            self.included[receipt.tx.hash] = (block.number, receipt.index)

    def pop(self) -> Block:
        """Take the head off."""
        block = self.blocks.pop()
        del self.by_hash[block.hash]
        for receipt in block.receipts:
            del self.included[receipt.tx.hash]
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
