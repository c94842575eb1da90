"""eth_ methods that read accounts, now or at an older block, and that run calls without a trace."""

from devnet.api.block_reference import PENDING, Reference, resolve
from devnet.api.call_request import parse_call
from devnet.api.params import Fields, Params
from devnet.api.registry import Methods
from devnet.api.simulation import check_funds, context_of, estimate, raise_failure, run_call, state_at
from devnet.encoding import data, parse_data, quantity
from devnet.errors import InvalidParams
from devnet.evm.world import Column
from devnet.node import Node

METHODS = Methods()


def _read(node: Node, column: Column, key: bytes | int, reference: Reference) -> object:
    if reference.pending:
        with state_at(node, reference, {}):
            return column.get(key)
    if reference.block is node.chain.head:
        return column.get(key)
    return column.at(key, reference.block.number)


@METHODS.named("eth_getBalance")
def get_balance(node: Node, params: Params) -> str:
    """Wei held by an account after a block."""
    value = _read(node, node.world.balances, params.address(0), resolve(node, params.optional(1)))
    return quantity(value if isinstance(value, int) else 0)


@METHODS.named("eth_getTransactionCount")
def get_transaction_count(node: Node, params: Params) -> str:
    """An account's nonce after a block; with `pending`, after its contiguous transactions in the pool."""
    address = params.address(0)
    if params.optional(1) == PENDING:
        return quantity(node.pool.next_nonce(address))
    value = _read(node, node.world.nonces, address, resolve(node, params.optional(1)))
    return quantity(value if isinstance(value, int) else 0)


@METHODS.named("eth_getCode")
def get_code(node: Node, params: Params) -> str:
    """Deployed code after a block."""
    value = _read(node, node.world.codes, params.address(0), resolve(node, params.optional(1)))
    return data(value if isinstance(value, bytes) else b"")


@METHODS.named("eth_getStorageAt")
def get_storage_at(node: Node, params: Params) -> str:
    """One 32-byte word of storage after a block."""
    address, slot = params.address(0), _slot(params)
    reference = resolve(node, params.optional(2))
    column = node.world.storages.get(address)
    value = _read(node, column, slot, reference) if column is not None else 0
    return data((value if isinstance(value, int) else 0).to_bytes(32, "big"))


def _slot(params: Params) -> int:
    """A slot number as quantity or as bytes with leading zeros, 32 at most."""
    value = params.required(1)
    if isinstance(value, str) and value.startswith("0x"):
        digits = value[2:]
        raw = parse_data("0x" + "0" * (len(digits) % 2) + digits, "storage slot")
        if len(raw) > 32:
            raise InvalidParams(f"storage slot too long (want at most 32 bytes): {value}")
        return int.from_bytes(raw, "big")
    return params.number(1)


def _overrides(params: Params, at: int) -> Fields:
    return {} if params.optional(at) is None else params.fields(at)


@METHODS.named("eth_call")
def call(node: Node, params: Params) -> str:
    """Run a call on the state after a block and return its output. A revert is error 3 with its data."""
    request = parse_call(params.fields(0))
    reference = resolve(node, params.optional(1))
    context = context_of(node, reference)
    gas = min(request.gas or context.gas_limit, context.gas_limit)
    with state_at(node, reference, _overrides(params, 2)):
        check_funds(node, request, gas)
        execution, _ = run_call(node, context, request, gas)
    raise_failure(execution)
    return data(execution.output)


@METHODS.named("eth_estimateGas")
def estimate_gas(node: Node, params: Params) -> str:
    """The least gas with which a transaction would succeed."""
    request = parse_call(params.fields(0))
    reference = resolve(node, params.optional(1))
    with state_at(node, reference, _overrides(params, 2)):
        return quantity(estimate(node, context_of(node, reference), request))
