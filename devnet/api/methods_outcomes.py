"""devnet_ methods that order what happens to pool and chain: evictions, holds, reorgs, base fees, mining, restarts."""

from typing import Any, cast

from devnet import outcomes
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.codec.transaction import Transaction, decode
from devnet.encoding import data, parse_data, quantity
from devnet.errors import DecodeError, InvalidParams, Rejected
from devnet.faults import fields as read
from devnet.faults.fields import Json
from devnet.node import Node, Restart
from devnet.orders import Hold

MAX_DEPTH = 10_000
MAX_FACTOR = 1_000_000
METHODS = Methods()


@METHODS.named("devnet_evict")
def evict(node: Node, params: Params) -> list[str]:
    """Take transactions out of the pool without a word to their senders; returns their hashes.

    One of: `hash`; `sender`; `lowest`: so many of the cheapest; `p`: each by a draw of its own. `node`: out of that
    node's own pool only (gossip).
    """
    order = read.an_object(params.required(0), "devnet_evict", ("hash", "sender", "lowest", "p", "seed", "node"))
    only = read.optional(order, "node", read.count)
    if only is not None and not node.views.has(only):
        raise InvalidParams(f"there is no node {only}: devnet_nodes has made {len(node.views.nodes)}")
    way = _one_way(order, ("hash", "sender", "lowest", "p"))
    if way == "hash":
        hashes = [read.hash32(order["hash"], "hash")]
    elif way == "sender":
        sender = read.address(order["sender"], "sender")
        hashes = [tx.hash for tx in _waiting(node) if tx.sender == sender]
    elif way == "lowest":
        hashes = outcomes.cheapest(node, read.positive(order["lowest"], "lowest"))
    else:
        seed = read.optional(order, "seed", read.count)
        seed = node.faults.seed if seed is None else seed
        hashes = outcomes.chosen_by_chance(node, read.share(order["p"], "p"), seed)
    return [data(tx_hash) for tx_hash in outcomes.evict(node, hashes, only=only)]


def _waiting(node: Node) -> list[Transaction]:
    """What waits anywhere: with the block builder, or with one node only."""
    waiting = {entry.tx.hash: entry.tx for entry in node.pool.contents()}
    for view in node.views.nodes:
        waiting |= view.known
    return list(waiting.values())


def _one_way(order: Json, names: tuple[str, ...]) -> str:
    given = [name for name in names if order.get(name) is not None]
    if len(given) != 1:
        raise InvalidParams(f"give exactly one of {read.listed(names)}")
    return given[0]


@METHODS.named("devnet_holdTx")
def hold_tx(node: Node, params: Params) -> bool:
    """Keep a transaction, or all of a sender, out of blocks: for `blocks` from now, before the second `until`, or no
    more (`release`). It stays in the pool, known by its hash.
    """
    order = read.an_object(params.required(0), "devnet_holdTx", ("hash", "sender", "blocks", "until", "release"))
    who = _one_way(order, ("hash", "sender"))
    key = read.hash32(order[who], who) if who == "hash" else read.address(order[who], who)
    how = _one_way(order, ("blocks", "until", "release"))
    held = node.miner.orders.held
    if how == "release":
        read.flag(order[how], how)
        return held.pop(key, None) is not None
    if how == "blocks":
        held[key] = Hold(last=node.chain.head.number + read.positive(order[how], how))
        return True
    until = read.count(order[how], how)
    hold = held[key] = Hold(until=until)

    def release() -> None:
        if node.miner.orders.held.get(key) == hold:
            del node.miner.orders.held[key]
            node.mine_ready()

    node.clock.call_at(node.clock.elapsed() + max(until - node.clock.now(), 0), release)
    return True


@METHODS.named("devnet_reorg")
def reorg(node: Node, params: Params) -> dict[str, list[str]]:
    """Replace the newest blocks with a chosen outcome; returns what became of their transactions (`outcomes.Reorg`)."""
    names = ("depth", "newDepth", "keep", "inject", "drop", "requeue")
    order = read.an_object(params.required(0), "devnet_reorg", names)
    depth = read.positive(order.get("depth"), "depth")
    new_depth = read.optional(order, "newDepth", read.count)
    new_depth = depth if new_depth is None else new_depth
    if max(depth, new_depth) > MAX_DEPTH:
        raise InvalidParams(f"depth and newDepth must be at most {MAX_DEPTH}")
    requeue = read.optional(order, "requeue", read.flag)
    done = outcomes.reorganize(
        node,
        outcomes.Reorg(
            depth,
            new_depth,
            _kept(order.get("keep", "none")),
            tuple(_decoded(node, item) for item in _items(order, "inject")),
            frozenset(read.hash32(item, "drop") for item in _items(order, "drop")),
            node.profile.requeues_orphans if requeue is None else requeue,
        ),
    )
    return {name: [data(tx.hash) for tx in getattr(done, name)] for name in ("included", "requeued", "lost", "refused")}


