"""One call answered by a node that is not at the head: its blocks, its state, its pool, its followers."""

from collections.abc import Iterator
from contextlib import contextmanager

from devnet.codec.blocks import Block
from devnet.codec.transaction import Transaction
from devnet.errors import Rejected
from devnet.node import Node
from devnet.txpool.pool import Pool
from devnet.views import View, latest

PASSING = -1  # the number of a node that exists for one call only
UNPROPAGATED = "unpropagated"
OLD = 64  # blocks after which a node forgets a transaction it once knew and has seen included


@contextmanager
def seen_from(node: Node, view: View) -> Iterator[None]:
    """Let `node` be this view for the time of one call; what the call submitted is then told to the block builder."""
    gossip = node.views.pool == "gossip" and view.number != PASSING
    pool, feed, former = node.pool, node.feed, node.view
    with view.hiding(node.chain, node.world) as hidden:
        node.feed, node.view = view.feed, view
        if gossip or hidden:
            node.pool = _pool_of(node, view, pool, hidden, gossip=gossip)
        try:
            with node.miner.standing_in(node.pool, hidden[0].header.base_fee if hidden else node.miner.next_base_fee):
                yield
        finally:
            node.pool, node.feed, node.view = pool, feed, former
            brought, view.outbox = view.outbox, []
    for tx in brought:
        view.known[tx.hash] = tx
        _tell_builder(node, tx)


@contextmanager
def behind(node: Node, blocks: int) -> Iterator[None]:
    """Let `node` be some blocks behind its head for the time of one call that reads; never below genesis."""
    with seen_from(node, View(PASSING, blocks, node.feed, latest(node.chain, blocks))):
        yield


def _pool_of(node: Node, view: View, builder: Pool, hidden: list[Block], *, gossip: bool) -> Pool:
    """What waits as this node sees it: of its own or of all, and what the hidden blocks will turn out to include."""
    pool = Pool(node.world, builder.rules)
    if gossip:
        old = node.chain.head.number - OLD
        for tx_hash in list(view.known):
            found = node.chain.find(tx_hash)
            if found is not None and found[0].number < old:
                del view.known[tx_hash]
        waiting = [tx for tx in view.known.values() if node.chain.find(tx.hash) is None]
    else:
        waiting = [tx for block in hidden for tx in block.transactions]
        waiting += [entry.tx for entry in builder.contents()]

    def on_leave(tx: Transaction, kind: str, by: Transaction | None) -> None:
        view.known.pop(tx.hash, None)
        events = node.ledger.events.get(tx.hash)
        if events and events[-1].kind.startswith(UNPROPAGATED):  # nobody else has it
            node.note(tx, kind, by)

    pool.on_leave = on_leave
    pool.readmit(waiting)
    return pool


def _tell_builder(node: Node, tx: Transaction) -> None:
    """The block builder hears of everything; what it does not take stays with the node that took it."""
    if tx.hash in node.pool.by_hash or node.chain.find(tx.hash):
        return
    try:
        executable = node.take_in(tx)
    except Rejected as problem:
        node.note(tx, f"{UNPROPAGATED}: {problem.reason}")
        return
    if executable and node.miner.mode.automine:
        node.miner.mine_all()
