"""What can happen to a chain: acts drawn by name and small numbers, each carried out as JSON-RPC calls to a node in process.

An act finds its subjects by what the node holds at that moment, so that a plan makes sense wherever it is cut or shortened,
and equal plans make equal calls.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from devnet.api.params import Params
from devnet.codec.transaction import Transaction
from devnet.evm.pyevm import PyEvm
from devnet.ledger import Origin
from devnet.node import Node
from devnet.server.rpc import METHODS, Dispatcher
from devnet.settings import Settings
from tests.devnet.plans.transactions import (
    CODES,
    COUNTING,
    KINDS,
    PRICES,
    RARE_KINDS,
    REVERTING,
    SENDERS,
    WALLETS,
    signed,
)
from tests.devnet.wallet import ETHER, GWEI

SEND: Final = "eth_sendRawTransaction"
GENESIS_TIME: Final = 1_700_000_000
PROFILES: Final = ("geth", "anvil", "besu", "nethermind", "erigon", "reth", "nitro")
Act = tuple[str, int, int, int]
ENGINE: Final = PyEvm()  # imported outside of any test: it raises the recursion limit

# How often each act is drawn, in parts.
WEIGHTS: Final = {
    "send": 30,
    "resend": 4,
    "batch": 2,
    "order": 2,
    "rival": 2,
    "mine": 8,
    "automine": 4,
    "interval": 1,
    "mining": 3,
    "gas limit": 1,
    "coinbase": 1,
    "time": 3,
    "base fee": 4,
    "evict": 2,
    "hold": 3,
    "drop": 2,
    "reorg": 6,
    "anvil reorg": 2,
    "rollback": 3,
    "snapshot": 4,
    "revert": 4,
    "fault": 4,
    "clear faults": 2,
    "profile": 2,
    "limits": 1,
    "balance": 3,
    "nonce": 2,
    "code": 1,
    "nodes": 1,
    "gossip": 1,
    "restart": 1,
    "reset": 1,
    "read": 6,
}


def plans() -> st.SearchStrategy[list[Act]]:
    """Random plans of some 25 acts, now and then of a hundred; they shrink towards few acts with small numbers."""
    names = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
    number = st.integers(0, 31)
    some = st.lists(st.tuples(st.sampled_from(names), number, number, number), max_size=20)
    return st.lists(some, max_size=20).map(lambda parts: [act for part in parts for act in part])


@dataclass
class Answered:
    """One call: what was asked, what came back (None: nothing did), and the raw transactions it carried."""

    request: Any
    answer: Any
    raws: list[str]


@dataclass
class Run:
    """A node under a plan. `calls` is everything asked and answered, the first `prepared` before the plan began; `sent`
    holds the raw transactions in order.
    """

    blobs: bool = False
    node: Node = field(init=False)
    prepared: int = field(init=False)
    calls: list[Answered] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = Settings(automine=False, accounts=3, timestamp=GENESIS_TIME, manual_clock=True, gas_limit=2_000_000)
        self.node = Node(settings, ENGINE)
        self._dispatcher = Dispatcher(self.node)
        self._dispatcher.on_restart = lambda _order: None
        for address, code in CODES.items():
            self.call("anvil_setCode", address, "0x" + code.hex())
        self.prepared = len(self.calls)

    def perform(self, act: Act) -> None:
        """Carry out one act."""
        name, *numbers = act
        ACTS[name](self, *numbers)
        look(self.node, "txpool_status")  # what has waited too long goes when somebody looks

    def call(self, method: str, *params: Any) -> Any:
        """Ask the node; its result, None for an error and where no answer came."""
        raws = [str(params[0])] if method == SEND else []
        answer = self.ask({"jsonrpc": "2.0", "id": len(self.calls), "method": method, "params": list(params)}, raws)
        return answer.get("result") if isinstance(answer, dict) else None

    def ask(self, request: Any, raws: Sequence[str] = ()) -> Any:
        """Send a body; the parsed answer, None where none came or what came is no JSON."""
        self.sent += raws
        response = self._dispatcher.respond(json.dumps(request).encode(), Origin(connection=1))
        try:
            response.send(None)
        except StopIteration as done:
            reply = done.value
        else:
            response.close()
            raise AssertionError(f"{request} has to wait for something")
        body = reply.body if reply.cut is None and reply.status == 200 else b""
        try:
            answer = json.loads(body) if body else None
        except ValueError:
            answer = None
        self.calls.append(Answered(request, answer, list(raws)))
        return answer

    def waiting(self) -> list[Transaction]:
        """What the pool holds, oldest first."""
        return [entry.tx for entry in sorted(self.node.pool.by_hash.values(), key=lambda entry: entry.arrival)]

    def nonce(self, who: int, place: int) -> int:
        """A nonce of a sender by what it is to the node: next, in use, too high by one or two, or too low."""
        node, sender = self.node, SENDERS[who]
        state, following = node.world.nonce(sender), node.pool.next_nonce(sender)
        mine = [tx.nonce for tx in self.waiting() if tx.sender == sender]
        match place % 8:
            case 4:
                return state
            case 5:
                return max(state - 1, 0)
            case 6:
                return following + 1 + place % 2
            case 7:
                return mine[place % len(mine)] if mine else following
            case _:
                return following

    def sign(self, a: int, b: int, c: int) -> str:
        """A raw transaction chosen by three numbers."""
        who, kinds = a % len(WALLETS), (*KINDS, *RARE_KINDS) if self.blobs else KINDS
        kind = kinds[c % len(kinds)]
        level = (0, 0, 1, 2, 3, 4, 5, 6)[(a // 3 + b // 8 * 3) % 8]
        assert level < len(PRICES)
        return signed(who, kind, self.nonce(who, b), level).raw

    def depth(self, number: int) -> int:
        """A depth the chain has, or now and then one it does not have."""
        head = self.node.chain.head.number
        return head + 1 if number == 31 else 1 + number % max(min(head, 6), 1)

    def chosen(self, number: int) -> list[str]:
        """Some hashes of the last blocks' transactions."""
        recent = [tx.hash for block in self.node.chain.blocks[-4:] for tx in block.transactions]
        return ["0x" + tx_hash.hex() for at, tx_hash in enumerate(recent) if number >> (at % 5) & 1]


