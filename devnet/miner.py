"""Makes blocks: chooses transactions by tip, then arrival; applies them; seals the state and appends the block."""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from devnet.chain import Chain
from devnet.clock import Clock
from devnet.codec.authorization import delegation
from devnet.codec.blocks import ELASTICITY, ZERO_HASH, Block, Header, Receipt, united
from devnet.codec.keccak import keccak
from devnet.codec.transaction import BLOB, LEGACY, Transaction
from devnet.codec.trie import EMPTY_ROOT, ordered_root
from devnet.evm.blob_gas import blob_base_fee, max_blob_gas, next_excess
from devnet.evm.engine import BlockContext, Engine
from devnet.evm.forks import Schedule
from devnet.evm.proof_of_work import difficulty, pay_rewards
from devnet.evm.state_root import NoStateRoot, StateRoot
from devnet.evm.system_contracts import DEPOSIT_CONTRACT, Requests, begin_block, end_block
from devnet.evm.transition import apply, receipt_of
from devnet.evm.world import World
from devnet.genesis import Genesis
from devnet.orders import Orders
from devnet.txpool.pool import Pool

_HEADER_BYTES = 2048
_PREFIX_BYTES = 5


@dataclass
class MiningMode:
    """When blocks are made: with each submission (`automine`), every `interval` seconds (0: never), or on order only."""

    automine: bool = True
    interval: float = 0.0


class _Room:
    """What is left in a block: gas, blob gas, and bytes where the fork limits them (some are kept for the header)."""

    def __init__(self, context: BlockContext, *, limits_gas: bool) -> None:
        fork = context.fork
        self._types = fork.transaction_types
        self._gas = context.gas_limit if limits_gas else math.inf
        self._blob_gas = max_blob_gas(fork)
        self._bytes = math.inf if fork.block_size_limit is None else fork.block_size_limit - _HEADER_BYTES

    def holds(self, tx: Transaction) -> bool:
        """Whether a transaction still fits, and is of a type the fork knows."""
        return (
            tx.gas <= self._gas
            and tx.blob_gas <= self._blob_gas
            and len(tx.raw) + _PREFIX_BYTES <= self._bytes
            and tx.type in self._types
        )

    def take(self, receipt: Receipt) -> None:
        """Count an included transaction."""
        self._gas -= receipt.gas_used
        self._blob_gas -= receipt.tx.blob_gas
        self._bytes -= len(receipt.tx.raw) + _PREFIX_BYTES


