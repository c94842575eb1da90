"""A whole chain as anvil's state dump: accounts, blocks and receipts as JSON, which either can load from the other.

Ours holds more, under `devnet`, which anvil passes over: how to undo each block, so that state at older blocks and the
way back are there after loading; the pool; the clock. Without it (anvil's) only the state at the head is known.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from devnet.accounts import assemble, sent_as
from devnet.api import shapes
from devnet.api.call_request import parse_call
from devnet.api.transaction_request import rlp_fields
from devnet.clock import ClockState
from devnet.codec.blocks import Block, Header, Log, Receipt, bloom
from devnet.codec.keccak import keccak
from devnet.codec.transaction import LEGACY, Transaction, decode
from devnet.encoding import data, parse_address, parse_data, parse_quantity, quantity
from devnet.errors import DecodeError, RpcError
from devnet.evm.transition import created_address
from devnet.evm.world import Column, World
from devnet.node import Node

Json = dict[str, Any]
Write = tuple[Column, Any, Any]
_COLUMNS = ("balances", "nonces", "codes", "kept")


class StateError(ValueError):
    """Something that is no state dump; the text says what is wrong with it."""


def read_dump(content: bytes) -> Json:
    """The JSON of a dump, which may be compressed. Raises StateError."""
    try:
        text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        state = json.loads(text)
    except (OSError, EOFError, zlib.error, ValueError):
        raise StateError("it is neither JSON nor compressed JSON") from None
    if not isinstance(state, dict):
        raise StateError("it holds no JSON object")
    return state


def dump_state(node: Node) -> Json:
    """The chain as it is now."""
    head = node.chain.head.header
    return {
        "block": {
            "number": quantity(head.number),
            "beneficiary": data(head.coinbase),
            "timestamp": quantity(head.timestamp),
            "gas_limit": head.gas_limit,
            "basefee": head.base_fee,
            "difficulty": quantity(head.difficulty),
            "prevrandao": data(head.prevrandao),
            "blob_excess_gas_and_price": {"excess_blob_gas": head.excess_blob_gas or 0, "blob_gasprice": 1},
            "slot_num": 0,
        },
        "accounts": _accounts(node.world),
        "best_block_number": head.number,
        "blocks": [_block(block) for block in node.chain.blocks],
        "transactions": [_mined(block, receipt) for block in node.chain.blocks for receipt in block.receipts],
        "historical_states": None,
        "devnet": {
            "undo": _undo(node.world),
            "kept": [data(address) for address, keep in node.world.kept.items() if keep],
            "pool": [_waiting(entry.tx) for entry in node.pool.contents()],
            "clock": asdict(node.clock.save()),
            "next_base_fee": node.miner.next_base_fee,
        },
    }


def _accounts(world: World) -> Json:
    addresses = sorted({*world.balances, *world.nonces, *world.codes, *world.storages})
    return {
        data(address): {
            "nonce": world.nonce(address),
            "balance": quantity(world.balance(address)),
            "code": data(world.code(address)),
            "storage": {_word(slot): _word(value) for slot, value in world.storages.get(address, {}).items() if value},
        }
        for address in addresses
        if not world.is_empty(address) or any(world.storages.get(address, {}).values())
    }


def _word(number: int) -> str:
    return data(number.to_bytes(32, "big"))


def _block(block: Block) -> Json:
    header = shapes.header(block.header)
    del header["hash"]
    return {
        "header": header,
        "transactions": [
            {
                "transaction": _transaction(tx),
                "impersonated_sender": None if tx.given_sender is None else data(tx.given_sender),
            }
            for tx in block.transactions
        ],
        "ommers": [],
        "withdrawals": None,
    }


def _transaction(tx: Transaction) -> Json:
    return shapes.fields(tx) | {"hash": data(keccak(tx.raw))}


def _mined(block: Block, receipt: Receipt) -> Json:
    tx = receipt.tx
    return {
        "info": {
            "transaction_hash": data(tx.hash),
            "transaction_index": receipt.index,
            "from": data(tx.sender),
            "to": data(tx.to) if tx.to else None,
            "contract_address": data(receipt.created) if receipt.created else None,
            "traces": [],
            "exit": "Return" if receipt.succeeded else "Revert",
            "out": None,
            "nonce": tx.nonce,
            "gas_used": receipt.gas_used,
        },
        "receipt": {
            "type": quantity(tx.type),
            "status": quantity(int(receipt.succeeded)),
            "cumulativeGasUsed": quantity(receipt.cumulative_gas),
            "logs": [
                {"address": data(log.address), "topics": [data(topic) for topic in log.topics], "data": data(log.data)}
                for log in receipt.logs
            ],
            "logsBloom": data(receipt.bloom),
        },
        "block_hash": data(block.hash),
        "block_number": block.number,
    }


def _undo(world: World) -> list[Json]:
    names = {id(getattr(world, name)): name for name in _COLUMNS}
    return [
        {
            "block": layer.block,
            "changes": [
                ["storage", data(column.address), quantity(key), _optional(old)]
                if column.address is not None
                else [names[id(column)], data(key), _optional(old)]
                for column, key, old in layer.changes
            ],
        }
        for layer in world.layers
    ]


def _optional(old: int | bytes | None) -> str | None:
    if old is None:
        return None
    return data(old) if isinstance(old, bytes) else quantity(old)


def _waiting(tx: Transaction) -> Json:
    return {"raw": data(tx.wire), "impersonated_sender": None if tx.given_sender is None else data(tx.given_sender)}


def load_state(node: Node, state: Mapping[str, Any]) -> None:
    """Be the chain of a dump in place of one's own; where it holds no blocks, write its accounts on top of the head.

    Raises StateError, and nothing has changed then.
    """
    try:
        extra = state.get("devnet")
        blocks = _blocks(state)
        accounts = list(_account_writes(node.world, state["accounts"]))
        if not blocks:
            for column, key, value in accounts:
                node.world.write(column, key, value)
            node.world.seal(node.chain.head.number)
            return
        pool: list[Transaction] = []
        clock: ClockState | None = None
        layers: list[tuple[int, list[Write]]]
        if extra is not None:
            accounts += [(node.world.kept, parse_address(text), True) for text in extra["kept"]]
        if extra is None:
            layers = [(0, _genesis_writes(node.world)), (blocks[-1].number, accounts)]
        else:
            layers = _layers(node.world, accounts, extra["undo"])
            pool = [_pooled(item) for item in extra["pool"]]
            clock = ClockState(**extra["clock"])
    except (KeyError, TypeError, AttributeError, DecodeError, RpcError) as problem:
        raise StateError(f"{type(problem).__name__}: {problem}") from None
    node.adopt(blocks, layers, known_from=0 if extra else blocks[-1].number)
    node.miner.next_base_fee = extra["next_base_fee"] if extra else None
    if clock is not None:
        node.clock.restore(clock)
    elif node.clock.now() < blocks[-1].header.timestamp:
        node.clock.start_at(blocks[-1].header.timestamp)
    node.pool.readmit(pool)


def _account_writes(world: World, accounts: Json) -> Iterable[Write]:
    for text, account in accounts.items():
        address = parse_address(text)
        yield world.balances, address, parse_quantity(account["balance"])
        yield world.nonces, address, parse_quantity(account["nonce"])
        yield world.codes, address, parse_data(account["code"])
        for slot, value in account["storage"].items():
            yield world.storage(address), int(slot, 16), int(value, 16)


def _genesis_writes(world: World) -> list[Write]:
    """The state of the node's own genesis."""
    with world.rewound(0):
        return [
            (column, key, value)
            for column in (world.balances, world.nonces, world.codes, world.kept, *world.storages.values())
            for key, value in column.items()
        ]


