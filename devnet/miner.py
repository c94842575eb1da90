"""Makes blocks: chooses transactions by tip, then arrival; applies them; seals the state and appends the block."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from devnet.chain import Chain
from devnet.clock import Clock
from devnet.codec.blocks import Block, Header, Receipt, bloom
from devnet.codec.keccak import keccak
from devnet.codec.transaction import Transaction
from devnet.codec.trie import ordered_root
from devnet.evm.engine import BlockContext, Engine
from devnet.evm.state_root import StateRoot
from devnet.evm.transition import apply
from devnet.evm.world import World
from devnet.txpool.pool import Pool


@dataclass
class MiningMode:
    """When blocks are made: with each submission (`automine`), every `interval` seconds (0: never), or on order only."""

    automine: bool = True
    interval: float = 0.0


class Miner:
    """The only one who extends the chain."""

    def __init__(self, world: World, engine: Engine, pool: Pool, chain: Chain, clock: Clock) -> None:
        self._world = world
        self._engine = engine
        self._pool = pool
        self._chain = chain
        self._clock = clock
        self._state_root = StateRoot(world)
        self._built = 0
        self.coinbase = bytes(20)
        self.mode = MiningMode()
        self.next_base_fee: int | None = None
        self.on_block: Callable[[Block], None] = lambda _block: None

    def genesis(self, timestamp: int, base_fee: int) -> None:
        """Seal the world as it is into block 0."""
        self._world.seal(0)
        context = BlockContext(
            number=0,
            timestamp=timestamp,
            coinbase=self.coinbase,
            prevrandao=bytes(32),
            gas_limit=self._pool.rules.gas_limit,
            base_fee=base_fee,
            chain_id=self._pool.rules.chain_id,
            block_hash=self._chain.block_hash,
        )
        self._chain.append(self._assemble(context, bytes(32), []))

    def next_context(self) -> BlockContext:
        """The block that would be made now."""
        parent = self._chain.head.header
        base_fee = parent.next_base_fee() if self.next_base_fee is None else self.next_base_fee
        return BlockContext(
            number=parent.number + 1,
            timestamp=self._clock.preview(parent.timestamp),
            coinbase=self.coinbase,
            prevrandao=keccak(parent.hash + self._built.to_bytes(8, "big")),
            gas_limit=self._pool.rules.gas_limit,
            base_fee=base_fee,
            chain_id=self._pool.rules.chain_id,
            block_hash=self._chain.block_hash,
        )

    def mine(self, *, allow_empty: bool = True, use_pool: bool = True) -> Block | None:
        """Make one block of what the pool holds. None if it would be empty and may not be."""
        context = self.next_context()
        receipts = self.fill(context) if use_pool else []
        if not receipts and not allow_empty:
            return None
        parent = self._chain.head
        self._clock.tick(parent.header.timestamp)
        self.next_base_fee = None
        self._built += 1
        self._world.seal(context.number)
        block = self._assemble(context, parent.hash, receipts)
        self._chain.append(block)
        self._pool.settle(block.transactions)
        self.on_block(block)
        return block

    def mine_all(self) -> None:
        """Make blocks until no transaction of the pool can be included now."""
        while self._pool.by_hash and self.mine(allow_empty=False):
            pass

    def preview(self) -> Block:
        """The block that `mine` would make now, with the head's state root; nothing is changed."""
        mark = self._world.snapshot()
        context = self.next_context()
        receipts = self.fill(context)
        self._world.revert(mark)
        return self._assemble(context, self._chain.head.hash, receipts)

    def fill(self, context: BlockContext) -> list[Receipt]:
        """Apply transactions of the pool until the block is full; the caller seals or reverts the world."""
        mark = self._world.snapshot()
        try:
            return self._fill(context)
        except BaseException:  # a defect of the engine: leave no half-applied transaction behind
            self._world.revert(mark)
            raise

    def _fill(self, context: BlockContext) -> list[Receipt]:
        base_fee = context.base_fee
        best = [(-entry.tx.tip(base_fee), entry.arrival, entry) for entry in self._pool.executable()]
        heapq.heapify(best)
        receipts: list[Receipt] = []
        gas_used = 0
        while best:
            _, _, entry = heapq.heappop(best)
            if not self._includable(entry.tx, context, gas_used):
                continue
            receipt = self._apply(entry.tx, context, receipts)
            receipts.append(receipt)
            gas_used = receipt.cumulative_gas
            following = self._pool.after(entry)
            if following is not None:
                heapq.heappush(best, (-following.tx.tip(base_fee), following.arrival, following))
        return receipts

    def _includable(self, tx: Transaction, context: BlockContext, gas_used: int) -> bool:
        return (
            tx.max_fee >= context.base_fee
            and gas_used + tx.gas <= context.gas_limit
            and self._world.balance(tx.sender) >= tx.cost
        )

    def _apply(self, tx: Transaction, context: BlockContext, before: list[Receipt]) -> Receipt:
        outcome = apply(self._world, self._engine, context, tx)
        last = before[-1] if before else None
        return Receipt(
            tx=tx,
            index=len(before),
            succeeded=outcome.succeeded,
            gas_used=outcome.gas_used,
            cumulative_gas=outcome.gas_used + (last.cumulative_gas if last else 0),
            price=outcome.price,
            logs=outcome.logs,
            first_log=last.first_log + len(last.logs) if last else 0,
            bloom=bloom(outcome.logs),
            created=outcome.created,
        )

    def _assemble(self, context: BlockContext, parent_hash: bytes, receipts: list[Receipt]) -> Block:
        header = Header(
            number=context.number,
            parent_hash=parent_hash,
            coinbase=context.coinbase,
            state_root=self._state_root.compute(),
            transactions_root=ordered_root(receipt.tx.raw for receipt in receipts),
            receipts_root=ordered_root(receipt.encode() for receipt in receipts),
            logs_bloom=bloom(log for receipt in receipts for log in receipt.logs),
            gas_limit=context.gas_limit,
            gas_used=receipts[-1].cumulative_gas if receipts else 0,
            timestamp=context.timestamp,
            prevrandao=context.prevrandao,
            base_fee=context.base_fee,
        )
        return Block(header, tuple(receipts))
