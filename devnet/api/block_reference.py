"""Which block a parameter means: a number, a hash, a tag, or the object of EIP-1898."""

from dataclasses import dataclass

from devnet.codec.blocks import Block
from devnet.encoding import parse_hash, parse_quantity
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError
from devnet.node import Node

PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Reference:
    """A block of the chain, or with `pending` the one that would come next on top of it."""

    block: Block
    pending: bool = False


def lookup(node: Node, value: object) -> Reference | None:
    """The block, None where the chain has none such. Null means latest. Raises InvalidParams."""
    chain = node.chain
    if value is None or value == "latest":
        return Reference(chain.head)
    if value == PENDING:
        return Reference(chain.head, pending=True)
    if isinstance(value, dict):
        if "blockHash" in value:
            value = value["blockHash"]
        elif "blockNumber" in value:
            return lookup(node, value["blockNumber"])
        else:
            raise InvalidParams("invalid argument: a block object needs blockHash or blockNumber")
    named = {"earliest": chain.blocks[0], "safe": chain.safe, "finalized": chain.finalized}
    if isinstance(value, str) and value in named:
        return Reference(named[value])
    if isinstance(value, str) and len(value) == 66:
        found = chain.by_hash.get(parse_hash(value, "block hash"))
    else:
        found = chain.at(parse_quantity(value, "block number"))
    return Reference(found) if found else None


def resolve(node: Node, value: object) -> Reference:
    """The block, or geth's -32000 "header not found" where the chain has none such."""
    found = lookup(node, value)
    if found is None:
        raise RpcError(SERVER_ERROR, "header not found")
    return found