def look(node: Node, method: str, *params: Any) -> Any:
    """Read something off a node past all faults, and without its noticing."""
    return METHODS[method](node, Params(list(params)))


ACTS: dict[str, Callable[[Run, int, int, int], object]] = {}


def act(name: str) -> Callable[[Callable[[Run, int, int, int], object]], Callable[[Run, int, int, int], object]]:
    def enter(function: Callable[[Run, int, int, int], object]) -> Callable[[Run, int, int, int], object]:
        ACTS[name] = function
        return function

    return enter


@act("send")
def _send(run: Run, a: int, b: int, c: int) -> None:
    run.call(SEND, run.sign(a, b, c))


@act("resend")
def _resend(run: Run, a: int, b: int, _c: int) -> None:
    if run.sent:
        run.call(SEND, run.sent[-1 - (a + b) % len(run.sent)])


@act("batch")
def _batch(run: Run, a: int, b: int, c: int) -> None:
    raws = [run.sign(a + at, b, c + at) for at in range(3)]
    body = [{"jsonrpc": "2.0", "id": at, "method": SEND, "params": [raw]} for at, raw in enumerate(raws)]
    body.append({"jsonrpc": "2.0", "id": 3, "method": "eth_blockNumber", "params": []})
    run.ask(body, raws)


@act("order")
def _order(run: Run, a: int, b: int, c: int) -> None:
    sender, to = WALLETS[a % 3].address, (COUNTING, REVERTING, WALLETS[b % 3].address)[c % 3]
    run.call("eth_sendTransaction", {"from": sender, "to": to, "value": hex(c), "gas": hex(100_000)})


