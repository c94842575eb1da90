"""The transaction pool: who may enter, which nonces are executable, what may replace what.

Nothing that entered leaves without a trace: a transaction goes by being mined, replaced, overtaken by its nonce or
dropped on order, and each of these is told to `on_leave`. One that cannot be paid for or included now simply waits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from devnet.codec.transaction import LEGACY, Transaction
from devnet.errors import Rejected
from devnet.evm.gas import MAX_INITCODE, floor_gas, intrinsic_gas
from devnet.evm.world import World
from devnet.txpool.lane import Lane, Pooled
from devnet.txpool.profiles import ETHER, Profile

MAX_NONCE = 2**64 - 1
Leave = Callable[[Transaction, str, Transaction | None], None]


@dataclass(slots=True)
class PoolRules:
    """What admission depends on besides the state: the client profile, the chain and its blocks' gas limit."""

    profile: Profile
    chain_id: int
    gas_limit: int


class Pool:
    """Waiting transactions by sender and nonce, judged by the rules of one client profile."""

    def __init__(self, world: World, rules: PoolRules) -> None:
        self._world = world
        self.rules = rules
        self.by_hash: dict[bytes, Pooled] = {}
        self.lanes: dict[bytes, Lane] = {}
        self._arrivals = 0
        self.on_leave: Leave = lambda _tx, _why, _by: None

    def add(self, tx: Transaction) -> bool:
        """Take a transaction in; True if it is executable, False if it waits behind a nonce gap. Raises Rejected."""
        self._check_api(tx)
        if tx.hash in self.by_hash:
            raise Rejected("already_known")
        self._check_alone(tx)
        self._check_state(tx)
        sender = tx.sender
        lane = self.lanes.get(sender)
        if lane is None:
            lane = self.lanes[sender] = Lane(self._world.nonce(sender))
        old = lane.entries.get(tx.nonce)
        if old is not None:
            profile = self.rules.profile
            fees_up = tx.max_fee >= profile.bumped(old.tx.max_fee)
            tips_up = tx.max_priority_fee >= profile.bumped(old.tx.max_priority_fee)
            if not (fees_up and tips_up):
                raise Rejected("replacement_underpriced")
            del self.by_hash[old.tx.hash]
            self.on_leave(old.tx, "replaced", tx)
        self._enter(lane, tx)
        return tx.nonce < lane.end

    def _enter(self, lane: Lane, tx: Transaction) -> None:
        self._arrivals += 1
        entry = Pooled(tx, self._arrivals)
        self.by_hash[tx.hash] = entry
        lane.put(entry)

    def _check_api(self, tx: Transaction) -> None:
        """What geth's RPC layer checks before the pool sees the transaction."""
        cap = self.rules.profile.fee_cap
        fee = tx.gas * tx.max_fee
        if cap and fee > cap:
            raise Rejected("fee_cap", fee=fee / ETHER, cap=cap / ETHER)
        if tx.type == LEGACY and tx.chain_id is None:
            raise Rejected("unprotected")

    def _check_alone(self, tx: Transaction) -> None:
        """What can be judged without the sender's account (geth: ValidateTransaction, in its order)."""
        rules, profile = self.rules, self.rules.profile
        if len(tx.raw) > profile.max_size:
            raise Rejected("oversized", size=len(tx.raw), limit=profile.max_size)
        if tx.to is None and len(tx.data) > MAX_INITCODE:
            raise Rejected("initcode", size=len(tx.data), limit=MAX_INITCODE)
        if tx.gas > rules.gas_limit:
            raise Rejected("block_gas_limit")
        if tx.max_priority_fee > tx.max_fee:
            raise Rejected("tip_above_fee_cap")
        if tx.chain_id != rules.chain_id:
            raise Rejected("wrong_chain", have=tx.chain_id, want=rules.chain_id)
        assert tx.sender, "a bad signature raises"
        if tx.nonce >= MAX_NONCE:
            raise Rejected("nonce_max")
        needed = intrinsic_gas(tx.data, tx.access_list, creation=tx.to is None)
        if tx.gas < needed:
            raise Rejected("intrinsic_gas", gas=tx.gas, needed=needed)
        floor = floor_gas(tx.data)
        if tx.gas < floor:
            raise Rejected("floor_gas", gas=tx.gas, needed=floor)
        if tx.max_priority_fee < profile.min_tip:
            raise Rejected("tip_too_low", tip=tx.max_priority_fee, needed=profile.min_tip)

    def _check_state(self, tx: Transaction) -> None:
        """Nonce and funds; funds count what the sender has pending (geth: ValidateTransactionWithState)."""
        following = self._world.nonce(tx.sender)
        if tx.nonce < following:
            raise Rejected("nonce_too_low", next=following, nonce=tx.nonce)
        balance, cost = self._world.balance(tx.sender), tx.cost
        if balance < cost:
            raise Rejected("insufficient_funds", balance=balance, cost=cost, overshot=cost - balance)
        lane = self.lanes.get(tx.sender)
        if lane is None:
            return
        previous = lane.entries.get(tx.nonce) if tx.nonce < lane.end else None
        facts = {"balance": balance, "queued": lane.cost}
        if previous is not None:
            bump = cost - previous.tx.cost
            if balance < lane.cost + bump:
                raise Rejected("insufficient_funds_bumped", **facts, bump=bump, overshot=lane.cost + bump - balance)
        elif balance < lane.cost + cost:
            raise Rejected("insufficient_funds_queued", **facts, cost=cost, overshot=lane.cost + cost - balance)

    def next_nonce(self, sender: bytes) -> int:
        """The nonce after the sender's last contiguous pooled transaction: the `pending` transaction count."""
        lane = self.lanes.get(sender)
        return self._world.nonce(sender) if lane is None else lane.end

    def executable(self) -> Iterator[Pooled]:
        """The first executable transaction of every sender."""
        for lane in self.lanes.values():
            entry = lane.entries.get(lane.start)
            if entry is not None:
                yield entry

    def after(self, entry: Pooled) -> Pooled | None:
        """The same sender's next transaction without a gap."""
        lane = self.lanes.get(entry.tx.sender)
        return None if lane is None else lane.entries.get(entry.tx.nonce + 1)

    def counts(self) -> tuple[int, int]:
        """How many are executable and how many wait behind a gap."""
        pending = sum(lane.end - lane.start for lane in self.lanes.values())
        return pending, len(self.by_hash) - pending

    def settle(self, mined: list[Transaction]) -> None:
        """Take out what a block has included, and what its nonces have overtaken."""
        odd: set[bytes] = set()
        for tx in mined:
            lane = self.lanes.get(tx.sender)
            if lane is None:
                continue
            if tx.hash in self.by_hash and lane.start == tx.nonce:
                del self.by_hash[tx.hash]
                lane.take_first()
                if not lane.entries:
                    del self.lanes[tx.sender]
            else:
                odd.add(tx.sender)
        for sender in odd:
            self.resync(sender)

    def resync(self, sender: bytes) -> None:
        """Bring a sender's lane in step with its account after the nonce moved in an unusual way."""
        lane = self.lanes.get(sender)
        if lane is None:
            return
        for entry in lane.restart(self._world.nonce(sender)):
            del self.by_hash[entry.tx.hash]
            self.on_leave(entry.tx, "overtaken", None)
        if not lane.entries:
            del self.lanes[sender]

    def resync_all(self) -> None:
        """`resync` for every sender: after a rollback."""
        for sender in list(self.lanes):
            self.resync(sender)

    def readmit(self, txs: list[Transaction]) -> None:
        """Take back transactions of blocks that are no longer part of the chain, without judging them again."""
        for tx in txs:
            sender = tx.sender
            lane = self.lanes.setdefault(sender, Lane(self._world.nonce(sender)))
            rival = lane.entries.get(tx.nonce)
            if rival is None:
                self._enter(lane, tx)
            else:
                self.on_leave(tx, "replaced", rival.tx)
        self.resync_all()

    def drop(self, tx_hash: bytes) -> bool:
        """Forget one transaction on order; later nonces of its sender stay, queued. False if it is not here."""
        entry = self.by_hash.pop(tx_hash, None)
        if entry is None:
            return False
        sender = entry.tx.sender
        del self.lanes[sender].entries[entry.tx.nonce]
        self.on_leave(entry.tx, "dropped", None)
        self.resync(sender)
        return True

    def contents(self) -> list[Pooled]:
        """Everything here, in order of arrival."""
        return sorted(self.by_hash.values(), key=lambda entry: entry.arrival)

    def restore(self, contents: list[Pooled]) -> None:
        """Hold exactly these again, with their arrival order: reverting to a snapshot."""
        former = list(self.by_hash.values())
        self.by_hash.clear()
        self.lanes.clear()
        for entry in contents:
            sender = entry.tx.sender
            self.by_hash[entry.tx.hash] = entry
            self.lanes.setdefault(sender, Lane(self._world.nonce(sender))).put(entry)
        for entry in former:
            if entry.tx.hash not in self.by_hash:
                self.on_leave(entry.tx, "reverted", None)
        self.resync_all()
