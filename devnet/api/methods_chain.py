"""eth_ methods that read blocks, transactions and receipts; and what the node says of itself."""

import sys
from collections.abc import Sequence

from devnet.api import shapes
from devnet.api.block_reference import Reference, lookup
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.codec.blocks import Block, Receipt
from devnet.codec.keccak import keccak
from devnet.encoding import data, parse_quantity, quantity
from devnet.node import Node

CLIENT_VERSION = f"anvil/v1.7.1 fenced-devnet/0.1.0/python{sys.version_info.major}.{sys.version_info.minor}"
METHODS = Methods()


@METHODS.named("web3_clientVersion")
def client_version(_node: Node, _params: Params) -> str:
    """Begins with anvil's name, because tools refuse nodes they do not know."""
    return CLIENT_VERSION


@METHODS.named("web3_sha3")
def sha3(_node: Node, params: Params) -> str:
    """Keccak-256 of some bytes."""
    return data(keccak(params.data(0)))


@METHODS.named("net_version", "eth_networkId")
def net_version(node: Node, _params: Params) -> str:
    """The chain id in decimal."""
    return str(node.settings.chain_id)


@METHODS.named("net_listening")
def net_listening(_node: Node, _params: Params) -> bool:
    """Always true."""
    return True


@METHODS.named("net_peerCount")
def net_peer_count(_node: Node, _params: Params) -> str:
    """No peers."""
    return "0x0"


@METHODS.named("eth_chainId")
def chain_id(node: Node, _params: Params) -> str:
    """The chain id."""
    return quantity(node.settings.chain_id)


@METHODS.named("eth_syncing")
def syncing(_node: Node, _params: Params) -> bool:
    """Never behind."""
    return False


@METHODS.named("eth_blockNumber")
def block_number(node: Node, _params: Params) -> str:
    """The head's height."""
    return quantity(node.chain.head.number)


@METHODS.named("eth_accounts", "eth_requestAccounts")
def accounts(node: Node, _params: Params) -> list[str]:
    """The development accounts, which eth_sendTransaction signs for."""
    return [data(account.address) for account in node.accounts]


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
    """No uncles since proof of stake."""
    return "0x0" if _found(node, params) else None


@METHODS.named("eth_getUncleByBlockNumberAndIndex", "eth_getUncleByBlockHashAndIndex")
def uncle(_node: Node, _params: Params) -> None:
    """No uncles since proof of stake."""


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
def raw_transaction(node: Node, params: Params) -> str | None:
    """The signed bytes as they were submitted."""
    tx_hash = params.hash(0)
    found = node.chain.find(tx_hash)
    if found:
        return data(found[1].tx.raw)
    entry = node.pool.by_hash.get(tx_hash)
    return data(entry.tx.raw) if entry else None
