"""Token balances and allowances by hand: the slot a token keeps one in is found by trying those its getter reads."""

from typing import Final

from devnet.api.block_reference import Reference
from devnet.api.call_checks import Unfit
from devnet.api.call_request import parse_call
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.simulation import capped_gas, context_of, run_call, time_limit, transaction_of
from devnet.encoding import data
from devnet.errors import INTERNAL_ERROR, RpcError
from devnet.evm.tracers.access import AccessListTracer
from devnet.node import Node

_BALANCE_OF: Final = bytes.fromhex("70a08231")  # balanceOf(address)
_ALLOWANCE: Final = bytes.fromhex("dd62ed3e")  # allowance(address,address)
METHODS = Methods()


@METHODS.named("anvil_dealERC20", "hardhat_dealERC20")
def deal_erc20(node: Node, params: Params) -> None:
    """Give an account exactly this many units of a token."""
    owner, token, amount = params.address(0), params.address(1), params.number(2)
    _write(node, token, _BALANCE_OF + _word(owner), amount, "balance")


@METHODS.named("anvil_setERC20Allowance")
def set_erc20_allowance(node: Node, params: Params) -> None:
    """Let a spender spend exactly this many units of an owner's token."""
    owner, spender, token, amount = params.address(0), params.address(1), params.address(2), params.number(3)
    _write(node, token, _ALLOWANCE + _word(owner) + _word(spender), amount, "allowance")


def _word(address: bytes) -> bytes:
    return address.rjust(32, b"\0")


def _write(node: Node, token: bytes, getter: bytes, amount: int, what: str) -> None:
    """Write the amount into the slot that makes the getter answer it. Raises RpcError where none does."""
    world = node.world
    for slot in _slots_read(node, token, getter):
        mark = world.snapshot()
        world.write(world.storage(token), slot, amount)
        answered = _call(node, token, getter)
        world.revert(mark)
        if answered == amount.to_bytes(32, "big"):
            node.amend(world.storage(token), slot, amount)
            return
    raise RpcError(INTERNAL_ERROR, f"Unable to set ERC20 {what}, no slot found")


def _slots_read(node: Node, token: bytes, getter: bytes) -> list[int]:
    tracer = AccessListTracer((), set())
    _call(node, token, getter, tracer)
    touched = dict(tracer.access_list()).get(token, ())
    return [int.from_bytes(slot, "big") for slot in touched]


def _call(node: Node, token: bytes, getter: bytes, tracer: AccessListTracer | None = None) -> bytes:
    request = parse_call({"to": data(token), "data": data(getter)})
    context = context_of(node, Reference(node.chain.head))
    try:
        return run_call(node, context, transaction_of(node, request, capped_gas(request)), time_limit(), tracer).output
    except Unfit as problem:
        raise RpcError(INTERNAL_ERROR, problem.text) from None
