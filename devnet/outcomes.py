"""What a tester orders to happen to the chain and its pool: evictions, reorgs with a chosen outcome, a restart."""

from collections.abc import Iterable
from dataclasses import dataclass

from devnet.codec.blocks import Block
from devnet.codec.transaction import Transaction
from devnet.errors import INVALID_PARAMS, RpcError
from devnet.faults.draw import chance
from devnet.node import Node, Restart


@dataclass(frozen=True, slots=True)
class Reorg:
    """Replace the newest `depth` blocks by `new_depth` others.

    `keep` are hashes of orphaned transactions to be included again, each in the new block at its old place (the last one
    where there are fewer); None keeps all. `inject` goes into the first new block, before them: with the nonce of an
    orphan it wins. Orphans neither included nor in `drop` return to the pool with `requeue`, else they are lost.
    """

    depth: int
    new_depth: int
    keep: frozenset[bytes] | None
    inject: tuple[Transaction, ...]
    drop: frozenset[bytes]
    requeue: bool


@dataclass(frozen=True, slots=True)
class Reorganized:
    """What became of the orphans, and which injected ones could not be included (nonce, fees, gas or funds)."""

    included: list[Transaction]
    requeued: list[Transaction]
    lost: list[Transaction]
    refused: list[Transaction]


def reorganize(node: Node, order: Reorg) -> Reorganized:
    """Carry out a reorg. Followers hear of orphaned blocks first. Raises RpcError where the chain is not that long."""
    head = node.chain.head.number
    if order.depth > head:
        raise RpcError(INVALID_PARAMS, f"cannot reorganize {order.depth} blocks: the chain has {head} above genesis")
    removed = node.chain.blocks[head - order.depth + 1 :]
    orphans = node.unwind(head - order.depth)
    for tx in order.inject:
        node.ledger.record(tx.raw, tx.hash, tx, "injected")
    for contents in _contents(order, removed):
        node.miner.mine(use_pool=False, chosen=contents)
    included = [tx for tx in orphans if node.chain.find(tx.hash)]
    requeued, lost = _settle(node, order, [tx for tx in orphans if not node.chain.find(tx.hash)])
    refused = [tx for tx in order.inject if not node.chain.find(tx.hash)]
    return Reorganized(included, requeued, lost, refused)


def _contents(order: Reorg, removed: list[Block]) -> list[list[Transaction]]:
    contents: list[list[Transaction]] = [[] for _ in range(order.new_depth)]
    if contents:
        contents[0] += order.inject
    for at, block in enumerate(removed):
        kept = [
            tx
            for tx in block.transactions
            if tx.hash not in order.drop and (order.keep is None or tx.hash in order.keep)
        ]
        if contents:
            contents[min(at, order.new_depth - 1)] += kept
    return contents


def _settle(node: Node, order: Reorg, left: list[Transaction]) -> tuple[list[Transaction], list[Transaction]]:
    """Give orphans that are in no block back to the pool, or lose them."""
    wanted = [tx for tx in left if order.requeue and tx.hash not in order.drop]
    node.pool.readmit(wanted)
    for tx in left:
        if tx not in wanted:
            node.note(tx, "dropped" if tx.hash in order.drop else "lost")
            node.views.forget(tx.hash)
    for tx_hash in order.drop:
        evict(node, [tx_hash], "dropped")
    requeued = [tx for tx in wanted if tx.hash in node.pool.by_hash]
    return requeued, [tx for tx in left if tx not in requeued]


def evict(node: Node, hashes: Iterable[bytes], why: str = "evicted", *, only: int | None = None) -> list[bytes]:
    """Take transactions out of the pool and every node's own, or out of one node's `only`; those that were somewhere."""
    gone = []
    for tx_hash in hashes:
        if only is None:
            known = node.views.forget(tx_hash)
            if node.pool.evict(tx_hash, why) or known:
                gone.append(tx_hash)
        elif node.views.nodes[only].known.pop(tx_hash, None) is not None:
            gone.append(tx_hash)
    return gone


def cheapest(node: Node, count: int) -> list[bytes]:
    """The hashes of the waiting transactions with the lowest tips at the next block's base fee, lowest first."""
    base_fee = node.miner.next_context().base_fee
    entries = sorted(node.pool.contents(), key=lambda entry: (entry.tx.tip(base_fee), -entry.arrival))
    return [entry.tx.hash for entry in entries[:count]]


def chosen_by_chance(node: Node, p: float, seed: int) -> list[bytes]:
    """The hashes of waiting transactions that a draw of their own picks, each with probability `p`."""
    hashes = [entry.tx.hash for entry in node.pool.contents()]
    return [tx_hash for tx_hash in hashes if chance(seed, "evict", tx_hash.hex(), 1).random() < p]


def restart(node: Node, order: Restart, *, lose_pool: bool, keep_chain: bool) -> None:
    """End and begin anew as a process does: filters are gone, the pool and the chain as ordered.

    Rules, standing orders and the clock go on: they are the tester's. The server does what is left of `order`.
    """
    if lose_pool:
        evict(node, [entry.tx.hash for entry in node.pool.contents()], "lost")
        for view in node.views.nodes:
            for tx in view.known.values():
                if node.chain.find(tx.hash) is None:
                    node.note(tx, "lost")
            view.known.clear()
    if not keep_chain:
        waiting = [entry.tx for entry in node.pool.contents()]
        orders, clock = node.miner.orders, node.clock.save()
        node.reset()
        node.miner.orders = orders
        node.clock.restore(clock)
        node.pool.readmit(waiting)
    for feed in (node.feed, *(view.feed for view in node.views.nodes)):
        feed.forget_filters()
    node.lives += 1
    node.restart = order
