"""Hex forms of JSON-RPC values: quantities without leading zeros, data with two digits a byte (execution-apis)."""

import re

from devnet.codec.keccak import keccak
from devnet.errors import InvalidParams

ADDRESS_BYTES = 20
HASH_BYTES = 32
_QUANTITY = re.compile(r"0x[0-9a-fA-F]+")


def quantity(number: int) -> str:
    """A number as JSON-RPC writes it: `0x0`, `0x10`."""
    return hex(number)


def data(raw: bytes) -> str:
    """Bytes as JSON-RPC writes them: `0x`, `0x00ff`."""
    return "0x" + raw.hex()


def checksum(address: bytes) -> str:
    """An address with the letter case of EIP-55, for people to read."""
    digits = address.hex()
    marks = keccak(digits.encode()).hex()
    return "0x" + "".join(
        letter.upper() if int(mark, 16) >= 8 else letter for letter, mark in zip(digits, marks, strict=False)
    )


def parse_quantity(value: object, name: str = "quantity") -> int:
    """Read a quantity. Plain JSON integers and leading zeros are taken too, as anvil does; raises InvalidParams."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str):
        if _QUANTITY.fullmatch(value):
            return int(value, 16)
        if value.isdecimal():
            return int(value)
    raise InvalidParams(f"invalid argument: {name} is not a hex quantity: {value!r}")


def parse_data(value: object, name: str = "data", size: int | None = None) -> bytes:
    """Read bytes, of exactly `size` where given; raises InvalidParams."""
    if isinstance(value, str) and value[:2] in {"0x", "0X"}:
        try:
            raw = bytes.fromhex(value[2:])
        except ValueError:
            raise InvalidParams(f"invalid argument: {name} is not a hex string") from None
        if size is not None and len(raw) != size:
            raise InvalidParams(f"invalid argument: {name} has {len(raw)} bytes, want {size}")
        return raw
    raise InvalidParams(f"invalid argument: {name} is not a hex string with 0x prefix")


def parse_address(value: object, name: str = "address") -> bytes:
    """Read an address in any letter case; raises InvalidParams."""
    return parse_data(value, name, ADDRESS_BYTES)


def parse_hash(value: object, name: str = "hash") -> bytes:
    """Read a 32-byte hash; raises InvalidParams."""
    return parse_data(value, name, HASH_BYTES)
