"""eth_estimateGas as geth's eth/gasestimator does it: the least gas that suffices, up to one and a half percent more."""

from contextlib import suppress
from dataclasses import replace
from typing import Final

from devnet.api.call_checks import INTRINSIC_GAS, Unfit
from devnet.api.call_request import CallRequest
from devnet.api.simulation import RPC_GAS_CAP, raise_failure, run_call, time_limit, transaction_of
from devnet.codec.transaction import Transaction
from devnet.errors import SERVER_ERROR, RpcError
from devnet.evm.engine import BlockContext
from devnet.evm.gas import GAS_TRANSACTION
from devnet.evm.transition import Outcome
from devnet.node import Node

ERROR_RATIO: Final = 0.015
"""How far the search may stay above the least gas, as a part of the result."""
_CALL_STIPEND: Final = 2_300


def estimate(node: Node, context: BlockContext, call: CallRequest) -> int:
    """A gas limit with which the call succeeds. Raises RpcError where none does."""
    world = node.world
    tx = transaction_of(node, call, 0)
    high = _ceiling(node, context, call, tx)
    until = time_limit()

    def attempt(gas: int) -> Outcome | None:
        """The outcome with this gas; None where it is too little to begin. Raises RpcError for any other obstacle."""
        try:
            return run_call(node, context, replace(tx, gas=gas), until)
        except Unfit as problem:
            if problem.code == INTRINSIC_GAS:
                return None
            raise RpcError(SERVER_ERROR, f"failed with {gas} gas: {problem.text}") from None

    def suffices(gas: int) -> bool:
        outcome = attempt(gas)
        return outcome is not None and outcome.succeeded

    if not tx.data and tx.to is not None and not world.code(tx.to):
        with suppress(RpcError):  # what stands in its way is named with the most gas there is, as geth does
            if suffices(GAS_TRANSACTION):
                return GAS_TRANSACTION
    outcome = attempt(high)
    if outcome is None or (outcome.error or "").startswith("out of gas"):
        raise RpcError(SERVER_ERROR, f"gas required exceeds allowance ({high})")
    raise_failure(outcome)
    low = outcome.gas_used - 1
    # What was in use before refunds, and what calls within hold back, usually is the answer already.
    likely = (outcome.peak_gas + _CALL_STIPEND) * 64 // 63
    if likely < high:
        if suffices(likely):
            high = likely
        else:
            low = likely
    while low + 1 < high and (high - low) / high >= ERROR_RATIO:
        middle = min(low + (high - low) // 2, low * 2)
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high


def _ceiling(node: Node, context: BlockContext, call: CallRequest, tx: Transaction) -> int:
    """The most gas worth trying: block, fork, funds and the RPC cap limit it."""
    ceiling = call.gas if call.gas is not None and call.gas >= GAS_TRANSACTION else context.gas_limit
    cap = context.fork.transaction_gas_cap
    ceiling = ceiling if cap is None else min(ceiling, cap)
    if tx.max_fee:
        funds = node.world.balance(tx.sender)
        if tx.value and tx.value >= funds:
            raise RpcError(SERVER_ERROR, "insufficient funds for transfer")
        funds -= tx.value
        blobs = tx.blob_gas * tx.max_fee_per_blob_gas
        if blobs and blobs >= funds:
            raise RpcError(SERVER_ERROR, "insufficient funds for gas * price + value")
        ceiling = min(ceiling, (funds - blobs) // tx.max_fee)
    return min(ceiling, RPC_GAS_CAP)
