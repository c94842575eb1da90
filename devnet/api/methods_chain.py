"""eth_ methods that read blocks, transactions and receipts."""

from collections.abc import Sequence

from devnet.api import shapes
from devnet.api.block_reference import Reference, lookup
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.codec.block_decoding import decode_uncles
from devnet.codec.blocks import Block, Receipt
from devnet.encoding import data, parse_quantity, quantity
from devnet.node import Node

METHODS = Methods()


@METHODS.named("eth_capabilities")
def capabilities(node: Node, _params: Params) -> shapes.Json:
    """From which block on what can be asked for; nothing is ever deleted (execution-apis: eth_capabilities)."""
    head = node.chain.head

    def since(number: int) -> shapes.Json:
        return {"disabled": False, "oldestBlock": quantity(number)}

    body: shapes.Json = {"head": {"number": quantity(head.number), "hash": data(head.hash)}}
    body |= {name: since(node.known_from) for name in ("state", "stateproofs")}
    return body | {name: since(0) for name in ("tx", "logs", "receipts", "blocks")}


@METHODS.named("eth_blockNumber")
def block_number(node: Node, _params: Params) -> str:
    """The head's height."""
    return quantity(node.chain.head.number)


@METHODS.named("eth_coinbase")
def coinbase(node: Node, _params: Params) -> str:
    """Who gets the tips."""
    return data(node.miner.coinbase)


@METHODS.named("eth_getBlockByNumber", "eth_getBlockByHash")
def get_block(node: Node, params: Params) -> shapes.Json | None:
    """A block, with transactions in full or as hashes; null for one the chain has not (or no longer)."""
    params.required(0)
    found = lookup(node, params.optional(0))
    if found is None:
        return None
    if found.pending:
        return _pending_block(node, full=params.flag(1))
    return shapes.block(found.block, full=params.flag(1))


def _pending_block(node: Node, *, full: bool) -> shapes.Json:
    block = node.miner.preview()
    body = shapes.block(block, full=full)
    if full:
        body["transactions"] = [shapes.transaction(tx) for tx in block.transactions]
    return body | {"hash": None, "nonce": None, "miner": None, "logsBloom": None}


@METHODS.named("eth_getHeaderByNumber", "eth_getHeaderByHash")
def get_header(node: Node, params: Params) -> shapes.Json | None:
    """A block's header; null for one the chain has not (or no longer)."""
    block = _found(node, params)
    return shapes.header(block.header) if block else None


@METHODS.named("eth_getBlockTransactionCountByNumber", "eth_getBlockTransactionCountByHash")
def transaction_count(node: Node, params: Params) -> str | None:
    """How many transactions a block has."""
    block = _found(node, params)
    return quantity(len(block.receipts)) if block else None


def _found(node: Node, params: Params) -> Block | None:
    params.required(0)
    found = lookup(node, params.optional(0))
    if found is None:
        return None
    return node.miner.preview() if found.pending else found.block


@METHODS.named("eth_getUncleCountByBlockNumber", "eth_getUncleCountByBlockHash")
def uncle_count(node: Node, params: Params) -> str | None:
    """How many uncles a block has: none since proof of stake."""
    block = _found(node, params)
    return quantity(len(decode_uncles(block.uncles))) if block else None


@METHODS.named("eth_getUncleByBlockNumberAndIndex", "eth_getUncleByBlockHashAndIndex")
def uncle(node: Node, params: Params) -> shapes.Json | None:
    """An uncle of a block by its place there: only blocks before proof of stake have some."""
    block, index = _found(node, params), params.number(1)
    uncles = decode_uncles(block.uncles) if block else ()
    return shapes.uncle(uncles[index]) if index < len(uncles) else None


@METHODS.named("eth_getBlockReceipts")
def block_receipts(node: Node, params: Params) -> list[shapes.Json] | None:
    """All receipts of a block."""
    params.required(0)
    found: Reference | None = lookup(node, params.optional(0))
    if found is None or found.pending:
        return None
    return [shapes.receipt(found.block, receipt) for receipt in found.block.receipts]


@METHODS.named("eth_getTransactionByHash")
def transaction_by_hash(node: Node, params: Params) -> shapes.Json | None:
    """An included or waiting transaction."""
    tx_hash = params.hash(0)
    found = node.chain.find(tx_hash)
    if found:
        return shapes.transaction(found[1].tx, *found)
    entry = node.pool.by_hash.get(tx_hash)
    return shapes.transaction(entry.tx) if entry else None


@METHODS.named("eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByBlockHashAndIndex")
def transaction_by_place(node: Node, params: Params) -> shapes.Json | None:
    """The transaction at a place in a block."""
    block = _found(node, params)
    index = parse_quantity(params.required(1), "argument 1")
    receipts: Sequence[Receipt] = block.receipts if block else ()
    return shapes.transaction(receipts[index].tx, block, receipts[index]) if index < len(receipts) else None


@METHODS.named("eth_getTransactionReceipt")
def transaction_receipt(node: Node, params: Params) -> shapes.Json | None:
    """The receipt of an included transaction; null while it waits and after its block was orphaned."""
    found = node.chain.find(params.hash(0))
    return shapes.receipt(*found) if found else None


@METHODS.named("eth_getRawTransactionByHash", "debug_getRawTransaction")
def raw_transaction(node: Node, params: Params) -> str:
    """The signed bytes as they were submitted; none for an unknown transaction, as with geth."""
    tx_hash = params.hash(0)
    found = node.chain.find(tx_hash)
    if found:
        return data(found[1].tx.raw)
    entry = node.pool.by_hash.get(tx_hash)
    return data(entry.tx.wire if entry else b"")


@METHODS.named("eth_getRawTransactionByBlockNumberAndIndex", "eth_getRawTransactionByBlockHashAndIndex")
def raw_transaction_by_place(node: Node, params: Params) -> str:
    """The signed bytes of the transaction at a place in a block; none where there is none such."""
    block = _found(node, params)
    index = params.number(1)
    transactions = block.transactions if block else []
    return data(transactions[index].raw if index < len(transactions) else b"")


@METHODS.named("eth_getTransactionBySenderAndNonce")
def transaction_by_sender_and_nonce(node: Node, params: Params) -> shapes.Json | None:
    """The transaction that used a sender's nonce, or that waits to; null where there is none."""
    sender, nonce = params.address(0), params.number(1)
    lane = node.pool.lanes.get(sender)
    entry = lane.entries.get(nonce) if lane else None
    if entry:
        return shapes.transaction(entry.tx)
    for number, before in reversed(node.world.nonces.history.get(sender, ())):
        if (before or 0) > nonce:
            continue
        block = node.chain.blocks[number]
        for receipt in block.receipts:
            if receipt.tx.nonce == nonce and receipt.tx.sender == sender:
                return shapes.transaction(receipt.tx, block, receipt)
    return None
