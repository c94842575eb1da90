"""eth_call and eth_estimateGas: what a transaction would do, without a trace."""

from devnet.api.block_reference import resolve
from devnet.api.call_checks import Unfit
from devnet.api.call_request import parse_call
from devnet.api.gas_estimation import estimate
from devnet.api.overrides import (
    apply_block_overrides,
    apply_state_overrides,
    parse_block_overrides,
    parse_state_overrides,
)
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.simulation import (
    capped_gas,
    context_of,
    raise_failure,
    run_call,
    state_at,
    supplied,
    time_limit,
    transaction_of,
)
from devnet.encoding import data, quantity
from devnet.node import Node

METHODS = Methods()


@METHODS.named("eth_call")
def call(node: Node, params: Params) -> str:
    """Run a call on the state after a block, both with overrides, and return its output. A revert is error 3."""
    request = parse_call(params.fields(0))
    reference = resolve(node, params.optional(1))
    overrides = parse_state_overrides(params.optional(2))
    context = apply_block_overrides(context_of(node, reference), parse_block_overrides(params.optional(3)))
    gas = capped_gas(request)
    with state_at(node, reference):
        context = apply_state_overrides(node.world, context, overrides)
        try:
            outcome = run_call(node, context, transaction_of(node, request, gas), time_limit())
        except Unfit as problem:
            raise supplied(problem, gas) from None
    raise_failure(outcome)
    return data(outcome.output)


@METHODS.named("eth_estimateGas")
def estimate_gas(node: Node, params: Params) -> str:
    """The gas with which a transaction would succeed, at most 1.5 percent above the least."""
    request = parse_call(params.fields(0))
    reference = resolve(node, params.optional(1))
    overrides = parse_state_overrides(params.optional(2))
    context = apply_block_overrides(context_of(node, reference), parse_block_overrides(params.optional(3)))
    with state_at(node, reference):
        context = apply_state_overrides(node.world, context, overrides)
        return quantity(estimate(node, context, request))