def _kept(value: object) -> frozenset[bytes] | None:
    if value == "all":
        return None
    if value == "none":
        return frozenset()
    if not isinstance(value, list):
        raise InvalidParams('keep must be "all", "none" or a list of transaction hashes')
    return frozenset(read.hash32(item, "keep") for item in value)


def _items(order: Json, name: str) -> list[object]:
    value = order.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidParams(f"{name} must be a list")
    return cast("list[object]", value)


def _decoded(node: Node, value: object) -> Transaction:
    try:
        tx = decode(parse_data(value, "inject"))
        assert tx.sender, "a bad signature raises"
    except DecodeError as problem:
        raise InvalidParams(f"inject holds bytes that are no transaction: {problem}") from None
    except Rejected as problem:
        raise InvalidParams(f"inject: {node.profile.error(problem).message}") from None
    return tx


@METHODS.named("devnet_baseFee")
def base_fee(node: Node, params: Params) -> list[str]:
    """Script the base fees (wei) of the next blocks: `path`, or `spike: {factor, blocks}` and back; `clear` ends it.

    The blocks after them follow EIP-1559 from the last one. Returns the path in force.
    """
    order = read.an_object(params.required(0), "devnet_baseFee", ("path", "spike", "clear"))
    how = _one_way(order, ("path", "spike", "clear"))
    orders = node.miner.orders
    if how == "path":
        orders.base_fees = [read.count(item, "a base fee") for item in _items(order, "path")]
    elif how == "spike":
        spike = read.an_object(order[how], how, ("factor", "blocks"))
        factor = read.number(spike.get("factor"), "factor")
        if factor > MAX_FACTOR:
            raise InvalidParams(f"factor must be at most {MAX_FACTOR}")
        blocks = read.positive(spike.get("blocks", 1), "blocks")
        if blocks > MAX_DEPTH:
            raise InvalidParams(f"blocks must be at most {MAX_DEPTH}")
        usual = node.miner.next_context().base_fee
        orders.base_fees = [int(usual * factor)] * blocks + [usual]
    else:
        orders.base_fees = []
    return [quantity(fee) for fee in orders.base_fees]


@METHODS.named("devnet_mining")
def mining(node: Node, params: Params) -> dict[str, object]:
    """Standing orders for the blocks to come: `pause` or `resume` automatic ones (evm_mine still makes one),
    `emptyBlocks`: so many next ones empty, `limit`: most transactions a block (null: as many as fit), `order`.
    """
    names = ("pause", "resume", "emptyBlocks", "limit", "order")
    order = read.an_object(params.optional(0) or {}, "devnet_mining", names)
    pause, resume = (read.optional(order, name, read.flag) for name in ("pause", "resume"))
    if pause and resume:
        raise InvalidParams("pause and resume exclude each other: give one")
    empty, limit = (read.optional(order, name, read.count) for name in ("emptyBlocks", "limit"))
    rank = None if order.get("order") is None else read.one_of(order["order"], "order", ("fees", "fifo"))
    orders = node.miner.orders
    if pause or resume:
        orders.paused = bool(pause)
    if empty is not None:
        orders.empty = empty
    if "limit" in order:
        orders.limit = limit
    if rank is not None:
        orders.order = cast("Any", rank)
    return {"paused": orders.paused, "emptyBlocks": orders.empty, "limit": orders.limit, "order": orders.order}


@METHODS.named("devnet_restart")
def restart(node: Node, params: Params) -> bool:
    """Crash and come back: connections die after this answer, nothing listens for `downtimeMs` (0), the pool is lost
    unless `losePool` is false, filters and subscriptions are gone, `keepChain` false goes back to genesis.
    """
    names = ("losePool", "downtimeMs", "dropConnections", "keepChain")
    order = read.an_object(params.optional(0) or {}, "devnet_restart", names)

    def flag(name: str) -> bool:
        value = read.optional(order, name, read.flag)
        return True if value is None else value

    downtime = (read.optional(order, "downtimeMs", read.number) or 0) / 1000
    what = Restart(flag("dropConnections"), downtime)
    outcomes.restart(node, what, lose_pool=flag("losePool"), keep_chain=flag("keepChain"))
    return True
