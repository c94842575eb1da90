"""The object eth_call, eth_estimateGas and eth_sendTransaction take, and overrides of state for a call."""

from dataclasses import dataclass
from typing import cast

from devnet.api.params import Fields
from devnet.codec.transaction import AccessList
from devnet.encoding import parse_address, parse_data, parse_hash, parse_quantity
from devnet.errors import InvalidParams
from devnet.evm.world import World


@dataclass(frozen=True, slots=True)
class CallRequest:
    """What is to be called, by whom and with what. None where the request left it open; prices in wei per gas."""

    sender: bytes | None
    to: bytes | None
    value: int
    data: bytes
    gas: int | None
    nonce: int | None
    gas_price: int | None
    max_fee: int | None
    max_priority_fee: int | None
    access_list: AccessList | None


def parse_call(fields: Fields) -> CallRequest:
    """Read the object; raises InvalidParams, also where `data` and `input` contradict each other."""

    def number(name: str) -> int | None:
        value = fields.get(name)
        return None if value is None else parse_quantity(value, name)

    def address(name: str) -> bytes | None:
        value = fields.get(name)
        return None if value is None else parse_address(value, name)

    texts = [fields[name] for name in ("input", "data") if fields.get(name) is not None]
    payloads = {parse_data(text, "input") for text in texts}
    if len(payloads) > 1:
        raise InvalidParams('both "data" and "input" are set and not equal. Please use "input"')
    request = CallRequest(
        sender=address("from"),
        to=address("to"),
        value=number("value") or 0,
        data=payloads.pop() if payloads else b"",
        gas=number("gas"),
        nonce=number("nonce"),
        gas_price=number("gasPrice"),
        max_fee=number("maxFeePerGas"),
        max_priority_fee=number("maxPriorityFeePerGas"),
        access_list=_access_list(fields.get("accessList")),
    )
    if request.gas_price is not None and (request.max_fee is not None or request.max_priority_fee is not None):
        raise InvalidParams("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
    return request


def _access_list(value: object) -> AccessList | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise InvalidParams("invalid argument: accessList is not an array")
    entries = []
    for entry in value:
        if not isinstance(entry, dict):
            raise InvalidParams("invalid argument: accessList has an entry that is no object")
        keys = tuple(parse_hash(key, "storage key") for key in entry.get("storageKeys") or ())
        entries.append((parse_address(entry.get("address"), "accessList address"), keys))
    return tuple(entries)


def apply_overrides(world: World, overrides: Fields) -> None:
    """Write geth's state override object into the world; the caller reverts it."""
    for key, value in overrides.items():
        address = parse_address(key)
        fields = cast("Fields", value)
        if "balance" in fields:
            world.write(world.balances, address, parse_quantity(fields["balance"], "balance"))
        if "nonce" in fields:
            world.write(world.nonces, address, parse_quantity(fields["nonce"], "nonce"))
        if "code" in fields:
            world.write(world.codes, address, parse_data(fields["code"], "code"))
        if "state" in fields:
            world.erase_storage(address)
        for slot, word in cast("Fields", fields.get("state") or fields.get("stateDiff") or {}).items():
            number = int.from_bytes(parse_hash(slot, "slot"), "big")
            world.set_slot(address, number, int.from_bytes(parse_data(word, "word"), "big"))
