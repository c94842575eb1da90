"""RLP, strict on reading: of the many ways to write a value only the shortest is taken (yellow paper, appendix B)."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from devnet.errors import DecodeError

Item: TypeAlias = "bytes | Sequence[Item]"


def integer(number: int) -> bytes:
    """A number as big-endian bytes without leading zeros; zero is the empty string."""
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def encode(item: Item) -> bytes:
    """The RLP of bytes or of nested sequences of bytes."""
    if isinstance(item, bytes):
        size = len(item)
        if size == 1 and item[0] < 0x80:
            return item
        return (_SHORT_STRING[size] if size < 56 else _long_prefix(size, 0x80)) + item
    return wrap(b"".join([encode(part) for part in item]))


def wrap(body: bytes) -> bytes:
    """A list whose items are encoded already, one after the other, in `body`."""
    size = len(body)
    return (_SHORT_LIST[size] if size < 56 else _long_prefix(size, 0xC0)) + body


_SHORT_STRING = [bytes((0x80 + size,)) for size in range(56)]
_SHORT_LIST = [bytes((0xC0 + size,)) for size in range(56)]


def _long_prefix(length: int, offset: int) -> bytes:
    if length < 256:
        return bytes((offset + 56, length))
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


def sequence(raw: bytes) -> Iterator[bytes]:
    """The encoded items that follow one another in `raw`, as files of blocks hold them. Raises DecodeError."""
    at = 0
    while at < len(raw):
        end = at + 1 if raw[at] < 0x80 else _span(raw, at)[1]
        yield raw[at:end]
        at = end


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
