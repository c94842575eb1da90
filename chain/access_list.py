"""Access lists (EIP-2930): the addresses and storage slots a transaction says it will touch."""

from typing import cast

from chain import rlp
from chain.errors import InvalidTransaction

AccessList = tuple[tuple[bytes, tuple[bytes, ...]], ...]
"""Pairs of an address (20 bytes) and its storage keys (32 bytes each)."""


def encode_access_list(access_list: AccessList) -> bytes:
    """The access list as an encoded item."""
    if not access_list:
        return b"\xc0"
    entries = (b"\x94" + address + rlp.wrap(b"".join(b"\xa0" + key for key in keys)) for address, keys in access_list)
    return rlp.wrap(b"".join(rlp.wrap(entry) for entry in entries))


def check_access_list(access_list: object) -> None:
    """Raise InvalidTransaction unless this is a tuple of (20 bytes, tuple of 32 bytes)."""
    if type(access_list) is not tuple:
        raise InvalidTransaction("the access list is not a tuple")
    for entry in access_list:
        if type(entry) is not tuple or len(entry) != 2 or type(entry[1]) is not tuple:
            raise InvalidTransaction("an access list entry is not a pair of an address and a tuple of storage keys")
        if type(entry[0]) is not bytes or len(entry[0]) != 20:
            raise InvalidTransaction("an access list address is not 20 bytes")
        if any(type(key) is not bytes or len(key) != 32 for key in entry[1]):
            raise InvalidTransaction("an access list storage key is not 32 bytes")


def decode_access_list(item: rlp.Item) -> AccessList:
    """Read a decoded item. Raises InvalidTransaction for another shape."""
    if not isinstance(item, list):
        raise InvalidTransaction("the access list is not a list")
    found = []
    for entry in item:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], list):
            raise InvalidTransaction("an access list entry is not a pair of an address and a list of storage keys")
        found.append((entry[0], tuple(entry[1])))
    access_list = tuple(found)
    check_access_list(access_list)
    return cast("AccessList", access_list)
