"""debug_trace methods: transactions and calls run again under a tracer (geth's eth/tracers)."""

from collections.abc import Iterable
from contextlib import AbstractContextManager

from devnet.api.call_checks import Unfit, check
from devnet.api.call_request import parse_call
from devnet.api.debug_block import debug_block
from devnet.api.overrides import (
    apply_block_overrides,
    apply_state_overrides,
    parse_block_overrides,
    parse_state_overrides,
)
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.replay import at_block, in_block
from devnet.api.simulation import capped_gas, context_for, transaction_of
from devnet.api.trace_options import TraceOptions, parse_trace_options
from devnet.codec.block_decoding import decode_block
from devnet.codec.blocks import Block, Header
from devnet.codec.transaction import Transaction, decode
from devnet.encoding import data, parse_quantity
from devnet.errors import SERVER_ERROR, DecodeError, RpcError
from devnet.evm.engine import BlockContext
from devnet.evm.tracers.calls import Place
from devnet.evm.tracers.directory import make_tracer
from devnet.evm.tracers.subject import Ending, Subject
from devnet.evm.tracing import Deadline, ExecutionAborted, Watch
from devnet.evm.transition import apply, created_address
from devnet.node import Node

METHODS = Methods()


@METHODS.named("debug_traceTransaction")
def trace_transaction(node: Node, params: Params) -> object:
    """Run an included transaction again under a tracer."""
    options = parse_trace_options(params.optional(1))
    found = node.chain.find(params.hash(0))
    if found is None:
        raise RpcError(SERVER_ERROR, "transaction not found")
    block, receipt = found
    place = Place(block.hash, block.number, receipt.tx.hash, receipt.index)
    with in_block(node, block.header, block.transactions[: receipt.index]) as context:
        return _trace(node, context, receipt.tx, options, place, receipt.first_log)[0]


@METHODS.named("debug_traceCall")
def trace_call(node: Node, params: Params) -> object:
    """Run a call under a tracer on the state after a block, or after as many of its transactions as `txIndex` says."""
    request = parse_call(params.fields(0))
    options = parse_trace_options(params.optional(2))
    fields = {} if params.optional(2) is None else params.fields(2)
    if params.optional(1) == "pending":
        raise RpcError(SERVER_ERROR, "tracing on top of pending is not supported")
    block = debug_block(node, params.optional(1))
    state_overrides = parse_state_overrides(fields.get("stateOverrides"))
    block_overrides = parse_block_overrides(fields.get("blockOverrides"))
    index = fields.get("txIndex")
    state: AbstractContextManager[BlockContext]
    if index is None:
        state = at_block(node, block)
    else:
        before = block.transactions[: parse_quantity(index, "txIndex")]
        state = in_block(node, _traceable(block).header, before)
    tx = transaction_of(node, request, capped_gas(request))
    world = node.world
    with state as found:
        context = apply_block_overrides(found, block_overrides)
        context = context_for(apply_state_overrides(world, context, state_overrides), tx)
        try:
            check(world, context, tx)
        except Unfit as problem:
            raise RpcError(SERVER_ERROR, f"tracing failed: {problem.text}") from None
        return _trace(node, context, tx, options, Place(), 0)[0]


@METHODS.named("debug_traceBlockByNumber", "debug_traceBlockByHash")
def trace_block(node: Node, params: Params) -> list[dict[str, object]]:
    """Run all transactions of a block again, each under its own tracer."""
    options = parse_trace_options(params.optional(1))
    block = _traceable(debug_block(node, params.required(0)))
    return _trace_all(node, block.header, block.transactions, options)


@METHODS.named("debug_traceBlock")
def trace_raw_block(node: Node, params: Params) -> list[dict[str, object]]:
    """Run the transactions of a block given as RLP, whose parent must be of the chain, each under its own tracer."""
    options = parse_trace_options(params.optional(1))
    try:
        block = decode_block(params.data(0))
        transactions = [decode(raw) for raw in block.transactions]
    except DecodeError as problem:
        raise RpcError(SERVER_ERROR, f"could not decode block: {problem}") from None
    parent = block.header.parent_hash
    if block.header.number == 0:
        raise RpcError(SERVER_ERROR, "genesis is not traceable")
    if parent not in node.chain.by_hash:
        raise RpcError(SERVER_ERROR, f"parent {data(parent)} not found")
    return _trace_all(node, block.header, transactions, options)


def _trace_all(
    node: Node, header: Header, transactions: Iterable[Transaction], options: TraceOptions
) -> list[dict[str, object]]:
    traces: list[dict[str, object]] = []
    first_log = 0
    with in_block(node, header) as context:
        for index, tx in enumerate(transactions):
            place = Place(header.hash, header.number, tx.hash, index)
            result, logs = _trace(node, context, tx, options, place, first_log)
            first_log += logs
            traces.append({"txHash": data(tx.hash), "result": result})
    return traces


def _trace(
    node: Node, context: BlockContext, tx: Transaction, options: TraceOptions, place: Place, first_log: int
) -> tuple[object, int]:
    """What the tracer has to say, and how many logs there were. The transaction's changes stay in the world."""
    world = node.world
    subject = Subject(
        world=world,
        block=context,
        sender=tx.sender,
        to=tx.to or created_address(tx.sender, world.nonce(tx.sender)),
        gas=tx.gas,
        first_log=first_log,
        authorities=tuple(item.authority for item in tx.authorizations if item.authority is not None),
    )
    tracer = make_tracer(options.tracer, subject, options.options, place)
    try:
        outcome = apply(world, node.engine, context, tx, Watch(tracer, Deadline(options.seconds)))
    except ExecutionAborted:
        raise RpcError(SERVER_ERROR, "execution timeout") from None
    ending = Ending(outcome.gas_used, outcome.output, outcome.error, outcome.reverted)
    return tracer.result(ending), len(outcome.logs)


def _traceable(block: Block) -> Block:
    if block.number == 0:
        raise RpcError(SERVER_ERROR, "genesis is not traceable")
    return block
