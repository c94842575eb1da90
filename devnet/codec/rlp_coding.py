"""RLP, strict on reading: of the many ways to write a value only the shortest is taken (yellow paper, appendix B)."""

from collections.abc import Sequence
from typing import TypeAlias

from devnet.errors import DecodeError

Item: TypeAlias = "bytes | Sequence[Item]"


def integer(number: int) -> bytes:
    """A number as big-endian bytes without leading zeros; zero is the empty string."""
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def encode(item: Item) -> bytes:
    """The RLP of bytes or of nested sequences of bytes."""
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < 0x80:
            return item
        return _prefix(len(item), 0x80) + item
    return wrap(b"".join([encode(part) for part in item]))


def wrap(body: bytes) -> bytes:
    """A list whose items are encoded already, one after the other, in `body`."""
    return _prefix(len(body), 0xC0) + body


def _prefix(length: int, offset: int) -> bytes:
    if length < 56:
        return bytes((offset + length,))
    size = integer(length)
    return bytes((offset + 55 + len(size),)) + size


def decode(raw: bytes) -> Item:
    """The one item `raw` holds. Raises DecodeError where bytes are left, missing or not in shortest form."""
    if not raw:
        raise DecodeError("EOF")
    item, end = _item(raw, 0)
    if end != len(raw):
        raise DecodeError("rlp: input contains more than one value")
    return item


def _item(raw: bytes, at: int) -> tuple[Item, int]:
    first = raw[at]
    if first < 0x80:
        return raw[at : at + 1], at + 1
    start, end = _span(raw, at)
    if first < 0xC0:
        text = raw[start:end]
        if len(text) == 1 and text[0] < 0x80:
            raise DecodeError("rlp: non-canonical size information")
        return text, end
    items: list[Item] = []
    while start < end:
        item, start = _item(raw, start)
        items.append(item)
    if start != end:
        raise DecodeError("rlp: element is larger than containing list")
    return items, end


def _span(raw: bytes, at: int) -> tuple[int, int]:
    first = raw[at]
    base = 0x80 if first < 0xC0 else 0xC0
    if first - base < 56:
        start, length = at + 1, first - base
    else:
        width = first - base - 55
        start = at + 1 + width
        size = raw[at + 1 : start]
        if len(size) != width:
            raise DecodeError("rlp: value size exceeds available input length")
        length = int.from_bytes(size, "big")
        if size[0] == 0 or length < 56:
            raise DecodeError("rlp: non-canonical size information")
    if start + length > len(raw):
        raise DecodeError("rlp: value size exceeds available input length")
    return start, start + length
