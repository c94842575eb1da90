"""Blocks that are only thought of: what eth_simulateV1 builds on top of a block (geth's internal/ethapi/simulate)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from devnet.api import shapes
from devnet.api.call_checks import Unfit, check
from devnet.api.call_request import CallRequest
from devnet.api.overrides import AccountOverride, BlockOverrides, apply_block_overrides, apply_state_overrides
from devnet.api.simulation import RPC_GAS_CAP, reverted_text, supplied, time_limit, timed_out, transaction_of
from devnet.codec.blocks import ZERO_HASH, Block, Header, Log, Receipt
from devnet.codec.transaction import LEGACY, Transaction
from devnet.codec.unsigned import encoded
from devnet.encoding import data, quantity
from devnet.errors import EXECUTION_REVERTED, RpcError
from devnet.evm.blob_gas import blob_base_fee, next_excess
from devnet.evm.engine import BlockContext
from devnet.evm.proof_of_work import pay_rewards
from devnet.evm.system_contracts import begin_block, end_block
from devnet.evm.tracers.transfers import TransferTracer
from devnet.evm.tracing import ExecutionAborted, Watch
from devnet.evm.transition import Outcome, apply, receipt_of
from devnet.node import Node

MAX_BLOCKS: Final = 256
SECONDS_PER_BLOCK: Final = 12
BLOCK_GAS_LIMIT_REACHED: Final = -38015
BLOCK_NUMBER_INVALID: Final = -38020
BLOCK_TIMESTAMP_INVALID: Final = -38021
CLIENT_LIMIT_EXCEEDED: Final = -38026
VM_ERROR: Final = -32015


@dataclass(frozen=True, slots=True)
class SimulatedBlock:
    """What one block is to hold: calls in order, and what is overridden before them."""

    overrides: BlockOverrides
    accounts: Sequence[AccountOverride]
    calls: Sequence[CallRequest]


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """`validating` checks nonces and fees as a block does; `trace_transfers` logs movements of ether."""

    trace_transfers: bool
    validating: bool
    full_transactions: bool


def in_order(base: Header, blocks: Sequence[SimulatedBlock]) -> list[SimulatedBlock]:
    """The blocks with a number and a time each, and empty ones where numbers leave a gap.

    Raises RpcError where they do not follow one another, or are more than 256.
    """
    found: list[SimulatedBlock] = []
    number, time = base.number, base.timestamp
    for block in blocks:
        wanted = number + 1 if block.overrides.number is None else block.overrides.number
        if wanted <= number:
            raise RpcError(BLOCK_NUMBER_INVALID, f"block numbers must be in order: {wanted} <= {number}")
        if wanted - base.number > MAX_BLOCKS:
            raise RpcError(CLIENT_LIMIT_EXCEEDED, "too many blocks")
        for missing in range(number + 1, wanted):
            time += SECONDS_PER_BLOCK
            found.append(SimulatedBlock(BlockOverrides(number=missing, time=time), (), ()))
        earliest, number = time, wanted
        time = earliest + SECONDS_PER_BLOCK if block.overrides.time is None else block.overrides.time
        if time <= earliest:
            raise RpcError(BLOCK_TIMESTAMP_INVALID, f"block timestamps must be in order: {time} <= {earliest}")
        found.append(replace(block, overrides=replace(block.overrides, number=number, time=time)))
    return found


class SimulatedChain:
    """Makes blocks one after another on the branched world of a node. The caller leaves the branch."""

    def __init__(self, node: Node, base: Block, options: SimulationOptions) -> None:
        self._node = node
        self._options = options
        self._parent = base.header
        self._base = base
        self._hashes: dict[int, bytes] = {}
        self._gas = RPC_GAS_CAP
        self._deadline = time_limit()

    def extend(self, block: SimulatedBlock) -> shapes.Json:
        """Make the next block; its JSON with the results of its calls. Raises RpcError for a call that cannot begin."""
        node, world = self._node, self._node.world
        context = apply_block_overrides(self._context(block.overrides), block.overrides)
        context = apply_state_overrides(world, context, block.accounts)
        parent = self._parent.hash
        begin_block(world, node.engine, context, parent, ZERO_HASH)
        receipts: list[Receipt] = []
        results: list[tuple[Outcome, Sequence[tuple[int, Log]]]] = []
        count = 0
        for call in block.calls:
            tx = self._transaction(call, context, receipts)
            tracer = TransferTracer(count, transfers=self._options.trace_transfers)
            outcome = self._run(tx, context, tracer)
            count = tracer.count
            self._gas -= outcome.gas_used
            receipts.append(receipt_of(tx, outcome, context, receipts))
            results.append((outcome, tracer.logs))
        requests = end_block(world, node.engine, context, receipts)
        pay_rewards(world, context.fork, context.number, context.coinbase)
        world.seal(context.number)
        made = node.miner.assemble(context, parent, receipts, requests)
        self._parent = made.header
        self._hashes[made.number] = made.hash
        return shapes.block(made, full=self._options.full_transactions) | {"calls": _calls(made, results)}

    def _context(self, overrides: BlockOverrides) -> BlockContext:
        parent = self._parent
        number, time = overrides.number, overrides.time
        assert number is not None, "blocks were put in order"
        assert time is not None, "blocks were put in order"
        fork = self._node.miner.schedule.at(number, time, 0 if parent.difficulty else None)
        excess = next_excess(fork, parent)
        return BlockContext(
            number=number,
            timestamp=time,
            coinbase=parent.coinbase,
            prevrandao=ZERO_HASH,
            gas_limit=parent.gas_limit,
            base_fee=parent.next_base_fee() if self._options.validating and fork.has_base_fee else 0,
            chain_id=self._node.settings.chain_id,
            block_hash=self._block_hash,
            fork=fork,
            blob_base_fee=blob_base_fee(fork, excess),
            excess_blob_gas=excess,
            difficulty=parent.difficulty,
        )

    def _block_hash(self, number: int) -> bytes:
        if number <= self._base.number:
            return self._node.chain.block_hash(number)
        return self._hashes.get(number, b"")

    def _transaction(self, call: CallRequest, context: BlockContext, before: Sequence[Receipt]) -> Transaction:
        used = before[-1].cumulative_gas if before else 0
        gas = context.gas_limit - used if call.gas is None else call.gas
        if used + gas > context.gas_limit:
            raise RpcError(BLOCK_GAS_LIMIT_REACHED, f"block gas limit reached: {used + gas} >= {context.gas_limit}")
        sender = call.sender or bytes(20)
        tx = transaction_of(self._node, call, min(gas, self._gas), self._node.world.nonce(sender))
        if call.gas_price is not None:
            tx = replace(tx, type=LEGACY, chain_id=None)
        return encoded(tx)

    def _run(self, tx: Transaction, context: BlockContext, tracer: TransferTracer) -> Outcome:
        world = self._node.world
        try:
            check(world, context, tx, validating=self._options.validating)
        except Unfit as problem:
            raise supplied(problem, tx.gas, problem.code) from None
        try:
            return apply(world, self._node.engine, context, tx, Watch(tracer, self._deadline))
        except ExecutionAborted:
            raise timed_out() from None


def _calls(block: Block, results: Sequence[tuple[Outcome, Sequence[tuple[int, Log]]]]) -> list[Mapping[str, object]]:
    calls: list[Mapping[str, object]] = []
    for receipt, (outcome, numbered) in zip(block.receipts, results, strict=True):
        shaped = shapes.logs(block, replace(receipt, logs=tuple(log for _, log in numbered)))
        body: dict[str, object] = {
            "returnData": data(b"" if outcome.error else outcome.output),
            "logs": [log | {"logIndex": quantity(at)} for (at, _), log in zip(numbered, shaped, strict=True)],
            "gasUsed": quantity(outcome.gas_used),
            "maxUsedGas": quantity(outcome.peak_gas),
            "status": quantity(int(outcome.succeeded)),
        }
        if outcome.reverted:
            text = reverted_text(outcome.output)
            body["error"] = {"message": text, "code": EXECUTION_REVERTED, "data": data(outcome.output)}
        elif outcome.error is not None:
            body["error"] = {"message": outcome.error, "code": VM_ERROR}
        calls.append(body)
    return calls