@act("rival")
def _rival(run: Run, a: int, b: int, _c: int) -> None:
    run.call("devnet_rival", {"account": a % 3, "nonce": run.nonce(a % 3, b)})


@act("mine")
def _mine(run: Run, a: int, b: int, _c: int) -> None:
    if a % 4 == 3:
        run.call("anvil_mine", hex(b % 4), hex(b % 3))
    else:
        run.call("evm_mine")


@act("automine")
def _automine(run: Run, a: int, _b: int, _c: int) -> None:
    run.call("evm_setAutomine", a % 2 == 0)


@act("interval")
def _interval(run: Run, a: int, _b: int, _c: int) -> None:
    run.call("evm_setIntervalMining", (0, 100, 3600)[a % 3])


@act("mining")
def _mining(run: Run, a: int, b: int, _c: int) -> None:
    orders: tuple[dict[str, Any], ...] = (
        {"resume": True},
        {"pause": True},
        {"emptyBlocks": b % 3},
        {"limit": 1 + b % 2},
        {"limit": None},
        {"order": ("fees", "fifo")[b % 2]},
    )
    run.call("devnet_mining", orders[a % len(orders)])


@act("gas limit")
def _gas_limit(run: Run, a: int, _b: int, _c: int) -> None:
    run.call("evm_setBlockGasLimit", hex((2_000_000, 150_000, 1_000_000)[a % 3]))


@act("coinbase")
def _coinbase(run: Run, a: int, b: int, _c: int) -> None:
    if b % 4 == 0:
        run.call("anvil_setNextBlockPrevRandao", "0x" + bytes([b] * 32).hex())
    run.call("anvil_setCoinbase", ("0x" + "cb" * 20, WALLETS[0].address, COUNTING)[a % 3])


@act("time")
def _time(run: Run, a: int, b: int, _c: int) -> None:
    head = run.node.chain.head.header.timestamp
    match a % 5:
        case 0:
            run.call("evm_increaseTime", (1, 60, 86_400)[b % 3])
        case 1:
            run.call("evm_setNextBlockTimestamp", head + b - 1)
        case 2:
            run.call("devnet_clock", {"advance": (1, 59, 400, 4 * 3600)[b % 4]})
        case 3:
            run.call("devnet_clock", {"skew": b - 5})
        case _:
            run.call("evm_setTime", head + b)


