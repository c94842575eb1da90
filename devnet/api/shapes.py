"""JSON of blocks, transactions, receipts and logs, as geth and anvil write them (execution-apis schemas)."""

from collections.abc import Iterable

from devnet.codec.blocks import EMPTY_UNCLES, NO_REQUESTS, ZERO_HASH, Block, Header, Receipt
from devnet.codec.transaction import DYNAMIC_FEE, LEGACY, Transaction
from devnet.codec.trie import EMPTY_ROOT
from devnet.encoding import data, quantity

Json = dict[str, object]


def transaction(tx: Transaction, block: Block | None = None, receipt: Receipt | None = None) -> Json:
    """A transaction, waiting (block fields null, gasPrice the fee cap) or included (gasPrice what it paid)."""
    body: Json = {
        "type": quantity(tx.type),
        "hash": data(tx.hash),
        "nonce": quantity(tx.nonce),
        "blockHash": data(block.hash) if block else None,
        "blockNumber": quantity(block.number) if block else None,
        "transactionIndex": quantity(receipt.index) if receipt else None,
        "from": data(tx.sender),
        "to": data(tx.to) if tx.to else None,
        "value": quantity(tx.value),
        "gas": quantity(tx.gas),
        "gasPrice": quantity(receipt.price if receipt else tx.max_fee),
        "input": data(tx.data),
        "r": quantity(tx.r),
        "s": quantity(tx.s),
        "v": quantity(tx.v),
    }
    if tx.chain_id is not None:
        body["chainId"] = quantity(tx.chain_id)
    if block:
        body["blockTimestamp"] = quantity(block.header.timestamp)
    if tx.type != LEGACY:
        body["yParity"] = quantity(tx.v)
        body["accessList"] = [
            {"address": data(address), "storageKeys": [data(slot) for slot in slots]}
            for address, slots in tx.access_list
        ]
    if tx.type == DYNAMIC_FEE:
        body["maxFeePerGas"] = quantity(tx.max_fee)
        body["maxPriorityFeePerGas"] = quantity(tx.max_priority_fee)
    return body


def receipt(block: Block, item: Receipt) -> Json:
    """The receipt of an included transaction."""
    tx = item.tx
    return {
        "type": quantity(tx.type),
        "status": quantity(int(item.succeeded)),
        "cumulativeGasUsed": quantity(item.cumulative_gas),
        "logs": list(logs(block, item)),
        "logsBloom": data(item.bloom),
        "transactionHash": data(tx.hash),
        "transactionIndex": quantity(item.index),
        "blockHash": data(block.hash),
        "blockNumber": quantity(block.number),
        "gasUsed": quantity(item.gas_used),
        "effectiveGasPrice": quantity(item.price),
        "from": data(tx.sender),
        "to": data(tx.to) if tx.to else None,
        "contractAddress": data(item.created) if item.created else None,
    }


def logs(block: Block, item: Receipt) -> Iterable[Json]:
    """The logs of one transaction."""
    for at, log in enumerate(item.logs):
        yield {
            "address": data(log.address),
            "topics": [data(topic) for topic in log.topics],
            "data": data(log.data),
            "blockHash": data(block.hash),
            "blockNumber": quantity(block.number),
            "blockTimestamp": quantity(block.header.timestamp),
            "transactionHash": data(item.tx.hash),
            "transactionIndex": quantity(item.index),
            "logIndex": quantity(item.first_log + at),
            "removed": False,
        }


def header(head: Header) -> Json:
    """The header fields of a block."""
    return {
        "number": quantity(head.number),
        "hash": data(head.hash),
        "parentHash": data(head.parent_hash),
        "sha3Uncles": data(EMPTY_UNCLES),
        "miner": data(head.coinbase),
        "stateRoot": data(head.state_root),
        "transactionsRoot": data(head.transactions_root),
        "receiptsRoot": data(head.receipts_root),
        "logsBloom": data(head.logs_bloom),
        "difficulty": "0x0",
        "gasLimit": quantity(head.gas_limit),
        "gasUsed": quantity(head.gas_used),
        "timestamp": quantity(head.timestamp),
        "extraData": data(head.extra_data),
        "mixHash": data(head.prevrandao),
        "nonce": data(bytes(8)),
        "baseFeePerGas": quantity(head.base_fee),
        "withdrawalsRoot": data(EMPTY_ROOT),
        "blobGasUsed": "0x0",
        "excessBlobGas": "0x0",
        "parentBeaconBlockRoot": data(ZERO_HASH),
        "requestsHash": data(NO_REQUESTS),
    }


def block(item: Block, *, full: bool) -> Json:
    """A block with its transactions, in full or as hashes."""
    return header(item.header) | {
        "size": quantity(item.size),
        "uncles": [],
        "withdrawals": [],
        "transactions": [
            transaction(entry.tx, item, entry) if full else data(entry.tx.hash) for entry in item.receipts
        ],
    }
