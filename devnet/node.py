"""One devnet: world, pool, chain, miner, clock and ledger put together, and the acts that touch several of them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from devnet.accounts import Account, development_accounts
from devnet.chain import Chain
from devnet.clock import Clock
from devnet.codec.blocks import Block
from devnet.codec.keccak import keccak
from devnet.codec.transaction import Transaction, decode
from devnet.errors import DecodeError, Rejected, RpcError
from devnet.evm.engine import Engine
from devnet.evm.lazy_engine import LazyEngine
from devnet.evm.world import Column, Layer, World
from devnet.feed import Arrival, Feed, Notice
from devnet.ledger import Event, Ledger
from devnet.miner import Miner, MiningMode
from devnet.txpool.lane import Pooled
from devnet.txpool.pool import Pool, PoolRules
from devnet.txpool.profiles import ETHER, GETH, Profile

GWEI = 10**9
# The deterministic deployment proxy that every development chain carries (EIP-1014 deployments by tools).
CREATE2_DEPLOYER = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
CREATE2_DEPLOYER_CODE = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0"
    "3601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a devnet starts with. `balance` and `base_fee` in wei, `timestamp` in seconds (None: now)."""

    chain_id: int = 31337
    accounts: int = 10
    balance: int = 10_000 * ETHER
    gas_limit: int = 30_000_000
    base_fee: int = GWEI
    timestamp: int | None = None
    automine: bool = True
    interval: float = 0.0
    profile: Profile = GETH


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state to come back to. `layer` is the newest undo layer then: if it is gone, so is the way back."""

    depth: int
    layer: Layer
    head: int
    pool: list[Pooled]
    offset: int
    next_exact: int | None
    next_base_fee: int | None


@dataclass
class Snapshots:
    """Open snapshots by id; ids count on and are never used twice."""

    open: dict[int, Snapshot] = field(default_factory=dict)
    next_id: int = 0


class Node:
    """A whole devnet without its server. One thread at a time."""

    def __init__(self, settings: Settings, engine: Engine | None = None) -> None:
        self.settings = settings
        self.accounts: list[Account] = development_accounts(settings.accounts)
        self.keys = {account.address: account.key for account in self.accounts}
        self.world = World()
        self.engine = engine or LazyEngine()
        self.pool = Pool(self.world, PoolRules(settings.profile, settings.chain_id, settings.gas_limit))
        self.chain = Chain()
        self.clock = Clock()
        self.ledger = Ledger()
        self.feed = Feed()
        self.followers: dict[str, object] = {}
        self.miner = Miner(self.world, self.engine, self.pool, self.chain, self.clock)
        self.miner.mode = MiningMode(settings.automine, settings.interval)
        self.snapshots = Snapshots()
        self.on_mode_change: Callable[[], None] = lambda: None
        self._genesis()
        self.pool.on_leave = self._note
        self.miner.on_block = self._note_block

    def _genesis(self) -> None:
        world, settings = self.world, self.settings
        for account in self.accounts:
            world.write(world.balances, account.address, settings.balance)
        world.write(world.codes, CREATE2_DEPLOYER, CREATE2_DEPLOYER_CODE)
        if settings.timestamp is not None:
            self.clock.start_at(settings.timestamp)
        self.miner.genesis(self.clock.now(), settings.base_fee)
        self.miner.next_base_fee = settings.base_fee  # the first block has it too, as on anvil

    def _note(self, tx: Transaction, kind: str, by: Transaction | None = None) -> None:
        head = self.chain.head
        self.ledger.note(tx.hash, Event(kind, head.number, head.hash, by.hash if by else None))

    def _note_block(self, block: Block) -> None:
        for tx in block.transactions:
            self._note(tx, "mined")
        self.feed.append(Notice("block", block))

    def submit(self, raw: bytes) -> Transaction:
        """What eth_sendRawTransaction does, ledger included. Raises RpcError with the profile's words."""
        tx = None
        try:
            tx = decode(raw)
            executable = self.pool.add(tx)
        except (DecodeError, Rejected) as problem:
            rejected = problem if isinstance(problem, Rejected) else Rejected("undecodable", text=str(problem))
            error = self.settings.profile.error(rejected)
            self.ledger.record(raw, tx.hash if tx else keccak(raw), tx, "rejected", error)
            raise error from None
        self.ledger.record(raw, tx.hash, tx, "pending" if executable else "queued")
        if executable:
            self.feed.append(Arrival(tx))
        if self.miner.mode.automine and executable:
            self.miner.mine_all()
        return tx

    def set_mode(self, *, automine: bool, interval: float) -> None:
        """Change when blocks are made; switching automine on mines what waits."""
        self.miner.mode = MiningMode(automine, interval)
        if automine:
            self.miner.mine_all()
        self.on_mode_change()

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
            raise RpcError(-32602, f"cannot roll back {depth} blocks: the chain has {head} above genesis")
        orphans = self._unwind(head - depth)
        if self.settings.profile.requeue_orphans:
            self.pool.readmit(orphans)
        else:
            self.pool.resync_all()
        return orphans

    def _unwind(self, number: int) -> list[Transaction]:
        while self.world.layers[-1].block > number:
            self.world.unseal()
        removed: list[Block] = []
        while self.chain.head.number > number:
            removed.append(self.chain.pop())
            self.feed.append(Notice("orphan", removed[-1]))
        orphans = [tx for block in reversed(removed) for tx in block.transactions]
        for tx in orphans:
            self._note(tx, "orphaned")
        return orphans

    def snapshot(self) -> int:
        """Remember chain, state, pool and time; returns the id for `revert`."""
        number = self.snapshots.next_id
        self.snapshots.next_id += 1
        self.snapshots.open[number] = Snapshot(
            depth=len(self.world.layers),
            layer=self.world.layers[-1],
            head=self.chain.head.number,
            pool=self.pool.contents(),
            offset=self.clock.offset,
            next_exact=self.clock.next_exact,
            next_base_fee=self.miner.next_base_fee,
        )
        return number

    def revert(self, number: int) -> bool:
        """Come back to a snapshot; it and later ones are used up. False for an unknown one or if the way is cut off."""
        snapshot = self.snapshots.open.get(number)
        layers = self.world.layers
        if snapshot is None or len(layers) < snapshot.depth or layers[snapshot.depth - 1] is not snapshot.layer:
            return False
        while len(layers) > snapshot.depth:
            self.world.unseal()
        orphans = self._unwind(snapshot.head)
        self.pool.restore(snapshot.pool)
        for tx in orphans:
            if tx.hash not in self.pool.by_hash:
                self._note(tx, "reverted")
        self.clock.offset, self.clock.next_exact = snapshot.offset, snapshot.next_exact
        self.miner.next_base_fee = snapshot.next_base_fee
        self.snapshots.open = {key: value for key, value in self.snapshots.open.items() if key < number}
        return True
