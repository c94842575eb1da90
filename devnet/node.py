"""One devnet: world, pool, chain, miner, clock and ledger put together, and the acts that touch several of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from devnet.accounts import Account
from devnet.chain import Chain
from devnet.clock import Clock, Timer
from devnet.codec.blocks import Block
from devnet.codec.keccak import keccak
from devnet.codec.sidecar import PROOFS_OF_BLOBS, with_cell_proofs
from devnet.codec.transaction import Transaction, decode
from devnet.errors import INVALID_PARAMS, SERVER_ERROR, DecodeError, Rejected, RpcError
from devnet.evm.engine import Engine
from devnet.evm.lazy_engine import LazyEngine
from devnet.evm.world import Change, Column, World
from devnet.faults.rulebook import Rulebook
from devnet.feed import Arrival, Feed, Notice
from devnet.first_block import make_first_block
from devnet.impersonation import Impersonation
from devnet.ledger import Event, Ledger
from devnet.miner import Miner, MiningMode
from devnet.orders import Orders
from devnet.plan import Timeline
from devnet.settings import Settings
from devnet.snapshots import Snapshot, Snapshots, capture, restore_rest
from devnet.subscription import Subscription
from devnet.txpool.admission import PoolRules
from devnet.txpool.pool import Pool
from devnet.txpool.profiles import Profile
from devnet.views import View, Views


@dataclass(frozen=True, slots=True)
class Restart:
    """What a server has yet to do of a restart: close the connections, and be away for so many seconds."""

    drop_connections: bool
    downtime: float


class Node:
    """A whole devnet without its server. One thread at a time.

    While it is `collecting`, automine makes no block: `collected` tells that one is due.
    """

    def __init__(self, settings: Settings, engine: Engine | None = None) -> None:
        self.settings = settings
        self.accounts: list[Account] = settings.wallet.accounts(settings.accounts)
        self.keys = {account.address: account.key for account in self.accounts}
        self.impersonation = Impersonation()
        self.known_from = 0
        self.world = World()
        self.engine = engine or LazyEngine(compiles=settings.compiles)
        self.pool = Pool(
            self.world, PoolRules(settings.profile, settings.chain_id, settings.gas_limit, settings.limits_gas)
        )
        self.chain = Chain(slots_in_an_epoch=settings.slots_in_an_epoch)
        self.clock = Clock(manual=settings.manual_clock)
        self.ledger = Ledger()
        self.feed = Feed(self.clock)
        self.subscriptions: dict[str, Subscription] = {}
        self.miner = Miner(
            self.world,
            self.engine,
            self.pool,
            self.chain,
            self.clock,
            settings.schedule,
            state_root=settings.state_root,
        )
        self.miner.orders = Orders(order=settings.order, limit=settings.max_transactions)
        self.snapshots = Snapshots()
        self.faults = Rulebook()
        self.views = Views()
        self.view: View | None = None
        self.timeline = Timeline()
        self.restart: Restart | None = None
        self.lives = 1
        self.collecting = False
        self.collected = False
        self.feed.listen(self.views.hear, early=True)
        self.feed.listen(self.timeline.hear)
        make_first_block(settings, self.accounts, self.world, self.clock, self.miner)
        self._follow_fork()
        self._start = capture(self)
        self.pool.on_leave = self.note
        self.pool.on_promote = lambda tx: self.feed.append(Arrival(tx))
        self.pool.rules.base_fee = lambda: self.miner.next_context().base_fee
        self.pool.rules.now = self.clock.elapsed
        self.miner.on_block = self._note_block
        self._tried: object = None
        self._at_intervals: Timer | None = None
        self.set_mode(automine=settings.automine, interval=settings.interval)

    @property
    def profile(self) -> Profile:
        """The client whose pool rules and words hold now."""
        return self.pool.rules.profile

    def _follow_fork(self) -> None:
        """Have the pool judge by the rules of the next block."""
        head = self.chain.head.header
        timestamp = self.clock.preview(head.timestamp)
        self.pool.rules.fork = self.settings.schedule.at(head.number + 1, timestamp, self.chain.total_difficulty)

    def note(self, tx: Transaction, kind: str, by: Transaction | None = None, at: Block | None = None) -> None:
        """Tell the ledger what became of a transaction (kinds: `ledger.Event`), in a block or else at the head."""
        head = at or self.chain.head
        seen = len(self.ledger.submissions)
        self.ledger.note(tx.hash, Event(kind, head.number, head.hash, by.hash if by else None, seen))

    def _note_block(self, block: Block) -> None:
        self._follow_fork()
        for tx in block.transactions:
            self.note(tx, "mined")
        self.feed.append(Notice("block", block))

    def submit(self, raw: bytes) -> Transaction:
        """What eth_sendRawTransaction does, ledger included. Raises RpcError with the profile's words."""
        try:
            tx = decode(raw)
            if self.pool.rules.fork.cell_proofs and tx.sidecar is not None and tx.sidecar.version == PROOFS_OF_BLOBS:
                tx = replace(tx, sidecar=with_cell_proofs(tx.sidecar))
        except DecodeError as problem:
            error = self.profile.error(Rejected("undecodable" if raw else "empty", text=str(problem)))
            self.ledger.record(raw, keccak(raw), None, "rejected", error)
            raise error from None
        return self.submit_decoded(tx, raw)

    def submit_decoded(self, tx: Transaction, raw: bytes | None = None) -> Transaction:
        """As `submit`, for a transaction of the devnet's own making, an impersonated one above all.

        `raw` is what it came as, where that is not `tx.wire`.
        """
        raw = tx.wire if raw is None else raw
        try:
            executable = self.take_in(tx)
        except Rejected as problem:
            error = self.profile.error(problem)
            self.ledger.record(raw, tx.hash, tx, "rejected", error)
            raise error from None
        self.ledger.record(raw, tx.hash, tx, "pending" if executable else "queued")
        if self.view is not None:
            self.view.outbox.append(tx)
        elif self.miner.mode.automine and executable:
            if self.collecting:
                self.collected = True
            else:
                self.miner.mine_all()
        return tx

    def take_in(self, tx: Transaction) -> bool:
        """Put a transaction into the pool and tell who follows; True if it is executable. Raises Rejected."""
        if self.settings.genesis is not None:  # its forks may begin as time passes
            self._follow_fork()
        following = self.pool.next_nonce(tx.sender)
        executable = self.pool.add(tx)
        if executable:
            self.feed.append(Arrival(tx))
            self._announce_promoted(tx.sender, max(following, tx.nonce + 1))
        return executable

    def _announce_promoted(self, sender: bytes, first: int) -> None:
        """Tell of the transactions from this nonce on that became executable because a gap before them was filled."""
        lane = self.pool.lanes[sender]
        for nonce in range(first, lane.end):
            self.feed.append(Arrival(lane.entries[nonce].tx))

    def set_mode(self, *, automine: bool, interval: float) -> None:
        """Change when blocks are made; switching automine on mines what waits. The first interval begins now."""
        self.miner.mode = MiningMode(automine, interval)
        if self._at_intervals is not None:
            self._at_intervals.cancel()
        self._at_intervals = self.clock.call_every(interval, self._mine_on_time) if interval else None
        if automine:
            self.miner.mine_all()

    def mine_ready(self) -> None:
        """With automine, make blocks of what the last call made executable, by whatever means: a reorg, money, a nonce,
        a lower base fee. Nothing that can be included waits for ever.
        """
        if not self.pool.by_hash or not self.miner.mode.automine or self.view is not None or self.collected:
            return
        if self._circumstances() != self._tried:
            self.miner.mine_all()
            self._tried = self._circumstances()

    def _circumstances(self) -> object:
        """Whatever decides on what can be included; equal while nothing of it changes."""
        miner, rules = self.miner, self.pool.rules
        held_at = self.clock.preview(self.chain.head.header.timestamp) if miner.orders.held else None
        block = (self.chain.head.hash, held_at, miner.next_base_fee, rules.gas_limit, miner.orders.copy())
        return self.pool.version, self.world.layers[-1], block

    def _mine_on_time(self) -> None:
        if not self.miner.orders.paused:
            self.miner.mine()

    def amend(self, column: Column, key: bytes | int, value: object) -> None:
        """Write state by hand on top of the head; the next block's root shows it, and rolling the head back undoes it."""
        self.world.write(column, key, value)
        self.world.seal(self.chain.head.number)

    def rollback(self, depth: int) -> list[Transaction]:
        """Take blocks off the head. Their transactions go back to the pool where the profile's client does that.

        Returns them oldest first. Raises RpcError where the chain is not that long.
        """
        head = self.chain.head.number
        if depth > head:
            raise RpcError(INVALID_PARAMS, f"cannot roll back {depth} blocks: the chain has {head} above genesis")
        self.check_known(head - depth)
        orphans = self.unwind(head - depth)
        if self.profile.requeues_orphans:
            self.pool.readmit(orphans)
        else:
            for tx in orphans:
                self.note(tx, "lost")
            self.pool.resync_all()
        return orphans

    def unwind(self, number: int) -> list[Transaction]:
        """Take blocks off until this one is the head; returns their transactions, oldest first, which go nowhere."""
        while self.world.layers[-1].block > number:
            self.world.unseal()
        removed: list[Block] = []
        while self.chain.head.number > number:
            removed.append(self.chain.pop())
        self._follow_fork()
        for block in reversed(removed):  # geth tells of removed logs oldest first (core/blockchain.go, reorg)
            self.feed.append(Notice("orphan", block))
        orphans: list[Transaction] = []
        for block in reversed(removed):
            orphans += block.transactions
            for tx in block.transactions:
                self.note(tx, "orphaned", at=block)
        return orphans

    def snapshot(self) -> int:
        """Remember chain, state, pool and time; returns the id for `revert`."""
        return self.snapshots.take(self)

    def revert(self, number: int) -> bool:
        """Come back to a snapshot; it and later ones are used up. False for an unknown one or if the way is cut off."""
        snapshot = self.snapshots.find(number, self.world)
        if snapshot is None:
            return False
        self._return_to(snapshot)
        self.snapshots.use_up(number)
        return True

    def reset(self) -> None:
        """Go back to genesis: blocks, state, pool, fees and time as at the start. Open snapshots are used up.

        Fault rules, nodes and a plan stay: they are the tester's.
        """
        now = capture(self)
        self._return_to(replace(self._start, faults=now.faults, views=now.views, timeline=now.timeline))
        for view in self.views.nodes:
            view.backlog.clear()
        self.snapshots.open.clear()
        self.known_from = 0

    def adopt(
        self, blocks: Sequence[Block], layers: Sequence[tuple[int, Sequence[Change]]], *, known_from: int
    ) -> None:
        """Be the chain of these blocks, from genesis on, in place of one's own.

        `layers` are the writes (column, key, new value) of each undo layer, with its block; the state at blocks before
        `known_from` is not in them.
        """
        self.reset()
        while self.world.layers:
            self.world.unseal()
        self.chain.pop()
        for number, writes in layers:
            for column, key, value in writes:
                self.world.write(column, key, value)
            self.world.seal(number)
        self._start = replace(self._start, layer=self.world.layers[0])
        self.known_from = known_from
        for block in blocks:
            self.chain.append(block)
            if block.number:
                self.feed.append(Notice("block", block))
        self._follow_fork()

    def check_known(self, number: int) -> None:
        """Raise geth's error where the state after this block is not known, which it is but for loaded chains."""
        if number < self.known_from:
            root = self.chain.blocks[number].header.state_root
            raise RpcError(SERVER_ERROR, f"historical state {root.hex()} is not available")

    def _return_to(self, snapshot: Snapshot) -> None:
        while len(self.world.layers) > snapshot.depth:
            self.world.unseal()
        orphans = self.unwind(snapshot.head)
        self.pool.restore(snapshot.pool)
        for tx in orphans:
            if tx.hash not in self.pool.by_hash:
                self.note(tx, "reverted")
        restore_rest(self, snapshot)

    def set_chain_id(self, chain_id: int) -> None:
        """Be another chain from now on; what waits in the pool stays, signed for the former one."""
        self.settings = replace(self.settings, chain_id=chain_id)
        self.pool.rules.chain_id = chain_id
