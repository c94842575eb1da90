"""Several nodes of one chain: each lags some blocks behind its head, and may know only what was submitted to itself.

A view is no second chain. For the time of one call the newest blocks are hidden, the state is rewound and the pool is
the one that node has; so every method answers consistently, whatever it reads.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from devnet.chain import Chain
from devnet.codec.blocks import Block
from devnet.codec.transaction import Transaction
from devnet.evm.world import World
from devnet.faults.draw import chance
from devnet.feed import Arrival, Event, Feed, Notice
from devnet.ledger import Origin

MAX_NODES = 64
PoolMode = Literal["shared", "gossip"]
Route = Literal["rr", "seeded", "sticky"]


@dataclass(eq=False)
class View:
    """One node. `backlog` holds the blocks it has not seen yet, oldest first; `lag` is how many it lets pile up.

    `known` are the transactions submitted to it or gossiped; `outbox` those the running call brought.
    """

    number: int
    lag: int
    feed: Feed
    backlog: deque[Block] = field(default_factory=deque)
    known: dict[bytes, Transaction] = field(default_factory=dict)
    outbox: list[Transaction] = field(default_factory=list)

    def follow(self, event: Event, *, arrivals: bool) -> None:
        """Hear of something on the chain: late for a block, at once for one that is orphaned after it was seen."""
        if isinstance(event, Arrival):
            if arrivals:
                self.feed.append(event)
        elif event.kind == "block":
            self.backlog.append(event.block)
            while len(self.backlog) > self.lag:
                self.feed.append(Notice("block", self.backlog.popleft()))
        elif event.block in self.backlog:
            self.backlog.remove(event.block)
        else:
            self.feed.append(event)
            self.known.update((tx.hash, tx) for tx in event.block.transactions)

    @contextmanager
    def hiding(self, chain: Chain, world: World) -> Iterator[list[Block]]:
        """Chain and state as this node knows them; gives the hidden blocks, oldest first, and puts all back."""
        count = min(len(self.backlog), chain.head.number)
        with world.rewound(chain.head.number - count):
            hidden = [chain.pop() for _ in range(count)][::-1]
            try:
                yield hidden
            finally:
                for block in hidden:
                    chain.append(block)


@dataclass(eq=False)
class Views:
    """The nodes requests are spread over; none by default, the devnet answers itself then."""

    pool: PoolMode = "shared"
    route: Route = "rr"
    nodes: list[View] = field(default_factory=list)
    routed: int = 0
    seen: dict[str, int] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        """Pass an event of the chain on to every node."""
        for view in self.nodes:
            view.follow(event, arrivals=self.pool == "shared")

    def choose(self, origin: Origin, key: str, seed: int) -> View | None:
        """The node for a request: the one its path names, else by turns, by seeded chance, or by its connection."""
        if not self.nodes:
            return None
        count = len(self.nodes)
        if origin.node is not None:
            return self.nodes[origin.node] if origin.node < count else None
        if self.route == "sticky":
            return self.nodes[((origin.connection or 1) - 1) % count]
        if self.route == "seeded":
            self.seen[key] = self.seen.get(key, 0) + 1
            return self.nodes[chance(seed, "route", key, self.seen[key]).randrange(count)]
        self.routed += 1
        return self.nodes[(self.routed - 1) % count]

    def save(self) -> "ViewsState":
        """How the nodes stand, for a snapshot."""
        nodes = [(view, view.lag, tuple(view.backlog), dict(view.known)) for view in self.nodes]
        return ViewsState(self.pool, self.route, nodes, self.routed, dict(self.seen))

    def restore(self, state: "ViewsState") -> None:
        """Come back to how they stood."""
        self.pool, self.route, self.routed, self.seen = state.pool, state.route, state.routed, dict(state.seen)
        self.nodes[:] = [view for view, *_ in state.nodes]
        for view, lag, backlog, known in state.nodes:
            view.lag, view.backlog, view.known = lag, deque(backlog), dict(known)

    def has(self, number: int) -> bool:
        """Whether there is a node of this number."""
        return number < len(self.nodes)

    def gossip(self, txs: list[Transaction]) -> None:
        """Let every node know these transactions."""
        for view in self.nodes:
            view.known.update((tx.hash, tx) for tx in txs)

    def forget(self, tx_hash: bytes) -> bool:
        """Take a transaction out of every node's own pool; whether one had it."""
        return any([view.known.pop(tx_hash, None) is not None for view in self.nodes])  # noqa: C419  (all of them)


@dataclass(frozen=True, slots=True)
class ViewsState:
    """What a snapshot keeps: of each node its lag, backlog and known transactions."""

    pool: PoolMode
    route: Route
    nodes: list[tuple[View, int, tuple[Block, ...], dict[bytes, Transaction]]]
    routed: int
    seen: dict[str, int]


def latest(chain: Chain, count: int) -> deque[Block]:
    """The newest `count` blocks above genesis, oldest first: the backlog of a node that lags so many."""
    return deque(chain.blocks[max(len(chain.blocks) - count, 1) :] if count else ())