class Miner:
    """The only one who extends the chain."""

    def __init__(
        self,
        world: World,
        engine: Engine,
        pool: Pool,
        chain: Chain,
        clock: Clock,
        schedule: Schedule,
        *,
        state_root: bool = True,
    ) -> None:
        self._world = world
        self._engine = engine
        self._pool = pool
        self._chain = chain
        self._clock = clock
        self.schedule = schedule
        self.deposit_contract = DEPOSIT_CONTRACT
        self._state_root = StateRoot(world) if state_root else NoStateRoot(world)
        self._built = 0
        self.coinbase = bytes(20)
        self.mode = MiningMode()
        self.orders = Orders()
        self.next_base_fee: int | None = None
        self.next_prevrandao: bytes | None = None
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
            fork=self.schedule.at(0, timestamp),
        )
        self._chain.append(self.assemble(context, bytes(32), [], Requests()))

    def genesis_of(self, genesis: Genesis) -> None:
        """Seal the world as it is into the block 0 of a given genesis."""
        self._world.seal(0)
        self._chain.append(Block(genesis.header(self._state_root.compute()), ()))

    def next_context(self) -> BlockContext:
        """The block that would be made now."""
        parent = self._chain.head.header
        base_fee = self.base_fee_on(parent)
        timestamp = self._clock.preview(parent.timestamp)
        fork = self.schedule.at(parent.number + 1, timestamp, self._chain.total_difficulty)
        excess = next_excess(fork, parent)
        # With the first base fee the limit becomes twice the target, which is the limit so far (EIP-1559).
        first_with_base_fee = fork.has_base_fee and not parent.has_base_fee
        return BlockContext(
            number=parent.number + 1,
            timestamp=timestamp,
            coinbase=self.coinbase,
            prevrandao=self.next_prevrandao or keccak(parent.hash + self._built.to_bytes(8, "big")),
            gas_limit=parent.gas_limit * ELASTICITY if first_with_base_fee else self._pool.rules.gas_limit,
            base_fee=base_fee if fork.has_base_fee else 0,
            chain_id=self._pool.rules.chain_id,
            block_hash=self._chain.block_hash,
            fork=fork,
            blob_base_fee=blob_base_fee(fork, excess),
            excess_blob_gas=excess,
            difficulty=difficulty(fork, parent, timestamp) if parent.difficulty else 0,
        )

    def base_fee_on(self, parent: Header, ahead: int = 0) -> int:
        """The base fee (wei per gas) of a block on this parent, `ahead` blocks after the next one: ordered, or EIP-1559's."""
        if ahead < len(self.orders.base_fees):
            return self.orders.base_fees[ahead]
        if self.next_base_fee is not None and not ahead:
            return self.next_base_fee
        return parent.next_base_fee()

    def context_of(self, header: Header) -> BlockContext:
        """The block as its transactions saw it, for running them or a call again."""
        fork = self.schedule.at(header.number, header.timestamp, 0 if header.difficulty else None)
        excess = header.excess_blob_gas or 0
        return BlockContext(
            number=header.number,
            timestamp=header.timestamp,
            coinbase=header.coinbase,
            prevrandao=header.prevrandao,
            gas_limit=header.gas_limit,
            base_fee=header.base_fee,
            chain_id=self._pool.rules.chain_id,
            block_hash=self._chain.block_hash,
            fork=fork,
            blob_base_fee=blob_base_fee(fork, excess),
            excess_blob_gas=excess,
            difficulty=header.difficulty,
        )

    def mine(
        self, *, allow_empty: bool = True, use_pool: bool = True, chosen: Sequence[Transaction] = ()
    ) -> Block | None:
        """Make one block of the `chosen` transactions or else of what the pool holds. None if empty and not to be."""
        context = self.next_context()
        mark = self._world.snapshot()
        receipts = self.fill(context, chosen, use_pool=use_pool)
        if not receipts and not allow_empty:
            self._world.revert(mark)
            return None
        requests = self.finish(context, receipts)
        parent = self._chain.head
        self._clock.tick(parent.header.timestamp)
        self.next_base_fee = None
        self.next_prevrandao = None
        self.orders.block_made(context.number, context.timestamp)
        self._built += 1
        self._world.seal(context.number)
        block = self.assemble(context, parent.hash, receipts, requests)
        self.append(block)
        return block

    def append(self, block: Block) -> None:
        """Make a block the head; the changes of state it makes are sealed."""
        if block.header.has_base_fee and not self._chain.head.header.has_base_fee:
            self._pool.rules.gas_limit = block.header.gas_limit
        self._chain.append(block)
        self._pool.settle(block.transactions)
        self.on_block(block)

    def mine_all(self) -> None:
        """Make blocks until no transaction of the pool can be included now; none at all while mining is paused.

        Blocks that are ordered to be empty come before the one they keep waiting.
        """
        if self.orders.paused:
            return
        while self._pool.by_hash:
            if self.orders.empty and not self._has_work():
                return
            if self.mine(allow_empty=self.orders.empty > 0) is None:
                return

    def _has_work(self) -> bool:
        """Whether the next block could hold something that waits, were it not ordered to be empty."""
        context = self.next_context()
        room = _Room(context, limits_gas=self._pool.rules.limits_gas)
        return any(self._includable(entry.tx, context, room) for entry in self._pool.executable())

    @contextmanager
    def standing_in(self, pool: Pool, base_fee: int | None) -> Iterator[None]:
        """Speak for another node for a while: with its pool, and this base fee (wei) of its next block where known."""
        kept = self._pool, self.orders, self.next_base_fee
        self._pool, self.orders, self.next_base_fee = pool, Orders(held=self.orders.held), base_fee
        try:
            yield
        finally:
            self._pool, self.orders, self.next_base_fee = kept

    def preview(self) -> Block:
        """The block that `mine` would make now, with the head's state root; nothing is changed."""
        mark = self._world.snapshot()
        context = self.next_context()
        receipts = self.fill(context)
        requests = self.finish(context, receipts)
        self._world.revert(mark)
        self._world.note_changes()  # the head may be that of a node behind: the state is rewound to it then
        return self.assemble(context, self._chain.head.hash, receipts, requests)

    def fill(
        self, context: BlockContext, chosen: Sequence[Transaction] = (), *, use_pool: bool = True
    ) -> list[Receipt]:
        """Begin a block and apply the chosen transactions, else the pool's until it is full.

        The caller seals or reverts the world.
        """
        mark = self._world.snapshot()
        try:
            begin_block(self._world, self._engine, context, self._chain.head.hash, ZERO_HASH)
            if chosen:
                return self._fill_with(context, chosen)
            return self._fill(context) if use_pool else []
        except BaseException:  # a defect of the engine: leave no half-applied transaction behind
            self._world.revert(mark)
            raise

    def _fill(self, context: BlockContext) -> list[Receipt]:
        base_fee = context.base_fee
        room = self.orders.room()
        fifo = self.orders.order == "fifo"
        best = [(0 if fifo else -entry.tx.tip(base_fee), entry.arrival, entry) for entry in self._pool.executable()]
        heapq.heapify(best)
        receipts: list[Receipt] = []
        room_left = _Room(context, limits_gas=self._pool.rules.limits_gas)
        while best and (room is None or len(receipts) < room):
            _, _, entry = heapq.heappop(best)
            if not self._includable(entry.tx, context, room_left):
                continue
            receipt = self.include(entry.tx, context, receipts)
            receipts.append(receipt)
            room_left.take(receipt)
            following = self._pool.after(entry)
            if following is not None:
                rank = 0 if fifo else -following.tx.tip(base_fee)
                heapq.heappush(best, (rank, following.arrival, following))
        return receipts

    def _fill_with(self, context: BlockContext, chosen: Sequence[Transaction]) -> list[Receipt]:
        """Apply these in this order, leaving out what cannot be included here (nonce, fees, gas, funds)."""
        receipts: list[Receipt] = []
        room = _Room(context, limits_gas=self._pool.rules.limits_gas)
        for tx in chosen:
            if self._includable(tx, context, room):
                receipts.append(self.include(tx, context, receipts))
                room.take(receipts[-1])
        return receipts

    def _includable(self, tx: Transaction, context: BlockContext, room: _Room) -> bool:
        return (
            tx.max_fee >= context.base_fee
            and room.holds(tx)
            and (context.fork.has_replay_protection or tx.type != LEGACY or tx.chain_id is None)
            and (tx.type != BLOB or tx.max_fee_per_blob_gas >= context.blob_base_fee)
            and self._world.balance(tx.sender) >= tx.cost
            and self._world.nonce(tx.sender) == tx.nonce
            and self._may_send(tx)
            and not self.orders.holds(tx, context.number, context.timestamp)
        )

    def _may_send(self, tx: Transaction) -> bool:
        """No contract sends, but for one that was impersonated, or where the profile's client allows it (EIP-3607)."""
        code = self._world.code(tx.sender)
        if not code or tx.given_sender is not None or not self._pool.rules.profile.needs_eoa:
            return True
        return delegation(code) is not None

    def finish(self, context: BlockContext, receipts: Sequence[Receipt], uncles: Sequence[Header] = ()) -> Requests:
        """What follows a block's last transaction. The caller seals or reverts the world."""
        requests = end_block(self._world, self._engine, context, receipts, self.deposit_contract)
        if context.difficulty:
            pay_rewards(self._world, context.fork, context.number, context.coinbase, uncles)
        return requests

    def include(self, tx: Transaction, context: BlockContext, before: Sequence[Receipt]) -> Receipt:
        """Apply a transaction that may follow these of its block; its receipt."""
        outcome = apply(self._world, self._engine, context, tx)
        root = None if context.fork.receipts_have_status else self._intermediate_root()
        return receipt_of(tx, outcome, context, before, root)

    def _intermediate_root(self) -> bytes:
        self._world.note_changes()
        return self._state_root.compute()

    @property
    def state_root(self) -> StateRoot:
        """The tries of the world, for proofs."""
        return self._state_root

    def assemble(self, context: BlockContext, parent_hash: bytes, receipts: list[Receipt], requests: Requests) -> Block:
        """The block of these receipts on the world as it is sealed now; nothing is appended."""
        fork = context.fork
        header = Header(
            number=context.number,
            parent_hash=parent_hash,
            coinbase=context.coinbase,
            state_root=self._state_root.compute(),
            transactions_root=ordered_root(receipt.tx.raw for receipt in receipts),
            receipts_root=ordered_root(receipt.encode() for receipt in receipts),
            logs_bloom=united([receipt.bloom for receipt in receipts]),
            gas_limit=context.gas_limit,
            gas_used=receipts[-1].cumulative_gas if receipts else 0,
            timestamp=context.timestamp,
            prevrandao=context.prevrandao,
            base_fee=context.base_fee,
            has_base_fee=fork.has_base_fee,
            difficulty=context.difficulty,
            withdrawals_root=EMPTY_ROOT if fork.has_withdrawals else None,
            blob_gas_used=sum(receipt.tx.blob_gas for receipt in receipts) if fork.blobs else None,
            excess_blob_gas=context.excess_blob_gas if fork.blobs else None,
            parent_beacon_root=ZERO_HASH if fork.has_beacon_root else None,
            requests_hash=requests.hash if fork.has_requests else None,
        )
        return Block(header, tuple(receipts))
