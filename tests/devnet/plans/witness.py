"""What must be true of a node after each act of a plan, told from outside: from what was asked and answered, and from first
principles. The node's own books are only ever compared with that.
"""

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from devnet.codec.blocks import Block, bloom
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import encode, integer
from devnet.codec.transaction import BLOB, Transaction, decode
from devnet.codec.trie import Trie, ordered_root
from devnet.errors import RpcError
from devnet.evm.engine import BlockContext
from devnet.evm.world import World
from devnet.feed import Notice
from devnet.node import Node
from devnet.orders import Orders
from tests.devnet.plans.acts import Act, Answered, Run, look
from tests.devnet.plans.transactions import COUNTING, SENDERS, WALLETS
from tests.devnet.wallet import ETHER, GWEI

FIRST_BASE_FEE = GWEI
ALL_LOGS = {"fromBlock": "0x0", "toBlock": "latest"}
FILTER_SECONDS = 300.0
# Why a transaction that was accepted is nowhere any more. What follows a colon says more.
REASONS = {"replaced", "overtaken", "dropped", "evicted", "expired", "underpriced", "lost", "reverted", "unpropagated"}
BY_HAND = {"anvil_setBalance", "anvil_setNonce", "anvil_setCode", "anvil_setStorageAt"}
State = dict[str, tuple[int, int, int]]


def root_from_scratch(world: World) -> bytes:
    """The state root of the whole world as it is, by the yellow paper and without what was known before (appendix D)."""
    accounts = Trie()
    for address in {*world.balances, *world.nonces, *world.codes, *world.storages}:
        if world.is_empty(address):
            continue
        slots = world.storages.get(address) or {}
        storage = Trie(
            (keccak(slot.to_bytes(32, "big")), encode(integer(value))) for slot, value in slots.items() if value
        )
        fields = integer(world.nonce(address)), integer(world.balance(address)), storage.root()
        accounts.put(keccak(address), encode((*fields, keccak(world.code(address)))))
    return accounts.root()


def is_held(orders: Orders, tx: Transaction, number: int, timestamp: int) -> bool:
    """Whether a transaction or its sender is ordered to stay out of a block of that height and time."""
    holds = [orders.held[key] for key in (tx.hash, tx.sender) if key in orders.held]
    return any(number <= hold.last if hold.until is None else timestamp < hold.until for hold in holds)


def digest(node: Node) -> dict[str, Any]:
    """Everything a snapshot is to bring back."""
    miner, clock = node.miner, node.clock
    return {
        "world": root_from_scratch(node.world).hex(),
        "head": node.chain.head.hash.hex(),
        "pool": [(entry.arrival, entry.tx.hash.hex()) for entry in node.pool.contents()],
        "next": (miner.next_base_fee, tuple(miner.orders.base_fees), miner.next_prevrandao),
        "orders": repr(miner.orders),
        "clock": (clock.now(), clock.next_exact, clock.block_interval, clock.skew),
        "filters": {
            name: [
                (event.kind, event.block.hash.hex()) if isinstance(event, Notice) else event.tx.hash.hex()
                for event in unread
            ]
            for name, (_, unread) in node.feed.save().items()
        },
        "faults": (list(node.faults.rules), deepcopy(node.faults.tallies)),
    }


@dataclass
class Follower:
    """A client with three filters, and what it believes by what they told it."""

    blocks: str
    logs: str
    arrivals: str
    read_at: float
    seen_blocks: set[str]
    seen_logs: set[tuple[str, str]]
    seen_arrivals: set[str]


@dataclass
class Remembered:
    """What stood when a snapshot was taken."""

    head: int
    written: list[tuple[int, int]]
    path: list[int]
    once: int | None
    follower: Follower
    digest: dict[str, Any]