def _layers(world: World, accounts: list[Write], undo: list[Json]) -> list[tuple[int, list[Write]]]:
    """Per layer what it wrote, found by going back from the state at the head."""
    present = {(id(column), key): value for column, key, value in accounts}
    layers = []
    for layer in reversed(undo):
        writes = []
        for change in layer["changes"]:
            column, key, old = _change(world, change)
            empty: object = b"" if column is world.codes else False if column is world.kept else 0
            writes.append((column, key, present.get((id(column), key), empty)))
            present[id(column), key] = empty if old is None else old
        layers.append((layer["block"], writes))
    return layers[::-1]


def _change(world: World, change: list[Any]) -> Write:
    *place, old = change
    if place[0] == "storage":
        return world.storage(parse_address(place[1])), int(place[2], 16), old and parse_quantity(old)
    if place[0] not in _COLUMNS:
        raise StateError(f"it undoes {place[0]}, which is unknown")
    column = getattr(world, place[0])
    address = parse_address(place[1])
    if old is None:
        return column, address, None
    if place[0] == "codes":
        return column, address, parse_data(old)
    return column, address, bool(parse_quantity(old)) if place[0] == "kept" else parse_quantity(old)


def _pooled(item: Json) -> Transaction:
    tx = decode(parse_data(item["raw"]))
    sender = item["impersonated_sender"]
    return tx if sender is None else sent_as(parse_address(sender), tx)


