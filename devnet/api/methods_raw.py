"""debug_ methods that give chain data as bytes, and state by hashes; and debug_setHead."""

from devnet.api.debug_block import debug_block, find_debug_block
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.replay import in_block
from devnet.codec.keccak import keccak
from devnet.encoding import data, parse_data
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError
from devnet.node import Node

METHODS = Methods()


@METHODS.named("debug_getRawHeader")
def get_raw_header(node: Node, params: Params) -> str:
    """The RLP of a header; `0x` where there is none such."""
    block = find_debug_block(node, params.required(0))
    return data(block.header.rlp if block else b"")


@METHODS.named("debug_getRawBlock")
def get_raw_block(node: Node, params: Params) -> str:
    """The RLP of a block; `0x` where there is none such."""
    block = find_debug_block(node, params.required(0))
    return data(block.rlp if block else b"")


@METHODS.named("debug_getRawReceipts")
def get_raw_receipts(node: Node, params: Params) -> list[str] | None:
    """The receipts of a block as its receipts trie holds them; null where there is none such."""
    block = find_debug_block(node, params.required(0))
    return [data(receipt.encode()) for receipt in block.receipts] if block else None


@METHODS.named("debug_getRawTransaction")
def get_raw_transaction(node: Node, params: Params) -> str:
    """A transaction's bytes, included or waiting; `0x` where there is none such."""
    value = params.required(0)
    if isinstance(value, str) and value[:2] not in {"0x", "0X"}:
        text = "json: cannot unmarshal hex string without 0x prefix into Go value of type common.Hash"
        raise InvalidParams(f"invalid argument 0: {text}")
    tx_hash = params.hash(0)
    found = node.chain.find(tx_hash)
    if found is not None:
        return data(found[1].tx.raw)
    waiting = node.pool.by_hash.get(tx_hash)
    return data(waiting.tx.raw if waiting else b"")


@METHODS.named("debug_codeByHash")
def code_by_hash(node: Node, params: Params) -> str | None:
    """Code some account of the head state holds, by its keccak; null where none does (anvil)."""
    wanted = params.hash(0)
    for code in node.world.codes.values():
        if code and keccak(code) == wanted:
            return data(code)
    return None


@METHODS.named("debug_storageRangeAt")
def storage_range_at(node: Node, params: Params) -> dict[str, object]:
    """Slots of an account in the order of their hashes, as the transaction at an index of a block met them.

    Parameters: block, index, address, the hash to begin at, the most slots to give.
    """
    block = debug_block(node, params.required(0))
    index, address, start, most = params.number(1), params.address(2), parse_data(params.required(3)), params.number(4)
    if block.number == 0:
        raise RpcError(SERVER_ERROR, "no transaction in genesis")
    with in_block(node, block.header, block.transactions[:index]):
        slots = {slot: value for slot, value in node.world.storage(address).items() if value}
    first = start.ljust(32, b"\0")
    hashed = sorted((keccak(slot.to_bytes(32, "big")), slot) for slot in slots)
    found = [(name, slot) for name, slot in hashed if name >= first]
    return {
        "storage": {
            data(name): {"key": data(slot.to_bytes(32, "big")), "value": data(slots[slot].to_bytes(32, "big"))}
            for name, slot in found[:most]
        },
        "nextKey": data(found[most][0]) if len(found) > most else None,
    }


@METHODS.named("debug_setHead")
def set_head(node: Node, params: Params) -> None:
    """Make an older block the head; transactions of the blocks taken off return to the pool."""
    node.rollback(node.chain.head.number - debug_block(node, params.required(0)).number)
