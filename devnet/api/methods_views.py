"""devnet_nodes: several nodes of one chain that lag and gossip, behind one address."""

from typing import Any, cast

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.errors import InvalidParams
from devnet.faults import fields as read
from devnet.feed import Feed
from devnet.node import Node
from devnet.views import MAX_NODES, View, latest

METHODS = Methods()


@METHODS.named("devnet_nodes")
def nodes(node: Node, params: Params) -> dict[str, object]:
    """Answer as `n` nodes from now on: `lag` blocks behind each, `pool` shared or gossip, `route` rr, seeded or sticky.

    What is left out stays as it is; n 0 ends it. Returns how they stand. `/node/1` addresses the second one.
    """
    order = read.an_object(params.optional(0) or {}, "devnet_nodes", ("n", "lag", "pool", "route"))
    views = node.views
    count = read.optional(order, "n", read.count)
    count = len(views.nodes) if count is None else count
    if count > MAX_NODES:
        raise InvalidParams(f"n must be at most {MAX_NODES}")
    pool = read.one_of(order.get("pool", views.pool), "pool", ("shared", "gossip"))
    route = read.one_of(order.get("route", views.route), "route", ("rr", "seeded", "sticky"))
    lags = _lags(order.get("lag"), count)
    views.pool, views.route = cast("Any", pool), cast("Any", route)
    spread(node, count)
    for view, lag in zip(views.nodes, lags or (), strict=False):
        view.lag = lag
        view.backlog = latest(node.chain, lag)
    return _state(node)


def spread(node: Node, count: int) -> None:
    """Be so many nodes; those there were stay as they are, new ones do not lag."""
    nodes = node.views.nodes
    del nodes[count:]
    for number in range(len(nodes), count):
        nodes.append(View(number, 0, Feed(node.clock, f"node {number}".encode())))


def _lags(value: object, count: int) -> list[int] | None:
    """One number for all nodes, or one a node; the rest do not lag."""
    if value is None:
        return None
    if not isinstance(value, list):
        return [read.count(value, "lag")] * count
    if len(value) > count:
        raise InvalidParams(f"lag has {len(value)} numbers for {count} nodes: give one a node, or one for all")
    return [read.count(item, "lag") for item in value] + [0] * (count - len(value))


def _state(node: Node) -> dict[str, object]:
    head = node.chain.head.number
    return {
        "n": len(node.views.nodes),
        "lag": [view.lag for view in node.views.nodes],
        "heads": [head - min(len(view.backlog), head) for view in node.views.nodes],
        "pool": node.views.pool,
        "route": node.views.route,
    }


@METHODS.named("devnet_gossip")
def gossip(node: Node, params: Params) -> int:
    """Let every node know what waits with the others, or one transaction of it; returns how many."""
    waiting = {entry.tx.hash: entry.tx for entry in node.pool.contents()}
    for view in node.views.nodes:
        waiting |= view.known
    if params.optional(0) is not None:
        tx_hash = params.hash(0)
        waiting = {tx_hash: waiting[tx_hash]} if tx_hash in waiting else {}
    node.views.gossip([tx for tx in waiting.values() if node.chain.find(tx.hash) is None])
    return len(waiting)