def _blocks(state: Mapping[str, Any]) -> list[Block]:
    """The blocks from genesis to the best one. Raises StateError where one is missing."""
    mined = {item["info"]["transaction_hash"]: item for item in state.get("transactions") or ()}
    by_number = {int(item["header"]["number"], 16): item for item in state.get("blocks") or ()}
    if not by_number:
        return []
    best = parse_quantity(state["best_block_number"])
    blocks: list[Block] = []
    for number in range(best + 1):
        if number not in by_number:
            raise StateError(f"it lacks block {number}")
        block = _read_block(by_number[number], mined)
        if blocks and block.header.parent_hash != blocks[-1].hash:
            raise StateError(f"its block {number} does not follow block {number - 1}")
        blocks.append(block)
    return blocks


def _read_block(item: Json, mined: Mapping[str, Json]) -> Block:
    header = _read_header(item["header"])
    receipts: list[Receipt] = []
    for entry in item["transactions"]:
        tx = _read_transaction(entry["transaction"], entry.get("impersonated_sender"))
        receipts.append(_read_receipt(header, tx, mined[data(tx.hash)], receipts))
    return Block(header, tuple(receipts))


def _read_header(fields: Json) -> Header:
    def number(name: str) -> int | None:
        return None if fields.get(name) is None else parse_quantity(fields[name], name)

    def raw(name: str) -> bytes | None:
        return None if fields.get(name) is None else parse_data(fields[name], name)

    return Header(
        number=parse_quantity(fields["number"]),
        parent_hash=parse_data(fields["parentHash"]),
        coinbase=parse_data(fields["miner"]),
        state_root=parse_data(fields["stateRoot"]),
        transactions_root=parse_data(fields["transactionsRoot"]),
        receipts_root=parse_data(fields["receiptsRoot"]),
        logs_bloom=parse_data(fields["logsBloom"]),
        gas_limit=parse_quantity(fields["gasLimit"]),
        gas_used=parse_quantity(fields["gasUsed"]),
        timestamp=parse_quantity(fields["timestamp"]),
        prevrandao=parse_data(fields["mixHash"]),
        base_fee=number("baseFeePerGas") or 0,
        extra_data=parse_data(fields["extraData"]),
        has_base_fee=fields.get("baseFeePerGas") is not None,
        difficulty=number("difficulty") or 0,
        nonce=parse_data(fields["nonce"]),
        uncles_hash=parse_data(fields["sha3Uncles"]),
        withdrawals_root=raw("withdrawalsRoot"),
        blob_gas_used=number("blobGasUsed"),
        excess_blob_gas=number("excessBlobGas"),
        parent_beacon_root=raw("parentBeaconBlockRoot"),
        requests_hash=raw("requestsHash"),
    )


def _read_transaction(fields: Json, sender: str | None) -> Transaction:
    kind = parse_quantity(fields.get("type", "0x0"))
    parity = fields["v"] if kind == LEGACY else fields.get("yParity", fields.get("v"))
    signature = (parse_quantity(parity), parse_quantity(fields["r"]), parse_quantity(fields["s"]))
    chain_id = parse_quantity(fields.get("chainId") or "0x0")
    tx = assemble(kind, chain_id, rlp_fields(parse_call(fields)), signature)
    return tx if sender is None else sent_as(parse_address(sender), tx)


def _read_receipt(header: Header, tx: Transaction, item: Json, before: list[Receipt]) -> Receipt:
    told, last = item["receipt"], before[-1] if before else None
    logs = tuple(
        Log(parse_address(log["address"]), tuple(parse_data(topic) for topic in log["topics"]), parse_data(log["data"]))
        for log in told["logs"]
    )
    return Receipt(
        tx=tx,
        index=len(before),
        succeeded=parse_quantity(told["status"]) == 1,
        gas_used=parse_quantity(item["info"]["gas_used"]),
        cumulative_gas=parse_quantity(told["cumulativeGasUsed"]),
        price=tx.price(header.base_fee),
        logs=logs,
        first_log=last.first_log + len(last.logs) if last else 0,
        bloom=bloom(logs),
        created=created_address(tx.sender, tx.nonce) if tx.to is None else None,
    )
