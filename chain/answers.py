"""Reading a node's JSON into our types. Every function raises Malformed for a shape the method does not promise."""

import re
from dataclasses import dataclass
from typing import Any

from chain.errors import ChainError, Malformed, RpcError
from chain.submission import detail
from chain.transaction import AccessList
from chain.types import BlockRef, Head, Receipt, checksum

EstimateCall = tuple[bytes, bytes | None, int, bytes, AccessList]
"""Sender, recipient (None for a creation), value in wei, call data, access list."""

_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a trial run said: the gas it took, or why it would not run.

    `reverted` is True if the call itself reverts on the latest block, False if the node refused for another reason.
    """

    gas: int | None
    error: str | None
    reverted: bool


@dataclass(frozen=True, slots=True)
class Spending:
    """The transaction that used a nonce, as far as its intent goes. `to` is None for a contract creation."""

    hash: bytes
    to: bytes | None
    value_wei: int
    data: bytes
    access_list: AccessList


def spending(block: Any, sender: bytes, nonce: int) -> Spending | None:
    """The transaction of `sender` with `nonce` in a block that holds its transactions whole; None if it is not there."""
    for entry in _object("a block", block).get("transactions") or []:
        fields = _object("a transaction", entry)
        if data(fields.get("from"), 20) == sender and quantity(fields.get("nonce")) == nonce:
            to = fields.get("to")
            access_list = tuple(
                (data(item["address"], 20), tuple(data(key, 32) for key in item["storageKeys"]))
                for item in fields.get("accessList") or []
            )
            return Spending(
                hash=data(fields.get("hash"), 32),
                to=None if to is None else data(to, 20),
                value_wei=quantity(fields.get("value")),
                data=data(fields.get("input")),
                access_list=access_list,
            )
    return None


def hex_of(value: bytes) -> str:
    """Bytes as JSON-RPC writes them."""
    return "0x" + value.hex()


def quantity(value: Any) -> int:
    """An unsigned number up to 2^256 - 1. Leading zeros are let pass, as several nodes write them."""
    if isinstance(value, str) and _QUANTITY.fullmatch(value):
        return int(value, 16)
    raise _other("a number", value)


def data(value: Any, length: int | None = None) -> bytes:
    """A byte string, of exactly `length` bytes if that is given."""
    if isinstance(value, str) and value.startswith("0x"):
        try:
            found = bytes.fromhex(value[2:])
        except ValueError:
            found = b""
        if len(found) * 2 == len(value) - 2 and length in (None, len(found)):
            return found
    raise _other("bytes" if length is None else f"{length} bytes", value)


def head(block: Any, number: int | None = None) -> Head:
    """A block header; if `number` is given it must be that one."""
    fields = _object("a block", block)
    found = quantity(fields.get("number"))
    if number is not None and found != number:
        raise Malformed(f"block {number} was asked for and block {found} came")
    base_fee = fields.get("baseFeePerGas")
    return Head(
        number=found,
        hash=data(fields.get("hash"), 32),
        parent_hash=data(fields.get("parentHash"), 32),
        timestamp=quantity(fields.get("timestamp")),
        base_fee_wei=0 if base_fee is None else quantity(base_fee),
        gas_limit=quantity(fields.get("gasLimit")),
    )


def receipt(reply: Any, wanted: bytes) -> Receipt | None:
    """The receipt of the transaction `wanted`; None if there is none or it is in no block yet."""
    if reply is None:
        return None
    fields = _object("a receipt", reply)
    if fields.get("blockHash") is None:
        return None
    if data(fields.get("transactionHash"), 32) != wanted:
        raise Malformed("a receipt came for another transaction than the one asked for")
    status = quantity(fields.get("status"))
    if status > 1:
        raise Malformed(f"a receipt's status is 0 or 1, not {status}")
    l1_fee = fields.get("l1Fee")
    return Receipt(
        hash=wanted,
        block=BlockRef(quantity(fields.get("blockNumber")), data(fields.get("blockHash"), 32)),
        status=status,
        gas_used=quantity(fields.get("gasUsed")),
        effective_gas_price_wei=quantity(fields.get("effectiveGasPrice")),
        l1_fee_wei=None if l1_fee is None else quantity(l1_fee),
    )


def transaction(reply: Any) -> dict[str, Any] | None:
    """A transaction as the node shows it, if it knows one."""
    return None if reply is None else _object("a transaction", reply)


def estimate_call(call: EstimateCall) -> tuple[str, list[Any]]:
    """The request for a trial run on the latest block."""
    sender, to, value_wei, call_data, access_list = call
    fields: dict[str, Any] = {"from": checksum(sender), "value": hex(value_wei), "data": hex_of(call_data)}
    if to is not None:
        fields["to"] = checksum(to)
    if access_list:
        fields["accessList"] = [
            {"address": checksum(address), "storageKeys": [hex_of(key) for key in keys]}
            for address, keys in access_list
        ]
    return "eth_estimateGas", [fields, "latest"]


def estimate(reply: Any) -> Estimate:
    """What came back from a trial run."""
    if isinstance(reply, RpcError):
        text = reply.message.lower()
        reverted = reply.code == 3 or "revert" in text or "invalid opcode" in text
        return Estimate(None, detail(reply.message), reverted)
    if isinstance(reply, ChainError):
        raise reply
    return Estimate(quantity(reply), None, False)


def _object(what: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _other(what, value)


def _other(what: str, value: Any) -> Malformed:
    return Malformed(f"{what} was expected and {detail(str(value))[:60]!r} came")