@act("base fee")
def _base_fee(run: Run, a: int, b: int, _c: int) -> None:
    match a % 4:
        case 0:
            run.call("devnet_baseFee", {"path": [hex(number * GWEI // 4) for number in (b, 1, b // 2)]})
        case 1:
            run.call("devnet_baseFee", {"spike": {"factor": 1 + b, "blocks": 1 + b % 3}})
        case 2:
            run.call("devnet_baseFee", {"clear": True})
        case _:
            run.call("anvil_setNextBlockBaseFeePerGas", hex(b * GWEI // 2))


@act("evict")
def _evict(run: Run, a: int, b: int, _c: int) -> None:
    waiting = run.waiting()
    orders: list[dict[str, Any]] = [{"lowest": 1 + b % 2}, {"sender": WALLETS[b % 3].address}]
    orders += [{"p": 0.5, "seed": b}, {"p": 0.3}]
    if waiting:
        orders.append({"hash": "0x" + waiting[b % len(waiting)].hash.hex()})
    run.call("devnet_evict", orders[a % len(orders)])


@act("hold")
def _hold(run: Run, a: int, b: int, c: int) -> None:
    waiting = run.waiting()
    held: dict[str, Any] = {"sender": WALLETS[b % 3].address}
    if waiting and b % 2:
        held = {"hash": "0x" + waiting[b % len(waiting)].hash.hex()}
    ways: tuple[dict[str, Any], ...] = (
        {"blocks": 1 + c % 3},
        {"until": run.node.clock.now() + 10 * (c % 4)},
        {"release": True},
    )
    run.call("devnet_holdTx", held | ways[a % 3])


@act("drop")
def _drop(run: Run, a: int, b: int, _c: int) -> None:
    waiting = run.waiting()
    if a % 4 == 0:
        run.call("anvil_removePoolTransactions", WALLETS[b % 3].address)
    elif a == 1:
        run.call("anvil_dropAllTransactions")
    elif waiting:
        run.call("anvil_dropTransaction", "0x" + waiting[b % len(waiting)].hash.hex())


@act("reorg")
def _reorg(run: Run, a: int, b: int, c: int) -> None:
    order: dict[str, Any] = {"depth": run.depth(a), "keep": ("none", "all", run.chosen(b))[b % 3]}
    if c % 3 == 1:
        order["newDepth"] = c // 3 % 4
    if c % 4 == 1:
        order["requeue"] = bool(b % 2)
    if c % 5 < 2:
        order["inject"] = [run.sign(a, 4 + 8 * (b // 8), b), run.sign(a + 1, 5, c)][: 1 + c % 2]
    if b % 5 == 0:
        order["drop"] = run.chosen(c) + ["0x" + tx.hash.hex() for tx in run.waiting()[:1]]
    run.call("devnet_reorg", order)


@act("anvil reorg")
def _anvil_reorg(run: Run, a: int, b: int, c: int) -> None:
    depth = run.depth(a)
    pairs: list[Any] = []
    if b % 3 == 1:
        pairs.append([{"from": WALLETS[c % 3].address, "to": COUNTING, "gas": hex(100_000)}, c % depth])
    if b % 3 == 2:
        pairs.append([run.sign(a, b, c), c % depth])
    run.call("anvil_reorg", depth, pairs)


@act("rollback")
def _rollback(run: Run, a: int, _b: int, _c: int) -> None:
    run.call("anvil_rollback", run.depth(a))


@act("snapshot")
def _snapshot(run: Run, _a: int, _b: int, _c: int) -> None:
    run.snapshots.append(int(run.call("evm_snapshot"), 16))


@act("revert")
def _revert(run: Run, a: int, _b: int, _c: int) -> None:
    if run.snapshots:
        run.call("evm_revert", hex(run.snapshots[-1 - a % min(len(run.snapshots), 4)]))


FAULTS: Final[tuple[dict[str, Any], ...]] = (
    {"kind": "lie_accept"},
    {"kind": "accept_as_error", "arg": "geth.already_known"},
    {"kind": "duplicate", "arg": 3},
    {"kind": "error", "arg": "besu.nonce_too_low"},
    {"kind": "drop_before"},
    {"kind": "drop_after"},
    {"kind": "null_result"},
    {"kind": "wrong_id"},
    {"kind": "http", "arg": 429},
    {"kind": "html"},
    {"kind": "empty_body"},
    {"kind": "truncate_json"},
    {"kind": "reset_mid_body"},
    {"kind": "partial_batch"},
    {"kind": "reorder_batch"},
    {"kind": "stale", "arg": 2},
)
TERMS: Final[tuple[dict[str, Any], ...]] = ({}, {"p": 0.5}, {"times": 1}, {"at": [1, 3]}, {"skip": 1, "per": "key"})


@act("fault")
def _fault(run: Run, a: int, b: int, c: int) -> None:
    match: dict[str, Any] = {"method": SEND if c % 2 else "eth_*"}
    if c % 3 == 0:
        match["sender"] = WALLETS[b % 3].address
    run.call("devnet_fault", {"match": match} | FAULTS[a % len(FAULTS)] | TERMS[b % len(TERMS)])


@act("clear faults")
def _clear_faults(run: Run, a: int, _b: int, _c: int) -> None:
    rules = list(run.node.faults.rules)
    run.call("devnet_clearFaults", *([rules[a % len(rules)]] if rules and a % 2 else []))


@act("profile")
def _profile(run: Run, a: int, _b: int, _c: int) -> None:
    run.call("devnet_setProfile", PROFILES[a % len(PROFILES)])


@act("limits")
def _limits(run: Run, a: int, b: int, _c: int) -> None:
    run.call("devnet_poolLimits", {("global", "perSender", "queued", "queueTtl")[a % 4]: 2 + b})


@act("balance")
def _balance(run: Run, a: int, b: int, _c: int) -> None:
    wei = (10_000 * ETHER, ETHER, 0, 21_000 * 10 * GWEI + 1, ETHER // 100)[b % 5]
    run.call("anvil_setBalance", WALLETS[a % 3].address, hex(wei))


@act("nonce")
def _nonce(run: Run, a: int, b: int, _c: int) -> None:
    state = run.node.world.nonce(SENDERS[a % 3])
    run.call("anvil_setNonce", WALLETS[a % 3].address, hex(max(state + (1, 2, 0, 3, -1)[b % 5], 0)))


@act("code")
def _code(run: Run, a: int, b: int, _c: int) -> None:
    if a % 2:
        run.call("anvil_setStorageAt", COUNTING, hex(b % 2), "0x" + (b // 2).to_bytes(32, "big").hex())
    else:
        addresses = list(CODES)
        code = CODES[addresses[b % len(addresses)]] if a % 4 else b""
        run.call("anvil_setCode", addresses[a % len(addresses)], "0x" + code.hex())


@act("nodes")
def _nodes(run: Run, a: int, b: int, c: int) -> None:
    order = {"n": a % 4, "pool": ("shared", "gossip")[b % 2], "route": ("rr", "seeded", "sticky")[b % 3]}
    run.call("devnet_nodes", order | {"lag": [0, c % 4, c // 4 % 3][: a % 4]})


@act("gossip")
def _gossip(run: Run, _a: int, _b: int, _c: int) -> None:
    run.call("devnet_gossip")


@act("restart")
def _restart(run: Run, a: int, _b: int, _c: int) -> None:
    run.call("devnet_restart", {"losePool": a % 2 == 0, "keepChain": a % 5 != 4})


@act("reset")
def _reset(run: Run, a: int, _b: int, _c: int) -> None:
    if a % 4 == 0:
        run.call("anvil_reset")


@act("read")
def _read(run: Run, a: int, b: int, c: int) -> None:
    """Whatever looks on: none of it may change anything."""
    sender, head = WALLETS[b % 3].address, run.node.chain.head.number
    block = ("latest", "pending", hex(c % (head + 1)), "safe", hex(head + 1))[c % 5]
    included = [tx.hash for chained in run.node.chain.blocks[-3:] for tx in chained.transactions]
    tx_hash = "0x" + (included[c % len(included)] if included else bytes(32)).hex()
    reads: tuple[tuple[Any, ...], ...] = (
        ("eth_call", {"from": sender, "to": COUNTING}, block),
        ("eth_estimateGas", {"from": sender, "to": COUNTING}, block),
        ("eth_getBlockByNumber", block, True),
        ("eth_getBlockByNumber", "pending", False),
        ("eth_call", {"from": sender, "to": COUNTING}, "pending"),
        ("eth_getTransactionCount", sender, block),
        ("eth_getBalance", sender, block),
        ("eth_getProof", sender, ["0x0"], hex(head)),
        ("eth_createAccessList", {"from": sender, "to": COUNTING}, block),
        ("eth_feeHistory", 5, "latest", [10, 50]),
        ("debug_traceTransaction", tx_hash, {"tracer": "callTracer"}),
        ("debug_traceBlockByNumber", hex(head), {}),
        ("eth_simulateV1", {"blockStateCalls": [{"calls": [{"from": sender, "to": COUNTING}]}] * 2}, block),
        ("eth_getTransactionReceipt", tx_hash),
        ("eth_getTransactionByHash", tx_hash),
        ("devnet_submissions",),
        ("devnet_invariants", {"intents": True}),
        ("txpool_inspect",),
    )
    run.call(*reads[a % len(reads)])
