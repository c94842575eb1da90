"""States of a whole devnet to come back to: evm_snapshot's, and the one it began with."""

from dataclasses import dataclass, field
from typing import Protocol

from devnet.chain import Chain
from devnet.clock import Clock, ClockState
from devnet.evm.world import Layer, World
from devnet.faults.rulebook import Rulebook, RulebookState
from devnet.feed import Feed, Unread
from devnet.miner import Miner
from devnet.orders import Orders
from devnet.plan import Timeline, TimelineState
from devnet.txpool.lane import Pooled
from devnet.txpool.pool import Pool
from devnet.views import Views, ViewsState


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state to come back to. `layer` is the newest undo layer then: if it is gone, so is the way back."""

    depth: int
    layer: Layer
    head: int
    pool: list[Pooled]
    clock: ClockState
    filters: Unread
    next_base_fee: int | None
    next_prevrandao: bytes | None
    orders: Orders
    faults: RulebookState
    views: ViewsState
    timeline: TimelineState


class Parts(Protocol):
    """What a snapshot is taken of."""

    world: World
    chain: Chain
    pool: Pool
    clock: Clock
    feed: Feed
    miner: Miner
    faults: Rulebook
    views: Views
    timeline: Timeline


@dataclass
class Snapshots:
    """Open snapshots by id; ids count on and are never used twice."""

    open: dict[int, Snapshot] = field(default_factory=dict)
    next_id: int = 0

    def take(self, parts: Parts) -> int:
        """Remember how everything stands; returns the id."""
        number = self.next_id
        self.next_id += 1
        self.open[number] = capture(parts)
        return number

    def find(self, number: int, world: World) -> Snapshot | None:
        """An open snapshot, None where the way back to it is cut off."""
        snapshot = self.open.get(number)
        layers = world.layers
        if snapshot is None or len(layers) < snapshot.depth or layers[snapshot.depth - 1] is not snapshot.layer:
            return None
        return snapshot

    def use_up(self, first: int) -> None:
        """Forget this one and all later ones."""
        self.open = {number: snapshot for number, snapshot in self.open.items() if number < first}


def capture(parts: Parts) -> Snapshot:
    """How everything stands."""
    return Snapshot(
        depth=len(parts.world.layers),
        layer=parts.world.layers[-1],
        head=parts.chain.head.number,
        pool=parts.pool.contents(),
        clock=parts.clock.save(),
        filters=parts.feed.save(),
        next_base_fee=parts.miner.next_base_fee,
        next_prevrandao=parts.miner.next_prevrandao,
        orders=parts.miner.orders.copy(),
        faults=parts.faults.state(),
        views=parts.views.save(),
        timeline=parts.timeline.save(),
    )


def restore_rest(parts: Parts, snapshot: Snapshot) -> None:
    """Put back all that is neither chain, state nor pool."""
    parts.clock.restore(snapshot.clock)
    parts.feed.restore(snapshot.filters)
    parts.miner.next_base_fee = snapshot.next_base_fee
    parts.miner.next_prevrandao = snapshot.next_prevrandao
    parts.miner.orders = snapshot.orders.copy()
    parts.faults.restore(snapshot.faults)
    parts.views.restore(snapshot.views)
    parts.timeline.restore(snapshot.timeline)
