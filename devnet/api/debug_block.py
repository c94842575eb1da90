"""Which block a debug_ method means. They are stricter than eth_ methods: numbers need their prefix, as with geth."""

from devnet.api.block_reference import lookup
from devnet.codec.blocks import Block
from devnet.encoding import parse_quantity
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError
from devnet.node import Node

_TAGS = frozenset({"latest", "pending", "safe", "finalized", "earliest"})


def find_debug_block(node: Node, value: object) -> Block | None:
    """The block of a number, hash or tag, None where there is none such; null means latest. Raises InvalidParams."""
    if isinstance(value, str) and value not in _TAGS and value[:2] not in {"0x", "0X"}:
        raise InvalidParams("invalid argument 0: hex string without 0x prefix")
    found = lookup(node, value)
    return found.block if found else None


def debug_block(node: Node, value: object) -> Block:
    """As `find_debug_block`; raises RpcError in geth's words where there is none such."""
    block = find_debug_block(node, value)
    if block is None:
        name = value if isinstance(value, str) and len(value) == 66 else f"#{parse_quantity(value)}"
        raise RpcError(SERVER_ERROR, f"block {name} not found")
    return block
