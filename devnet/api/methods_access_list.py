"""eth_createAccessList: which addresses and slots a transaction would list to pay less for them (EIP-2930)."""

from dataclasses import replace

from devnet.api.block_reference import resolve
from devnet.api.call_checks import Unfit
from devnet.api.call_request import parse_call
from devnet.api.overrides import apply_state_overrides, parse_state_overrides
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.simulation import capped_gas, context_of, run_call, state_at, time_limit, transaction_of
from devnet.codec.unsigned import encoded
from devnet.encoding import data, quantity
from devnet.errors import SERVER_ERROR, RpcError
from devnet.evm.tracers.access import AccessListTracer
from devnet.evm.transition import created_address
from devnet.node import Node

METHODS = Methods()


@METHODS.named("eth_createAccessList")
def create_access_list(node: Node, params: Params) -> dict[str, object]:
    """Run a call until the list it is given and the list it touches are the same; `error` says that the call failed."""
    request = parse_call(params.fields(0))
    reference = resolve(node, params.optional(1))
    overrides = parse_state_overrides(params.optional(2))
    context = context_of(node, reference)
    tx = transaction_of(node, request, capped_gas(request))
    until = time_limit()
    with state_at(node, reference):
        context = apply_state_overrides(node.world, context, overrides)
        to = tx.to or created_address(tx.sender, node.world.nonce(tx.sender))
        authorities = {item.authority for item in tx.authorizations if item.authority is not None}
        warm = {tx.sender, to, *context.fork.precompiles, *authorities}
        listed = AccessListTracer(tx.access_list, warm).access_list()
        while True:
            tracer = AccessListTracer(listed, warm)
            try:
                outcome = run_call(node, context, replace(tx, access_list=listed), until, tracer)
            except Unfit as problem:
                name = data(encoded(tx).hash)
                raise RpcError(SERVER_ERROR, f"failed to apply transaction: {name} err: {problem.text}") from None
            touched = tracer.access_list()
            if touched == listed:
                break
            listed = touched
    body: dict[str, object] = {
        "accessList": [
            {"address": data(address), "storageKeys": [data(slot) for slot in slots]} for address, slots in listed
        ],
        "gasUsed": quantity(outcome.gas_used),
    }
    return body if outcome.error is None else body | {"error": outcome.error}
