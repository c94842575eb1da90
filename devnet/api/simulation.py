"""Calls that leave nothing behind: eth_call and eth_estimateGas."""

from collections.abc import Iterator
from contextlib import contextmanager

from devnet.api.block_reference import Reference
from devnet.api.call_request import CallRequest, apply_overrides
from devnet.api.params import Fields
from devnet.encoding import data
from devnet.errors import EXECUTION_REVERTED, SERVER_ERROR, RpcError
from devnet.evm.engine import BlockContext, Execution, Message
from devnet.evm.evm_state import is_precompile
from devnet.evm.gas import GAS_TRANSACTION, floor_gas, intrinsic_gas
from devnet.evm.transition import REFUND_QUOTIENT, created_address, run
from devnet.node import Node

_ERROR_STRING = bytes.fromhex("08c379a0")  # Error(string)
_PANIC = bytes.fromhex("4e487b71")  # Panic(uint256)


def context_of(node: Node, reference: Reference) -> BlockContext:
    """The block a call at this reference sees itself in."""
    if reference.pending:
        return node.miner.next_context()
    head = reference.block.header
    return BlockContext(
        number=head.number,
        timestamp=head.timestamp,
        coinbase=head.coinbase,
        prevrandao=head.prevrandao,
        gas_limit=head.gas_limit,
        base_fee=head.base_fee,
        chain_id=node.settings.chain_id,
        block_hash=node.chain.block_hash,
    )


@contextmanager
def state_at(node: Node, reference: Reference, overrides: Fields) -> Iterator[None]:
    """The world as it was after a block, with overrides; put back on leaving. Pending holds the pool's transactions."""
    world = node.world
    with world.rewound(reference.block.number):
        if reference.pending:
            node.miner.fill(node.miner.next_context())
        apply_overrides(world, overrides)
        yield


def run_call(node: Node, context: BlockContext, call: CallRequest, gas: int) -> tuple[Execution, int]:
    """Run a call with this much gas; returns how it ended and what a transaction would have paid for."""
    world = node.world
    sender = call.sender or bytes(20)
    access = call.access_list or ()
    needed = max(intrinsic_gas(call.data, access, creation=call.to is None), floor_gas(call.data))
    if gas < needed:
        text = f"intrinsic gas too low: have {gas}, want {needed} (supplied gas {gas})"
        raise RpcError(SERVER_ERROR, text)
    mark = world.snapshot()
    world.begin_transaction()
    nonce = world.nonce(sender) if call.nonce is None else call.nonce
    intrinsic = intrinsic_gas(call.data, access, creation=call.to is None)
    message = Message(
        sender=sender,
        to=call.to,
        value=call.value,
        data=call.data,
        gas=gas - intrinsic,
        gas_price=call.gas_price or call.max_fee or 0,
        created=created_address(sender, nonce) if call.to is None else None,
        access_list=access,
    )
    world.write(world.nonces, sender, nonce + 1)
    try:
        execution = run(world, node.engine, context, message)
    finally:
        world.revert(mark)
    used = gas - execution.gas_left
    used -= min(execution.refund, used // REFUND_QUOTIENT)
    return execution, max(used, floor_gas(call.data))


def check_funds(node: Node, call: CallRequest, gas: int) -> None:
    """A call that names a price must be able to pay it, any call its value. Raises RpcError in geth's words."""
    sender = call.sender or bytes(20)
    want = call.value + gas * (call.gas_price or call.max_fee or 0)
    have = node.world.balance(sender)
    if have < want:
        name = data(sender)
        text = f"insufficient funds for gas * price + value: address {name} have {have} want {want}"
        raise RpcError(SERVER_ERROR, text)


def raise_failure(execution: Execution) -> None:
    """Turn a failed call into geth's error: code 3 with the data of a revert, -32000 for a halt."""
    if execution.error is None:
        return
    if execution.reverted:
        reason = _reason(execution.output)
        text = f"execution reverted: {reason}" if reason else "execution reverted"
        raise RpcError(EXECUTION_REVERTED, text, data(execution.output))
    raise RpcError(SERVER_ERROR, execution.error)


def _reason(output: bytes) -> str | None:
    if output[:4] == _ERROR_STRING and len(output) >= 68:
        length = int.from_bytes(output[36:68], "big")
        return output[68 : 68 + length].decode(errors="replace")
    if output[:4] == _PANIC and len(output) == 36:
        return f"panic code {hex(int.from_bytes(output[4:], 'big'))}"
    return None


def estimate(node: Node, context: BlockContext, call: CallRequest) -> int:
    """The least gas with which the call succeeds. Raises RpcError where none is enough."""
    world = node.world
    plain = call.to is not None and not world.code(call.to) and not is_precompile(call.to)
    if plain and not call.data and not call.access_list:
        check_funds(node, call, 0)
        return GAS_TRANSACTION
    ceiling = min(call.gas or context.gas_limit, context.gas_limit)
    price = call.gas_price or call.max_fee or 0
    if price:
        check_funds(node, call, 0)
        ceiling = min(ceiling, (world.balance(call.sender or bytes(20)) - call.value) // price)
    execution, used = run_call(node, context, call, ceiling)
    if execution.error == "out of gas":
        raise RpcError(SERVER_ERROR, f"gas required exceeds allowance ({ceiling})")
    raise_failure(execution)
    if _enough(node, context, call, used):
        return used
    low, high = used, ceiling
    while low + 1 < high:
        middle = min((low + high) // 2, low * 2)
        if _enough(node, context, call, middle):
            high = middle
        else:
            low = middle
    return high


def _enough(node: Node, context: BlockContext, call: CallRequest, gas: int) -> bool:
    return run_call(node, context, call, gas)[0].error is None