@dataclass
class Before:
    """How things stood when an act began."""

    chain: list[bytes]
    blocks: list[list[bytes]]
    nonces: dict[bytes, int]
    balances: dict[bytes, int]
    pool: dict[tuple[bytes, int], Transaction]
    calls: int
    rows: int
    log: int
    fee: int
    profile: str
    orders: Orders
    next: BlockContext
    digest: dict[str, Any] | None


@dataclass
class Witness:
    """Follows a run. `written` are the changes by hand still in force: height of the head then, and wei minted."""

    run: Run
    written: list[tuple[int, int]] = field(default_factory=list)
    path: list[int] = field(default_factory=list)
    once: int | None = FIRST_BASE_FEE
    snapshots: dict[int, Remembered] = field(default_factory=dict)
    states: dict[bytes, State] = field(default_factory=dict)
    accepted: dict[bytes, int] = field(default_factory=dict)
    checked: set[bytes] = field(default_factory=set)
    nonce_lowered: bool = False
    limits_changed: bool = False
    steps: int = 0
    follower: Follower = field(init=False)
    before: Before = field(init=False)

    def __post_init__(self) -> None:
        self.written = [(0, 0)]  # the contracts of the plan
        self.follower = self._follow()
        self._remember_state()

    @property
    def node(self) -> Node:
        return self.run.node

    # -- an act --

    def begin(self, act: Act) -> None:
        """Note how things stand."""
        node = self.node
        self.before = Before(
            chain=[block.hash for block in node.chain.blocks],
            blocks=[[tx.hash for tx in block.transactions] for block in node.chain.blocks],
            nonces={sender: node.world.nonce(sender) for sender in SENDERS},
            balances={sender: node.world.balance(sender) for sender in SENDERS},
            pool={(tx.sender, tx.nonce): tx for tx in self.run.waiting()},
            calls=len(self.run.calls),
            rows=len(node.ledger.submissions),
            log=len(node.faults.log),
            fee=self._next_base_fee(),
            profile=node.profile.name,
            orders=node.miner.orders.copy(),
            next=node.miner.next_context(),
            digest=digest(node) if act[0] == "read" else None,
        )

    def end(self, act: Act) -> None:
        """Judge what came of it."""
        self.steps += 1
        calls = self.run.calls[self.before.calls :]
        reverted: Remembered | None = None
        for call in calls:
            reverted = self._take_order(call) or reverted
        kept = self._follow_chain(act)
        self._check_reply(act, calls)
        self._check_ledger(calls)
        self._check_pool()
        self._check_world(act, kept)
        self._check_chain()
        self._check_whereabouts()
        self._check_automine()
        if reverted is not None and not self.node.miner.mode.automine:
            now = digest(self.node)
            now["filters"] = {name: now["filters"].get(name) for name in reverted.digest["filters"]}
            assert now == reverted.digest, "a revert brings back what the snapshot held"
        if self.before.digest is not None:
            now = digest(self.node) | {"faults": self.before.digest["faults"]}  # which count what they see
            assert now == self.before.digest, "reading changes nothing"
            assert self.node.miner.next_context() == self.before.next, "nor what comes next"
        if self.steps % 3 == 0:
            self._check_follower()
        self._remember_state()
        self._check_history()

    def finish(self) -> None:
        """Judge what is dear to judge, once at the end."""
        assert self.node.miner.state_root.compute() == root_from_scratch(self.node.world)
        self._check_follower()
        findings = look(self.node, "devnet_invariants")["violations"]
        assert not [item for item in findings if item["kind"] == "vanished"]
        for height in range(len(self.node.chain.blocks)):
            self._check_state_at(height)

    # -- what was ordered --

    def _take_order(self, call: Answered) -> Remembered | None:
        """Keep the witness's own account of orders; what a snapshot held, if this call came back to it."""
        if not isinstance(call.request, dict):
            return None
        method, params = call.request["method"], call.request["params"]
        result = call.answer.get("result") if isinstance(call.answer, dict) else None
        failed = not isinstance(call.answer, dict) or "error" in call.answer
        if method in BY_HAND and not failed:
            minted = 0
            address = bytes.fromhex(params[0][2:])
            if method == "anvil_setBalance":
                minted = int(params[1], 16) - self.before.balances[address]
            if method == "anvil_setNonce" and int(params[1], 16) < self.before.nonces[address]:
                self.nonce_lowered = True
            self.written.append((len(self.before.chain) - 1, minted))
            self.states.pop(self.before.chain[-1], None)
        elif method == "devnet_baseFee" and not failed:
            self.path = [int(fee, 16) for fee in result]
        elif method == "anvil_setNextBlockBaseFeePerGas":
            self.once = int(params[0], 16)
        elif method == "devnet_poolLimits":
            self.limits_changed = True
        elif method == "evm_snapshot":
            self.snapshots[int(result, 16)] = Remembered(
                len(self.before.chain) - 1,
                list(self.written),
                list(self.path),
                self.once,
                self._follower_now(),
                digest(self.node),
            )
        elif method == "devnet_reorg" and not failed:
            self._check_reorg(params[0]["depth"], result)
        elif method == "anvil_reorg" and not failed:
            base = len(self.before.chain) - 1 - params[0]
            for given, index in params[1]:
                block = self.node.chain.blocks[base + 1 + index]
                if isinstance(given, str):
                    assert decode(bytes.fromhex(given[2:])).raw in {tx.raw for tx in block.transactions}
                else:
                    assert given["from"] in {"0x" + tx.sender.hex() for tx in block.transactions}
        elif method == "evm_revert":
            return self._take_revert(int(params[0], 16), result)
        elif method == "anvil_reset" and not failed:
            self._take_reset(path=[])
        elif method == "devnet_restart" and not failed:
            self.follower.read_at = float("-inf")
            if not params[0]["keepChain"]:
                self._take_reset(path=self.path)
        return None

    def _follower_now(self) -> Follower:
        """A copy of the follower, for a snapshot; one whose filters are forgotten by now stays so."""
        follower = deepcopy(self.follower)
        if self.node.clock.elapsed() - follower.read_at >= FILTER_SECONDS:
            follower.read_at = float("-inf")
        return follower

    def _take_revert(self, number: int, result: bool) -> Remembered | None:
        remembered = self.snapshots.get(number)
        assert result is (remembered is not None), "a snapshot holds until it is used up or the way to it is cut off"
        if remembered is None:
            return None
        self.written, self.path, self.once = list(remembered.written), list(remembered.path), remembered.once
        self.follower = deepcopy(remembered.follower)
        if self.follower.read_at > float("-inf"):
            self.follower.read_at = self.node.clock.elapsed()
        self.snapshots = {key: value for key, value in self.snapshots.items() if key < number}
        self.states.pop(self.before.chain[remembered.head], None)  # automine may make a block on it at once
        return remembered

    def _check_reorg(self, depth: int, told: dict[str, list[str]]) -> None:
        """What it says became of the orphans became of them, unless automine has gone on with them at once."""
        node = self.node
        chain = {"0x" + tx_hash.hex() for tx_hash in node.chain.included}
        pool = {"0x" + tx_hash.hex() for tx_hash in node.pool.by_hash}
        orphans = {"0x" + tx_hash.hex() for block in self.before.blocks[-depth:] for tx_hash in block}
        assert {*told["included"], *told["requeued"], *told["lost"]} == orphans
        assert set(told["included"]) <= chain
        if self.nonce_lowered or node.miner.mode.automine:
            return
        assert set(told["requeued"]) <= pool
        assert not set(told["lost"]) & (chain | pool)
        assert not set(told["refused"]) & chain

    def _take_reset(self, path: list[int]) -> None:
        self.written, self.path, self.once = [], list(path), FIRST_BASE_FEE
        self.snapshots.clear()

    # -- the chain --

    def _next_base_fee(self) -> int:
        if self.path:
            return self.path[0]
        return self._usual_base_fee(self.node.chain.head) if self.once is None else self.once

    @staticmethod
    def _usual_base_fee(parent: Block) -> int:
        """By EIP-1559, with its constants."""
        header = parent.header
        target = header.gas_limit // 2
        if header.gas_used == target:
            return header.base_fee
        delta = header.base_fee * abs(header.gas_used - target) // target // 8
        return header.base_fee + max(delta, 1) if header.gas_used > target else header.base_fee - delta

    def _follow_chain(self, act: Act) -> int:
        """Judge every new block, oldest first; the height up to which the former chain still stands."""
        chain, former = self.node.chain.blocks, self.before.chain
        kept = -1
        for block, old in zip(chain, former, strict=False):
            if block.hash != old:
                break
            kept = block.number
        assert kept >= 0, "genesis stays"
        if kept < len(former) - 1:
            self.written = [each for each in self.written if each[0] <= kept]
            self.snapshots = {key: value for key, value in self.snapshots.items() if value.head <= kept}
        for block in chain[kept + 1 :]:
            self._check_block(block, chain[block.number - 1], act, kept)
        return kept

    def _check_block(self, block: Block, parent: Block, act: Act, kept: int) -> None:
        header, receipts = block.header, block.receipts
        assert block.number == parent.number + 1
        assert header.parent_hash == parent.hash
        assert header.timestamp >= parent.header.timestamp
        expected = self.path.pop(0) if self.path else self._usual_base_fee(parent) if self.once is None else self.once
        self.once = None
        assert header.base_fee == expected, "the base fee is the scripted one or EIP-1559's"
        assert header.gas_used <= header.gas_limit
        assert header.transactions_root == ordered_root(receipt.tx.raw for receipt in receipts)
        assert header.receipts_root == ordered_root(receipt.encode() for receipt in receipts)
        assert header.logs_bloom == bloom(log for receipt in receipts for log in receipt.logs)
        gas = logs = 0
        for index, receipt in enumerate(receipts):
            tx = receipt.tx
            gas += receipt.gas_used
            assert (receipt.index, receipt.cumulative_gas, receipt.first_log) == (index, gas, logs)
            logs += len(receipt.logs)
            assert receipt.gas_used <= tx.gas
            assert tx.max_fee >= header.base_fee
            assert receipt.price == min(tx.max_fee, header.base_fee + tx.max_priority_fee)
            assert decode(tx.raw).hash == tx.hash == keccak(tx.raw)
            if act[0] not in {"hold", "revert", "restart", "reset", "time"}:
                assert not is_held(self.before.orders, tx, block.number, header.timestamp), "what is held stays out"
        assert header.gas_used == gas
        if act[0] not in {"mining", "revert", "reorg", "anvil reorg", "reset", "restart"}:
            limit, empty = self.before.orders.limit, self.before.orders.empty
            assert limit is None or len(receipts) <= limit
            assert not receipts or block.number - kept > empty, "ordered empty blocks come first"

    def _check_chain(self) -> None:
        chain = self.node.chain
        assert chain.head.number == len(chain.blocks) - 1
        assert set(chain.by_hash) == {block.hash for block in chain.blocks}
        places = {tx.hash: (block.number, at) for block in chain.blocks for at, tx in enumerate(block.transactions)}
        assert chain.included == places
        if self.nonce_lowered:
            return
        used = Counter((tx.sender, tx.nonce) for block in chain.blocks for tx in block.transactions)
        assert not used or max(used.values()) == 1, "a nonce is used once on the chain"

    # -- answers and the ledger --

    def _check_reply(self, act: Act, calls: list[Answered]) -> None:
        """A sender that met no fault was told the truth, and the truth follows from what it sent."""
        node = self.node
        fired = any(decision.outcome == "fired" for decision in node.faults.log[self.before.log :])
        if fired or node.views.nodes or act[0] not in {"send", "resend"} or not calls:
            return
        (call,) = calls
        row = node.ledger.submissions[self.before.rows]
        assert row.tx is not None
        if "error" in call.answer:
            assert row.verdict == "rejected"
            assert row.error is not None
            assert call.answer["error"]["message"] == row.error.message
        else:
            assert call.answer["result"] == "0x" + row.tx.hash.hex()
            assert row.verdict in {"pending", "queued"}
        self._check_admission(row.tx, accepted="result" in call.answer)

    def _check_admission(self, tx: Transaction, *, accepted: bool) -> None:
        """By the rules every client has, and by geth's where they are in force."""
        before = self.before
        state, balance = before.nonces[tx.sender], before.balances[tx.sender]
        old = before.pool.get((tx.sender, tx.nonce))
        run = list(self._run_of(tx.sender, before.nonces[tx.sender], before.pool))
        geth = before.profile == "geth"
        if accepted:
            assert tx.nonce >= state
            assert old is None or old.hash != tx.hash
            assert balance >= tx.cost
            assert tx.gas <= self.node.pool.rules.gas_limit
            if geth:
                assert tx.max_priority_fee >= 1
                spent = sum(each.cost for each in run if each.nonce != tx.nonce)
                assert balance >= spent + tx.cost
            if geth and old is not None and not self.limits_changed:  # where the pool was full it was pushed out first
                assert tx.max_fee * 10 >= old.max_fee * 11
                assert tx.max_priority_fee * 10 >= old.max_priority_fee * 11
        elif geth and not self.limits_changed and old is None and tx.nonce == state + len(run) and tx.type < BLOB:
            spent = sum(each.cost for each in run)
            delegated = any(each.authorizations for each in before.pool.values()) or self.node.world.code(tx.sender)
            reserved = any(each.type == BLOB for (sender, _), each in before.pool.items() if sender == tx.sender)
            fits = 100_000 <= tx.gas <= self.node.pool.rules.gas_limit or tx.gas == 21_000
            poor = balance < spent + tx.cost
            assert delegated or reserved or poor or not fits or tx.max_priority_fee < 1, "why was it refused?"

    @staticmethod
    def _run_of(sender: bytes, nonce: int, pool: dict[tuple[bytes, int], Transaction]) -> Iterator[Transaction]:
        """What a sender has waiting without a gap."""
        while (tx := pool.get((sender, nonce))) is not None:
            yield tx
            nonce += 1

    def _check_ledger(self, calls: list[Answered]) -> None:
        """Every raw transaction has a row with its very bytes, at least one and in order."""
        rows = self.node.ledger.submissions[self.before.rows :]
        assert [row.index for row in rows] == list(range(self.before.rows, self.before.rows + len(rows)))
        unseen = iter("0x" + row.raw.hex() for row in rows)
        for call in calls:
            for raw in call.raws:
                assert raw in unseen, "every submission is in the ledger, as it came"
        for row in rows:
            if row.verdict in {"pending", "queued"}:
                assert row.tx is not None
                self.accepted[row.tx.hash] = row.index

    def _check_whereabouts(self) -> None:
        """Whatever was accepted is on the chain, in the pool, or gone for a reason that was noted since."""
        node = self.node
        rows, hashes = node.ledger.submissions, {block.hash for block in node.chain.blocks}
        for tx_hash, index in self.accepted.items():
            story = node.ledger.story(rows[index])
            if tx_hash in node.chain.included:
                last = node.ledger.events[tx_hash][-1]
                assert self.nonce_lowered or (last.kind == "mined" and last.block_hash in hashes), "inclusion is noted"
            elif tx_hash not in node.pool.by_hash:
                assert story, "it vanished without a reason"
                assert story[-1].kind.partition(":")[0] in REASONS, story[-1].kind

    # -- the pool --

    def _check_pool(self) -> None:
        node = self.node
        status = look(node, "txpool_status")  # first, since looking takes out what has waited too long
        by_sender: dict[bytes, dict[int, Transaction]] = {}
        for tx_hash, entry in node.pool.by_hash.items():
            assert entry.tx.hash == tx_hash
            assert by_sender.setdefault(entry.tx.sender, {}).setdefault(entry.tx.nonce, entry.tx) is entry.tx
            assert self.nonce_lowered or tx_hash not in node.chain.included
            shown = look(node, "eth_getTransactionByHash", "0x" + tx_hash.hex())
            assert shown["blockHash"] is None or self.nonce_lowered
            assert (
                look(node, "eth_getRawTransactionByHash", "0x" + tx_hash.hex())[:32] == "0x" + entry.tx.wire.hex()[:30]
            )
        content = look(node, "txpool_content")
        executable = 0
        for sender, wallet in zip(SENDERS, WALLETS, strict=True):
            state = node.world.nonce(sender)
            waiting = by_sender.pop(sender, {})
            assert not waiting or min(waiting) >= state, "a nonce that is used up waits for nothing"
            end = state
            while end in waiting:
                end += 1
            executable += end - state
            assert int(look(node, "eth_getTransactionCount", wallet.address, "latest"), 16) == state
            assert int(look(node, "eth_getTransactionCount", wallet.address, "pending"), 16) == end
            shown = {
                section: {
                    int(nonce): item["hash"]
                    for nonce, item in senders.get(_spelled(senders, wallet.address), {}).items()
                }
                for section, senders in content.items()
            }
            assert shown == {
                "pending": {nonce: "0x" + tx.hash.hex() for nonce, tx in waiting.items() if nonce < end},
                "queued": {nonce: "0x" + tx.hash.hex() for nonce, tx in waiting.items() if nonce > end},
            }
        assert not by_sender, "nobody else sends"
        assert status == {"pending": hex(executable), "queued": hex(len(node.pool.by_hash) - executable)}

    def _check_automine(self) -> None:
        """With automine nothing that the next block could hold is left waiting."""
        node = self.node
        orders = node.miner.orders
        if not node.miner.mode.automine or orders.paused:
            return
        context = node.miner.next_context()
        assert context.base_fee == self._next_base_fee()
        for sender in SENDERS:
            nonce = node.world.nonce(sender)
            for tx in self.run.waiting():
                if (tx.sender, tx.nonce) != (sender, nonce):
                    continue
                blocked = (
                    tx.max_fee < context.base_fee
                    or tx.cost > node.world.balance(sender)
                    or tx.gas > node.pool.rules.gas_limit
                    or (tx.type == BLOB and tx.max_fee_per_blob_gas < context.blob_base_fee)
                    or is_held(orders, tx, context.number, context.timestamp)
                )
                assert blocked, f"{tx.hash.hex()} waits although the next block could hold it"

    # -- the world --

    def _check_world(self, act: Act, kept: int) -> None:
        node = self.node
        head = node.chain.head
        if head.number > kept:
            assert head.header.state_root == root_from_scratch(node.world), "the incremental root is the root"
        minted = 3 * 10_000 * ETHER + sum(wei for _, wei in self.written)
        burnt = sum(
            receipt.gas_used * block.header.base_fee + receipt.tx.blob_gas * receipt.blob_price
            for block in node.chain.blocks
            for receipt in block.receipts
        )
        assert sum(node.world.balances.values()) == minted - burnt, "no wei comes from nowhere or gets lost"
        assert min(node.world.balances.values()) >= 0
        if kept == len(self.before.chain) - 1 and act[0] not in {"nonce", "revert", "reset", "restart"}:
            for sender, nonce in self.before.nonces.items():
                assert node.world.nonce(sender) >= nonce, "nonces only rise"
        assert not node.world.journal

    def _state(self) -> State:
        world = self.node.world
        state = {
            wallet.address: (world.balance(sender), world.nonce(sender), 0)
            for sender, wallet in zip(SENDERS, WALLETS, strict=True)
        }
        counting = bytes.fromhex(COUNTING[2:])
        return state | {COUNTING: (world.balance(counting), world.nonce(counting), world.slot(counting, 0))}

    def _remember_state(self) -> None:
        self.states[self.node.chain.head.hash] = self._state()

    def _check_history(self) -> None:
        """One old block reads now as it did when it was the head."""
        blocks = self.node.chain.blocks
        old = blocks[(self.steps * 7) % len(blocks)]
        state = self.states.get(old.hash)
        if state is not None:
            at = hex(old.number)
            for address, (balance, nonce, slot) in state.items():
                assert int(look(self.node, "eth_getBalance", address, at), 16) == balance
                assert int(look(self.node, "eth_getTransactionCount", address, at), 16) == nonce
                if address == COUNTING:
                    assert int(look(self.node, "eth_getStorageAt", address, "0x0", at), 16) == slot
        self._check_state_at(old.number)
        shown = look(self.node, "eth_getBlockByNumber", hex(old.number), False)
        assert shown["transactions"] == ["0x" + tx.hash.hex() for tx in old.transactions]
        for receipt in () if self.nonce_lowered else old.receipts:
            told = look(self.node, "eth_getTransactionReceipt", "0x" + receipt.tx.hash.hex())
            assert (told["blockHash"], told["transactionIndex"]) == (shown["hash"], hex(receipt.index))
            assert told["status"] == hex(receipt.succeeded)

    def _check_state_at(self, height: int) -> None:
        """The world rewound to a block has that block's root, where nobody wrote on top of it."""
        node = self.node
        if any(at == height for at, _ in self.written):
            return
        with node.world.rewound(height):
            assert root_from_scratch(node.world) == node.chain.blocks[height].header.state_root

    # -- followers --

    def _logs(self) -> set[tuple[str, str]]:
        found = look(self.node, "eth_getLogs", ALL_LOGS)
        listed = [
            ("0x" + block.hash.hex(), hex(receipt.first_log + at))
            for block in self.node.chain.blocks
            for receipt in block.receipts
            for at in range(len(receipt.logs))
        ]
        assert [(log["blockHash"], log["logIndex"]) for log in found] == listed
        return set(listed)

    def _executable(self) -> set[str]:
        node = self.node
        return {"0x" + tx.hash.hex() for tx in self.run.waiting() if tx.nonce < node.pool.next_nonce(tx.sender)}

    def _follow(self) -> Follower:
        node = self.node
        return Follower(
            look(node, "eth_newBlockFilter"),
            look(node, "eth_newFilter", ALL_LOGS | {"toBlock": None, "fromBlock": None}),
            look(node, "eth_newPendingTransactionFilter"),
            node.clock.elapsed(),
            {"0x" + block.hash.hex() for block in node.chain.blocks},
            self._logs(),
            self._executable(),
        )

    def _check_follower(self) -> None:
        """Who replays what the filters tell knows the chain's blocks and logs, and what may be included next."""
        node, follower = self.node, self.follower
        try:
            blocks = look(node, "eth_getFilterChanges", follower.blocks)
            logs = look(node, "eth_getFilterChanges", follower.logs)
            arrivals = look(node, "eth_getFilterChanges", follower.arrivals)
        except RpcError:
            assert node.clock.elapsed() - follower.read_at >= FILTER_SECONDS, "a filter that is asked stays"
            self.follower = self._follow()
            return
        follower.read_at = node.clock.elapsed()
        assert not follower.seen_blocks & set(blocks), "each block is told once"
        follower.seen_blocks |= set(blocks)
        assert {"0x" + block.hash.hex() for block in node.chain.blocks} <= follower.seen_blocks
        for log in logs:
            place = log["blockHash"], log["logIndex"]
            assert (place in follower.seen_logs) is log["removed"], "a log comes once, and is removed once"
            follower.seen_logs ^= {place}
        assert follower.seen_logs == self._logs()
        follower.seen_arrivals |= set(arrivals)
        assert self._executable() <= follower.seen_arrivals


def _spelled(senders: dict[str, Any], address: str) -> str:
    """An address as a node spells it."""
    return next((name for name in senders if name.lower() == address), address)
