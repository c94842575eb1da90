"""JSON of blocks, transactions, receipts and logs, as geth and anvil write them (execution-apis schemas)."""

from collections.abc import Iterable

from devnet.codec.authorization import Authorization
from devnet.codec.block_decoding import Withdrawal, decode_uncles, decode_withdrawals
from devnet.codec.blocks import Block, Header, Receipt
from devnet.codec.transaction import BLOB, DYNAMIC_FEE, LEGACY, SET_CODE, Transaction
from devnet.encoding import data, quantity

Json = dict[str, object]


def transaction(tx: Transaction, block: Block | None = None, receipt: Receipt | None = None) -> Json:
    """A transaction, waiting (block fields null, gasPrice the fee cap) or included (gasPrice what it paid)."""
    body = fields(tx)
    body["blockHash"] = data(block.hash) if block else None
    body["blockNumber"] = quantity(block.number) if block else None
    body["transactionIndex"] = quantity(receipt.index) if receipt else None
    body["from"] = data(tx.sender)
    body["gasPrice"] = quantity(receipt.price if receipt else tx.max_fee)
    body["blockTimestamp"] = quantity(block.header.timestamp) if block else None
    return body


def fields(tx: Transaction) -> Json:
    """A transaction's own fields, signed or not: nothing of its sender and its block."""
    body: Json = {
        "type": quantity(tx.type),
        "hash": data(tx.hash),
        "nonce": quantity(tx.nonce),
        "to": data(tx.to) if tx.to else None,
        "value": quantity(tx.value),
        "gas": quantity(tx.gas),
        "input": data(tx.data),
        "r": quantity(tx.r),
        "s": quantity(tx.s),
        "v": quantity(tx.v),
    }
    if tx.chain_id is not None:
        body["chainId"] = quantity(tx.chain_id)
    if tx.type != LEGACY:
        body["yParity"] = quantity(tx.v)
        body["accessList"] = [
            {"address": data(address), "storageKeys": [data(slot) for slot in slots]}
            for address, slots in tx.access_list
        ]
    if tx.type >= DYNAMIC_FEE:
        body["maxFeePerGas"] = quantity(tx.max_fee)
        body["maxPriorityFeePerGas"] = quantity(tx.max_priority_fee)
    else:
        body["gasPrice"] = quantity(tx.max_fee)
    if tx.type == BLOB:
        body["maxFeePerBlobGas"] = quantity(tx.max_fee_per_blob_gas)
        body["blobVersionedHashes"] = [data(item) for item in tx.blob_hashes]
    if tx.type == SET_CODE:
        body["authorizationList"] = [_authorization(item) for item in tx.authorizations]
    return body


def _authorization(item: Authorization) -> Json:
    return {
        "chainId": quantity(item.chain_id),
        "address": data(item.address),
        "nonce": quantity(item.nonce),
        "yParity": quantity(item.y_parity),
        "r": quantity(item.r),
        "s": quantity(item.s),
    }


def raw_and_fields(tx: Transaction) -> Json:
    """A transaction that went nowhere: its bytes and geth's JSON of it, which names no sender and no block."""
    unused: Json = {"gasPrice": None, "maxFeePerGas": None, "maxPriorityFeePerGas": None}
    return {"raw": data(tx.wire), "tx": unused | fields(tx)}


def receipt(block: Block, item: Receipt) -> Json:
    """The receipt of an included transaction."""
    tx = item.tx
    body: Json = {
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
    if item.state_root is not None:
        del body["status"]
        body["root"] = data(item.state_root)
    if tx.type == BLOB:
        body["blobGasUsed"] = quantity(tx.blob_gas)
        body["blobGasPrice"] = quantity(item.blob_price)
    return body


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
    """The header fields of a block: those its fork has."""
    body: Json = {
        "number": quantity(head.number),
        "hash": data(head.hash),
        "parentHash": data(head.parent_hash),
        "sha3Uncles": data(head.uncles_hash),
        "miner": data(head.coinbase),
        "stateRoot": data(head.state_root),
        "transactionsRoot": data(head.transactions_root),
        "receiptsRoot": data(head.receipts_root),
        "logsBloom": data(head.logs_bloom),
        "difficulty": quantity(head.difficulty),
        "gasLimit": quantity(head.gas_limit),
        "gasUsed": quantity(head.gas_used),
        "timestamp": quantity(head.timestamp),
        "extraData": data(head.extra_data),
        "mixHash": data(head.prevrandao),
        "nonce": data(head.nonce),
    }
    if head.has_base_fee:
        body["baseFeePerGas"] = quantity(head.base_fee)
    for name, number in (("blobGasUsed", head.blob_gas_used), ("excessBlobGas", head.excess_blob_gas)):
        if number is not None:
            body[name] = quantity(number)
    for name, value in (
        ("withdrawalsRoot", head.withdrawals_root),
        ("parentBeaconBlockRoot", head.parent_beacon_root),
        ("requestsHash", head.requests_hash),
    ):
        if value is not None:
            body[name] = data(value)
    return body


def block(item: Block, *, full: bool) -> Json:
    """A block with its transactions, in full or as hashes."""
    body = header(item.header) | {
        "size": quantity(item.size),
        "uncles": [data(uncle.hash) for uncle in decode_uncles(item.uncles)],
        "transactions": [
            transaction(entry.tx, item, entry) if full else data(entry.tx.hash) for entry in item.receipts
        ],
    }
    if item.header.withdrawals_root is not None:
        body["withdrawals"] = [_withdrawal(entry) for entry in decode_withdrawals(item.withdrawals)]
    return body


def uncle(head: Header) -> Json:
    """An uncle, as a block without transactions."""
    return header(head) | {"size": quantity(Block(head, ()).size), "uncles": []}


def _withdrawal(item: Withdrawal) -> Json:
    return {
        "index": quantity(item.index),
        "validatorIndex": quantity(item.validator),
        "address": data(item.address),
        "amount": quantity(item.amount),
    }
