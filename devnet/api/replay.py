"""Transactions of the chain run again on the state they met."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from devnet.codec.blocks import ZERO_HASH, Block, Header
from devnet.codec.transaction import Transaction
from devnet.evm.engine import BlockContext
from devnet.evm.system_contracts import begin_block
from devnet.evm.transition import apply
from devnet.node import Node


@contextmanager
def at_block(node: Node, block: Block) -> Iterator[BlockContext]:
    """The world after a block, and that block; what is changed is put back on leaving."""
    node.check_known(block.number)
    with node.world.rewound(block.number):
        yield node.miner.context_of(block.header)


@contextmanager
def in_block(node: Node, header: Header, before: Sequence[Transaction] = ()) -> Iterator[BlockContext]:
    """The world as a block of this header began it and `before` left it; put back on leaving. Its parent is on the chain."""
    node.check_known(header.number - 1)
    with node.world.rewound(header.number - 1):
        context = node.miner.context_of(header)
        begin_block(node.world, node.engine, context, header.parent_hash, header.parent_beacon_root or ZERO_HASH)
        for tx in before:
            apply(node.world, node.engine, context, tx)
        yield context


@contextmanager
def branched_at(node: Node, block: Block) -> Iterator[None]:
    """The world after a block with its tries, to prove things of it or to seal further blocks; put back on leaving."""
    node.check_known(block.number)
    with node.world.branched(block.number):
        yield
