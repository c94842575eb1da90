"""The transaction pool: who may enter, which nonces are executable, what may replace what, what goes when it is full.

Nothing that entered leaves without a trace: a transaction goes by being mined, replaced, overtaken by its nonce, dropped
on order, pushed out by a better-paying one, evicted by a limit or expired, and each of these is told to `on_leave`. One
that cannot be paid for or included now simply waits.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from devnet.codec.authorization import delegation
from devnet.codec.transaction import BLOB, Transaction
from devnet.encoding import checksum
from devnet.errors import Rejected
from devnet.evm.world import World
from devnet.txpool.admission import PoolRules, check_alone, check_request
from devnet.txpool.lane import Lane, Pooled
from devnet.txpool.price_order import PriceOrder, slots

MAX_BLOB_TRANSACTIONS: Final = 16  # of one sender (geth: maxTxsPerAccount)
NEVER: Final = float("inf")
Leave = Callable[[Transaction, str, Transaction | None], None]


class Pool:
    """Waiting transactions by sender and nonce, judged by the rules of one client profile.

    `version` changes with every change of the contents. `on_promote` hears of what became executable otherwise than by `add`.
    """

    def __init__(self, world: World, rules: PoolRules) -> None:
        self._world = world
        self.rules = rules
        self.by_hash: dict[bytes, Pooled] = {}
        self.lanes: dict[bytes, Lane] = {}
        self.version = 0
        self._arrivals = 0
        self._executable = 0
        self._slots = 0
        self._authorities: dict[bytes, int] = {}
        self._expiry = NEVER
        self._prices: PriceOrder | None = None
        self.on_leave: Leave = lambda _tx, _why, _by: None
        self.on_promote: Callable[[Transaction], None] = lambda _tx: None

    # -- coming in --

    def add(self, tx: Transaction) -> bool:
        """Take a transaction in; True if it is executable, False if it waits behind a nonce gap. Raises Rejected."""
        self.expire()
        try:
            check_request(self.rules, tx)
            if tx.hash in self.by_hash:
                raise Rejected("already_known")
            check_alone(self.rules, tx)
            old = self._check_state(tx)
            if self.rules.limits.total is not None:
                self._make_room(tx, self.rules.limits.total)
            if old is not None and old.tx.hash not in self.by_hash:
                old = None  # it was the cheapest
            if old is not None and tx.type != BLOB:
                self._check_replacement(tx, old.tx)
        except Rejected as refusal:
            refusal.facts = self._facts(tx, refusal.reason) | refusal.facts
            raise
        lane = self._enter(tx, old)
        self._trim(lane)
        return tx.nonce < lane.end and tx.hash in self.by_hash

    def _facts(self, tx: Transaction, reason: str) -> dict[str, object]:
        """What the texts of refusals may tell."""
        facts: dict[str, object] = {"type": tx.type, "nonce": tx.nonce, "gas": tx.gas}
        facts |= {"fee": tx.max_fee, "tip": tx.max_priority_fee, "cost": tx.cost}
        if reason != "invalid_signature":
            sender = tx.sender
            lane = self.lanes.get(sender)
            facts |= {"sender": checksum(sender), "next": self._world.nonce(sender), "gap": self.next_nonce(sender)}
            facts |= {"balance": self._world.balance(sender), "total": tx.cost + (lane.cost if lane else 0)}
        if reason == "fee_below_base":
            facts["base_fee"] = self.rules.base_fee()
        if reason == "blob_fee_too_low":
            facts["fee"] = tx.max_fee_per_blob_gas
        return facts

    def _check_state(self, tx: Transaction) -> Pooled | None:
        """What depends on the sender's account and waiting transactions, in geth's order; returns what tx would replace."""
        profile, world, sender, nonce = self.rules.profile, self._world, tx.sender, tx.nonce
        following = world.nonce(sender)
        code = world.code(sender)
        if code and profile.needs_eoa and tx.given_sender is None and delegation(code) is None:
            raise Rejected("sender_not_eoa", size=len(code))
        if nonce < following:
            raise Rejected("nonce_too_low")
        lane = self.lanes.get(sender)
        blob = tx.type == BLOB
        foreign = lane is not None and profile.separates_blobs and blob != lane.holds_blobs
        end = following if lane is None or (blob and foreign) else lane.end
        if nonce > end:
            if profile.gaps == "refuse" or blob:
                raise Rejected("nonce_too_high", gap=end)
            if profile.max_gap is not None and nonce - following > profile.max_gap:
                raise Rejected("nonce_too_far")
        if profile.below_base_fee == "refuse" and tx.max_fee < self.rules.base_fee():
            raise Rejected("fee_below_base")
        old = None if lane is None else lane.entries.get(nonce)
        self._check_funds(tx, lane, old)
        if old is None and lane is not None:
            self._check_share(tx, lane)
        if profile.restrains_delegated and tx.given_sender is None:
            self._check_delegation(tx, lane, end, delegated=bool(code))
        if foreign:
            raise Rejected("reserved")
        if old is not None and blob:
            self._check_replacement(tx, old.tx)
        return old

    def _check_funds(self, tx: Transaction, lane: Lane | None, old: Pooled | None) -> None:
        """Funds for the transaction and, with some clients, for all the sender has pending."""
        balance, cost = self._world.balance(tx.sender), tx.cost
        if balance < cost:
            raise Rejected("insufficient_funds", overshot=cost - balance)
        if lane is None or not self.rules.profile.counts_pooled:
            return
        queued = lane.cost
        if old is not None and tx.nonce < lane.end:
            bump = cost - old.tx.cost
            if balance < queued + bump:
                overshot = queued + bump - balance
                raise Rejected("insufficient_funds_bumped", queued=queued, bump=bump, overshot=overshot)
        elif balance < queued + cost:
            raise Rejected("insufficient_funds_queued", queued=queued, overshot=queued + cost - balance)

    def _check_share(self, tx: Transaction, lane: Lane) -> None:
        """Whether the sender may have one more."""
        most = self.rules.limits.sender
        if tx.type == BLOB and (most is None or most > MAX_BLOB_TRANSACTIONS):
            most = MAX_BLOB_TRANSACTIONS
        if most is not None and len(lane.entries) >= most:
            raise Rejected("account_limit", used=len(lane.entries))

    def _check_delegation(self, tx: Transaction, lane: Lane | None, end: int, *, delegated: bool) -> None:
        """One transaction at a time where others may spend the sender's nonce or funds (geth: validateAuth)."""
        if delegated or tx.sender in self._authorities:
            if lane is None or not lane.executable:
                if tx.nonce != end:
                    raise Rejected("delegated_gap")
            elif not lane.start <= tx.nonce < lane.end:
                raise Rejected("delegated_in_flight")
        for authorization in tx.authorizations:
            authority = authorization.authority
            other = None if authority is None else self.lanes.get(authority)
            if other is not None and (len(other.entries) > 1 or other.holds_blobs):
                raise Rejected("authority_reserved")

    def _check_replacement(self, tx: Transaction, old: Transaction) -> None:
        profile = self.rules.profile
        if not profile.replaces:
            raise Rejected("replacement_underpriced")
        if tx.type != BLOB or not profile.separates_blobs:
            if not self._outbids(tx, old):
                raise Rejected("replacement_underpriced")
            return
        prices = (
            ("gas fee cap", tx.max_fee, old.max_fee),
            ("gas tip cap", tx.max_priority_fee, old.max_priority_fee),
            ("blob gas fee cap", tx.max_fee_per_blob_gas, old.max_fee_per_blob_gas),
        )
        for what, new, former in prices:
            if new <= former:
                raise Rejected("blob_replacement_underpriced", what=what, new=new, relation=f"<= {former} queued")
        for what, new, former in prices:
            if new < profile.bumped(former, blob=True):
                relation = f"< {former} queued + {profile.blob_price_bump}% replacement penalty"
                raise Rejected("blob_replacement_underpriced", what=what, new=new, relation=relation)

    def _outbids(self, tx: Transaction, old: Transaction) -> bool:
        """Whether it pays enough more to take the other's nonce."""
        profile, blob = self.rules.profile, tx.type == BLOB
        if tx.max_fee < profile.bumped(old.max_fee, blob=blob):
            return False
        return not profile.bumps_tip or tx.max_priority_fee >= profile.bumped(old.max_priority_fee, blob=blob)

    def _make_room(self, tx: Transaction, total: int) -> None:
        """Push out the cheapest where the pool is full; a newcomer that pays no more than they do is refused."""
        excess = self._slots + slots(tx) - total
        if excess <= 0 or tx.type == BLOB:
            return
        base_fee = self.rules.base_fee()
        prices = self._prices
        if prices is None or prices.base_fee != base_fee:
            prices = PriceOrder(self.by_hash.values(), self.by_hash, base_fee)
            self._prices = prices
        if prices.underpriced(tx):
            raise Rejected("underpriced")
        victims = prices.take_cheapest(excess)
        if victims is None:
            raise Rejected("pool_full")
        if tx.nonce > self.next_nonce(tx.sender) and any(self._is_executable(victim) for victim in victims):
            prices.put_back(victims)
            raise Rejected("future_replaces_pending")
        for victim in victims:
            self._forget(victim)
            self.on_leave(victim.tx, "evicted: underpriced", tx)

    def _is_executable(self, entry: Pooled) -> bool:
        return entry.tx.nonce < self.lanes[entry.tx.sender].end

    def _enter(self, tx: Transaction, replaced: Pooled | None = None) -> Lane:
        if replaced is not None:
            self._unlist(replaced.tx)
            self.on_leave(replaced.tx, "replaced", tx)
        self._arrivals += 1
        self.version += 1
        entry = Pooled(tx, self._arrivals)
        sender = tx.sender
        lane = self.lanes.get(sender)
        if lane is None:
            lane = self.lanes[sender] = Lane(self._world.nonce(sender))
        queued = lane.queued
        self._executable -= lane.executable
        lane.put(entry)
        self._executable += lane.executable
        self.by_hash[tx.hash] = entry
        self._slots += slots(tx)
        for authorization in tx.authorizations:
            authority = authorization.authority
            if authority is not None:
                self._authorities[authority] = self._authorities.get(authority, 0) + 1
        if self._prices is not None:
            self._prices.put(entry)
        if lane.queued and (not queued or tx.nonce < lane.end):
            self._touch(lane)
        return lane

    def _touch(self, lane: Lane) -> None:
        """Begin the lifetime of its queued transactions anew."""
        lifetime = self.rules.limits.lifetime
        lane.touched = self.rules.now()
        if lifetime is not None:
            self._expiry = min(self._expiry, lane.touched + lifetime)

    # -- going out --

    def _forget(self, entry: Pooled) -> None:
        """Take one out of the books; the caller tells why."""
        tx = entry.tx
        lane = self.lanes[tx.sender]
        queued = lane.queued
        self._executable -= lane.executable
        lane.remove(tx.nonce)
        self._executable += lane.executable
        self._unlist(tx)
        if not lane.entries:
            del self.lanes[tx.sender]
        elif lane.queued and not queued:
            self._touch(lane)

    def _unlist(self, tx: Transaction) -> None:
        self.version += 1
        del self.by_hash[tx.hash]
        self._slots -= slots(tx)
        for authorization in tx.authorizations:
            authority = authorization.authority
            if authority is not None:
                self._authorities[authority] -= 1
                if not self._authorities[authority]:
                    del self._authorities[authority]

    def _evict(self, entry: Pooled, why: str) -> None:
        self._forget(entry)
        self.on_leave(entry.tx, why, None)

    def _trim(self, lane: Lane) -> None:
        """Evict what a newcomer brought over the limits (geth: Cap, truncatePending, truncateQueue)."""
        limits = self.rules.limits
        if limits.sender_queued is not None:
            while lane.queued > limits.sender_queued:
                self._evict(lane.entries[max(lane.entries)], "evicted: sender_queued")
        if limits.executable is not None and self._executable > limits.executable:
            self._trim_executable(limits.executable, limits.sender_executable or 0)
        if limits.queued is not None and len(self.by_hash) - self._executable > limits.queued:
            self._trim_queued(limits.queued)

    def _trim_executable(self, most: int, guaranteed: int) -> None:
        while self._executable > most:
            longest = max(self.lanes.values(), key=lambda lane: lane.executable)
            if longest.executable <= guaranteed:
                return
            self._evict(longest.entries[longest.end - 1], "evicted: executable")

    def _trim_queued(self, most: int) -> None:
        excess = len(self.by_hash) - self._executable - most
        for lane in sorted((lane for lane in self.lanes.values() if lane.queued), key=lambda lane: lane.touched):
            for nonce in sorted(lane.entries, reverse=True)[: min(lane.queued, excess)]:
                self._evict(lane.entries[nonce], "evicted: queued")
                excess -= 1

    def expire(self) -> None:
        """Evict queued transactions of senders that nothing moved at for the profile's lifetime.

        This is looked at when a transaction comes, a block is made, or the pool is looked into.
        """
        if self._expiry == NEVER:
            return
        now, lifetime = self.rules.now(), self.rules.limits.lifetime
        if now <= self._expiry:
            return
        self._expiry = NEVER
        if lifetime is None:
            return
        for lane in list(self.lanes.values()):
            if not lane.queued:
                continue
            if lane.touched + lifetime < now:
                for nonce in sorted(lane.entries, reverse=True)[: lane.queued]:
                    self._evict(lane.entries[nonce], "expired")
            else:
                self._expiry = min(self._expiry, lane.touched + lifetime)

    def fit(self) -> None:
        """Evict at once what is over the rules' limits: after these were changed."""
        limits = self.rules.limits
        self._expiry = -1.0
        self.expire()
        if limits.sender is not None:
            for lane in list(self.lanes.values()):
                for nonce in sorted(lane.entries)[limits.sender :][::-1]:
                    self._evict(lane.entries[nonce], "evicted: sender")
        for lane in list(self.lanes.values()):
            self._trim(lane)
        if limits.total is not None and self._slots > limits.total:
            prices = PriceOrder(self.by_hash.values(), self.by_hash, self.rules.base_fee())
            for entry in prices.take_cheapest(self._slots - limits.total) or ():
                self._evict(entry, "evicted: total")

    def drop(self, tx_hash: bytes) -> bool:
        """Forget one transaction on order. False if it is not here.

        Later nonces of its sender stay, queued, or go with it where the profile's client does that.
        """
        entry = self.by_hash.get(tx_hash)
        if entry is None:
            return False
        lane = self.lanes[entry.tx.sender]
        gone = [entry]
        if self.rules.profile.drops_followers:
            gone += [lane.entries[nonce] for nonce in sorted(lane.entries) if nonce > entry.tx.nonce]
        for each in reversed(gone):
            self._evict(each, "dropped")
        return True

    def evict(self, tx_hash: bytes, why: str) -> bool:
        """Forget one transaction as if by this node's own decision, which nobody tells its sender. False if it is not here."""
        entry = self.by_hash.get(tx_hash)
        if entry is None:
            return False
        self._evict(entry, why)
        return True

    # -- what is here --

    def next_nonce(self, sender: bytes) -> int:
        """The nonce after the sender's last contiguous pooled transaction: the `pending` transaction count."""
        lane = self.lanes.get(sender)
        return self._world.nonce(sender) if lane is None else lane.end

    def executable(self) -> Iterator[Pooled]:
        """The first executable transaction of every sender."""
        self.expire()
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
        self.expire()
        return self._executable, len(self.by_hash) - self._executable

    def contents(self) -> list[Pooled]:
        """Everything here, in order of arrival."""
        self.expire()
        return sorted(self.by_hash.values(), key=lambda entry: entry.arrival)

    # -- following the chain --

    def settle(self, mined: list[Transaction]) -> None:
        """Take out what a block has included, and what its nonces have overtaken."""
        self._prices = None
        odd: set[bytes] = set()
        for tx in mined:
            lane = self.lanes.get(tx.sender)
            if lane is None:
                continue
            if tx.hash in self.by_hash and lane.start == tx.nonce:
                self._unlist(tx)
                self._executable -= 1
                lane.take_first()
                if not lane.entries:
                    del self.lanes[tx.sender]
            else:
                odd.add(tx.sender)
        # Others' nonces moved too where an authorization was applied or a delegated account made a contract.
        nonces = self._world.nonces
        for column, key, _ in self._world.layers[-1].changes:
            if column is nonces and key in self.lanes and self.lanes[key].start != self._world.nonce(key):
                odd.add(key)
        if odd:
            self.resync(*sorted(odd))

    def resync(self, *senders: bytes) -> None:
        """Bring senders' lanes in step with their accounts after nonces moved in an unusual way."""
        known = self._executable_hashes(senders)
        for sender in senders:
            self._restart(sender)
        self._tell_promoted(senders, known)

    def _executable_hashes(self, senders: Iterable[bytes]) -> set[bytes]:
        return {entry.tx.hash for sender in senders for entry in self._run(sender)}

    def _run(self, sender: bytes) -> list[Pooled]:
        """A sender's executable transactions."""
        lane = self.lanes.get(sender)
        return [] if lane is None else [lane.entries[nonce] for nonce in range(lane.start, lane.end)]

    def _tell_promoted(self, senders: Iterable[bytes], known: set[bytes]) -> None:
        for sender in senders:
            for entry in self._run(sender):
                if entry.tx.hash not in known:
                    self.on_promote(entry.tx)

    def _restart(self, sender: bytes) -> None:
        lane = self.lanes.get(sender)
        if lane is None:
            return
        self.version += 1
        queued = lane.queued
        self._executable -= lane.executable
        overtaken = lane.restart(self._world.nonce(sender))
        self._executable += lane.executable
        if not lane.entries:
            del self.lanes[sender]
        elif lane.queued and not queued:
            self._touch(lane)
        for entry in overtaken:
            self._unlist(entry.tx)
            self.on_leave(entry.tx, "overtaken", None)

    def resync_all(self) -> None:
        """`resync` for every sender: after a rollback."""
        self._prices = None
        self.resync(*self.lanes)

    def readmit(self, txs: list[Transaction]) -> None:
        """Take back transactions of blocks that are no longer part of the chain, without judging them again.

        Where another took a nonce meanwhile, the orphan must outbid it as any replacement must.
        """
        senders = list(dict.fromkeys((*self.lanes, *(tx.sender for tx in txs))))
        known = self._executable_hashes(senders)
        for tx in txs:
            lane = self.lanes.get(tx.sender)
            rival = None if lane is None else lane.entries.get(tx.nonce)
            if rival is not None and not self._outbids(tx, rival.tx):
                self.on_leave(tx, "replaced", rival.tx)
                continue
            self._enter(tx, rival)
        self._prices = None
        for sender in senders:
            self._restart(sender)
        self._tell_promoted(senders, known)

    def restore(self, contents: list[Pooled]) -> None:
        """Hold exactly these again, with their arrival order: reverting to a snapshot."""
        former = list(self.by_hash.values())
        self.by_hash.clear()
        self.lanes.clear()
        self._authorities.clear()
        self._executable = self._slots = 0
        arrivals = self._arrivals
        for entry in contents:
            self._arrivals = entry.arrival - 1
            self._enter(entry.tx)
        self._arrivals = arrivals
        for entry in former:
            if entry.tx.hash not in self.by_hash:
                self.on_leave(entry.tx, "reverted", None)
        self.resync_all()
