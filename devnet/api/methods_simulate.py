"""eth_simulateV1: several blocks of calls on top of a block, each seeing what the ones before did (execution-apis)."""

from typing import cast

from devnet.api.block_reference import resolve
from devnet.api.call_request import parse_call
from devnet.api.overrides import parse_block_overrides, parse_state_overrides
from devnet.api.params import Fields, Params
from devnet.api.registry import Methods
from devnet.api.replay import branched_at
from devnet.api.simulated_chain import (
    CLIENT_LIMIT_EXCEEDED,
    MAX_BLOCKS,
    SimulatedBlock,
    SimulatedChain,
    SimulationOptions,
    in_order,
)
from devnet.errors import InvalidParams, RpcError
from devnet.node import Node

METHODS = Methods()


@METHODS.named("eth_simulateV1")
def simulate(node: Node, params: Params) -> list[dict[str, object]]:
    """Blocks with the results of their calls; nothing of it stays."""
    fields = params.fields(0)
    entries = fields.get("blockStateCalls")
    if not isinstance(entries, list) or not entries:
        raise InvalidParams("empty input")
    if len(entries) > MAX_BLOCKS:
        raise RpcError(CLIENT_LIMIT_EXCEEDED, "too many blocks")
    base = resolve(node, params.optional(1)).block
    blocks = in_order(base.header, [_block(entry) for entry in entries])
    options = SimulationOptions(
        trace_transfers=_flag(fields, "traceTransfers"),
        validating=_flag(fields, "validation"),
        full_transactions=_flag(fields, "returnFullTransactions"),
    )
    with branched_at(node, base):
        chain = SimulatedChain(node, base, options)
        return [chain.extend(block) for block in blocks]


def _block(entry: object) -> SimulatedBlock:
    if not isinstance(entry, dict):
        raise InvalidParams("invalid argument 0: blockStateCalls has an entry that is no object")
    calls = entry.get("calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise InvalidParams("invalid argument 0: calls is not an array of objects")
    return SimulatedBlock(
        overrides=parse_block_overrides(entry.get("blockOverrides")),
        accounts=parse_state_overrides(entry.get("stateOverrides")),
        calls=[parse_call(cast("Fields", call)) for call in calls],
    )


def _flag(fields: Fields, name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidParams(f"invalid argument 0: {name} is not a boolean")
    return bool(value)
