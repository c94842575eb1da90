"""Calls that leave nothing behind: the block they run in, the state they run on, and how they end."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from devnet.api.block_reference import Reference
from devnet.api.call_checks import Unfit, check
from devnet.api.call_request import CallRequest
from devnet.codec.transaction import ACCESS_LIST, BLOB, DYNAMIC_FEE, LEGACY, SET_CODE, Transaction
from devnet.encoding import data
from devnet.errors import EXECUTION_REVERTED, SERVER_ERROR, RpcError
from devnet.evm.engine import BlockContext
from devnet.evm.revert_reason import revert_reason
from devnet.evm.tracing import Deadline, ExecutionAborted, Tracer, Watch
from devnet.evm.transition import Outcome, apply
from devnet.node import Node

RPC_GAS_CAP: Final = 50_000_000
"""The most gas a call runs with, and what it gets where it names none (geth --rpc.gascap)."""
RPC_EVM_SECONDS: Final = 5
"""How long one call may run (geth --rpc.evmtimeout): the devnet answers nobody else meanwhile."""


def context_of(node: Node, reference: Reference) -> BlockContext:
    """The block a call at this reference sees itself in."""
    if reference.pending:
        return node.miner.next_context()
    return node.miner.context_of(reference.block.header)


@contextmanager
def state_at(node: Node, reference: Reference) -> Iterator[None]:
    """The world as it was after a block; put back on leaving. Pending holds the pool's transactions."""
    node.check_known(reference.block.number)
    with node.world.rewound(reference.block.number):
        if reference.pending:
            node.miner.fill(node.miner.next_context())
        yield


def transaction_of(node: Node, call: CallRequest, gas: int, nonce: int = 0) -> Transaction:
    """The transaction a call stands for, unsigned and without hash. Raises RpcError where it is none of this chain."""
    chain_id = node.settings.chain_id
    if call.chain_id is not None and call.chain_id != chain_id:
        raise RpcError(SERVER_ERROR, f"chainId does not match node's (have={call.chain_id}, want={chain_id})")
    if call.blob_hashes is not None and call.to is None:
        raise RpcError(SERVER_ERROR, "blob transaction of type create")
    if call.authorizations is not None:
        kind = SET_CODE
    elif call.blob_hashes is not None:
        kind = BLOB
    elif call.gas_price is None:
        kind = DYNAMIC_FEE
    else:
        kind = LEGACY if call.access_list is None else ACCESS_LIST
    price = call.gas_price
    return Transaction(
        raw=b"",
        hash=b"",
        type=kind,
        chain_id=chain_id,
        nonce=nonce if call.nonce is None else call.nonce,
        max_priority_fee=(call.max_priority_fee or 0) if price is None else price,
        max_fee=(call.max_fee or 0) if price is None else price,
        gas=gas,
        to=call.to,
        value=call.value,
        data=call.data,
        access_list=call.access_list or (),
        v=0,
        r=0,
        s=0,
        signing_hash=b"",
        given_sender=call.sender or bytes(20),
        max_fee_per_blob_gas=call.max_blob_fee or 0,
        blob_hashes=call.blob_hashes or (),
        authorizations=call.authorizations or (),
    )


def context_for(context: BlockContext, tx: Transaction) -> BlockContext:
    """The block as a call without a price sees it: its base fees are 0, so that the price is none below them."""
    if not tx.price(context.base_fee):
        context = replace(context, base_fee=0)
    free_blobs = tx.type == BLOB and not tx.max_fee_per_blob_gas
    return replace(context, blob_base_fee=0) if free_blobs else context


def capped_gas(call: CallRequest) -> int:
    """The gas a call gets: what it names, at most the cap."""
    return RPC_GAS_CAP if call.gas is None else min(call.gas, RPC_GAS_CAP)


def time_limit() -> Deadline:
    """When a call that begins now is to be stopped."""
    return Deadline(RPC_EVM_SECONDS)


def run_call(
    node: Node, context: BlockContext, tx: Transaction, until: Deadline, tracer: Tracer | None = None
) -> Outcome:
    """Run a call and undo it. Raises Unfit where it cannot begin, RpcError where it takes too long."""
    world = node.world
    context = context_for(context, tx)
    check(world, context, tx)
    mark = world.snapshot()
    try:
        return apply(world, node.engine, context, tx, Watch(tracer, until))
    except ExecutionAborted:
        raise timed_out() from None
    finally:
        world.revert(mark)


def timed_out() -> RpcError:
    """geth's error for a call that takes too long."""
    return RpcError(SERVER_ERROR, f"execution aborted (timeout = {RPC_EVM_SECONDS}s)")


def supplied(problem: Unfit, gas: int, code: int = SERVER_ERROR) -> RpcError:
    """geth's error for a call that could not begin."""
    return RpcError(code, f"err: {problem.text} (supplied gas {gas})")


def raise_failure(outcome: Outcome) -> None:
    """Turn a failed call into geth's error: code 3 with the data of a revert, -32000 for a halt."""
    if outcome.error is None:
        return
    if outcome.reverted:
        raise RpcError(EXECUTION_REVERTED, reverted_text(outcome.output), data(outcome.output))
    raise RpcError(SERVER_ERROR, outcome.error)


def reverted_text(output: bytes) -> str:
    """geth's sentence for a revert, with the reason where the data holds one."""
    reason = revert_reason(output)
    return f"execution reverted: {reason}" if reason is not None else "execution reverted"
