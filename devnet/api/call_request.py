"""The object eth_call, eth_estimateGas and their kin take (execution-apis: GenericTransaction)."""

from dataclasses import dataclass
from typing import cast

from devnet.api.params import Fields
from devnet.codec.authorization import Authorization
from devnet.codec.fields import AccessList
from devnet.encoding import parse_address, parse_data, parse_hash, parse_quantity
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError


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
    chain_id: int | None
    max_blob_fee: int | None
    blob_hashes: tuple[bytes, ...] | None
    authorizations: tuple[Authorization, ...] | None


def parse_call(fields: Fields) -> CallRequest:
    """Read the object. Raises InvalidParams for a malformed field, RpcError (-32000) for fields that exclude each other."""

    def number(name: str) -> int | None:
        value = fields.get(name)
        return None if value is None else parse_quantity(value, name)

    def address(name: str) -> bytes | None:
        value = fields.get(name)
        return None if value is None else parse_address(value, name)

    texts = [fields[name] for name in ("input", "data") if fields.get(name) is not None]
    payloads = {parse_data(text, "input") for text in texts}
    if len(payloads) > 1:
        text = 'both "data" and "input" are set and not equal. Please use "input" to pass transaction call data'
        raise RpcError(SERVER_ERROR, text)
    blob_hashes = _array(fields, "blobVersionedHashes")
    authorizations = _array(fields, "authorizationList")
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
        access_list=_access_list(fields),
        chain_id=number("chainId"),
        max_blob_fee=number("maxFeePerBlobGas"),
        blob_hashes=None if blob_hashes is None else tuple(parse_hash(item, "blob hash") for item in blob_hashes),
        authorizations=None if authorizations is None else tuple(_authorization(item) for item in authorizations),
    )
    if request.gas_price is not None and (request.max_fee is not None or request.max_priority_fee is not None):
        raise RpcError(SERVER_ERROR, "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
    return request


def _array(fields: Fields, name: str) -> list[object] | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, list):
        raise InvalidParams(f"invalid argument 0: {name} is not an array")
    return cast("list[object] | None", value)


def _access_list(fields: Fields) -> AccessList | None:
    entries = _array(fields, "accessList")
    if entries is None:
        return None
    found = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise InvalidParams("invalid argument 0: accessList has an entry that is no object")
        keys = tuple(parse_hash(key, "storage key") for key in entry.get("storageKeys") or ())
        found.append((parse_address(entry.get("address"), "accessList address"), keys))
    return tuple(found)


def _authorization(value: object) -> Authorization:
    if not isinstance(value, dict):
        raise InvalidParams("invalid argument 0: authorizationList has an entry that is no object")
    return Authorization(
        chain_id=parse_quantity(value.get("chainId"), "authorization chainId"),
        address=parse_address(value.get("address"), "authorization address"),
        nonce=parse_quantity(value.get("nonce"), "authorization nonce"),
        y_parity=parse_quantity(value.get("yParity"), "authorization yParity"),
        r=parse_quantity(value.get("r"), "authorization r"),
        s=parse_quantity(value.get("s"), "authorization s"),
    )
