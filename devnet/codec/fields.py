"""Fields of a signed transaction out of RLP items, with the complaints geth has for each."""

from collections.abc import Sequence

from devnet.codec import rlp_coding
from devnet.codec.rlp_coding import Item
from devnet.errors import DecodeError

AccessList = tuple[tuple[bytes, tuple[bytes, ...]], ...]


class FieldError(DecodeError):
    """A field that does not fit its type. Its text is completed by `inside` with the struct geth decodes into."""

    def __init__(self, complaint: str, kind: str, name: str) -> None:
        super().__init__(complaint)
        self._text = f"rlp: {complaint} for {kind}"
        self._name = name

    def inside(self, struct: str) -> DecodeError:
        """The error in geth's words; `struct` may be followed by the path to where the field's own struct is."""
        outer, _, path = struct.partition(".")
        return DecodeError(f"{self._text}, decoding into (types.{outer}).{path + '.' if path else ''}{self._name}")


def struct_fields(raw: bytes, struct: str, count: int) -> Sequence[Item]:
    """The items of the list `raw` holds, which must be `count`. Raises DecodeError."""
    return checked_count(rlp_coding.decode(raw), struct, count)


def checked_count(item: Item, struct: str, count: int, place: str = "") -> Sequence[Item]:
    """The items of a list, which must be `count`; `place` ends the text of the DecodeError it raises else."""
    if isinstance(item, bytes):
        raise DecodeError(f"rlp: expected input list for types.{struct}{place}")
    if len(item) < count:
        raise DecodeError(f"rlp: too few elements for types.{struct}{place}")
    if len(item) > count:
        raise DecodeError(f"rlp: input list has too many elements for types.{struct}{place}")
    return item


def string(item: Item, name: str, kind: str = "[]uint8") -> bytes:
    """Any bytes. Raises FieldError."""
    if not isinstance(item, bytes):
        raise FieldError("expected input string or byte", kind, name)
    return item


def integer(item: Item, name: str, kind: str) -> int:
    """An integer of any size in its shortest form. Raises FieldError."""
    text = string(item, name, kind)
    if text[:1] == b"\0":
        raise FieldError("non-canonical integer (leading zero bytes)", kind, name)
    return int.from_bytes(text, "big")


def uint64(item: Item, name: str) -> int:
    """An integer below 2^64. Raises FieldError."""
    return _limited(item, name, "uint64", 8)


def uint8(item: Item, name: str) -> int:
    """An integer below 2^8. Raises FieldError."""
    return _limited(item, name, "uint8", 1)


def _limited(item: Item, name: str, kind: str, width: int) -> int:
    if len(string(item, name, kind)) > width:
        raise FieldError("input string too long", kind, name)
    return integer(item, name, kind)


def big(item: Item, name: str) -> int:
    """An integer that geth holds in a big.Int: of any size, others judge it. Raises FieldError."""
    return integer(item, name, "*big.Int")


def uint256(item: Item, name: str) -> int:
    """An integer below 2^256. Raises DecodeError."""
    if len(item) > 32:
        raise DecodeError("rlp: value too large for uint256")
    return integer(item, name, "*uint256.Int")


def fixed(item: Item, size: int, name: str, kind: str) -> bytes:
    """Exactly `size` bytes. Raises FieldError."""
    text = string(item, name, kind)
    if len(text) != size:
        raise FieldError(f"input string too {'short' if len(text) < size else 'long'}", kind, name)
    return text


def address(item: Item, name: str) -> bytes:
    """A 20-byte address. Raises FieldError."""
    return fixed(item, 20, name, "common.Address")


def recipient(item: Item, name: str = "To") -> bytes | None:
    """An address, or None for the empty string of a creation. Raises FieldError."""
    if item == []:
        raise FieldError("wrong kind of empty value (got List, want String)", "*common.Address", name)
    return address(item, name) if item else None


def sequence(item: Item, name: str, kind: str) -> Sequence[Item]:
    """A list of any length. Raises FieldError."""
    if isinstance(item, bytes):
        raise FieldError("expected input list", kind, name)
    return item


def hashes(item: Item, name: str) -> tuple[bytes, ...]:
    """A list of 32-byte hashes. Raises FieldError."""
    entries = sequence(item, name, "[]common.Hash")
    return tuple(fixed(entry, 32, f"{name}[{at}]", "common.Hash") for at, entry in enumerate(entries))


def access_list(item: Item) -> AccessList:
    """Addresses with the slots of each (EIP-2930). Raises FieldError."""
    if item == []:
        return ()
    entries = []
    for at, entry in enumerate(sequence(item, "AccessList", "types.AccessList")):
        place = f"AccessList[{at}]"
        pair = sequence(entry, place, "types.AccessTuple")
        if len(pair) != 2:
            complaint = "too few elements" if len(pair) < 2 else "input list has too many elements"
            raise FieldError(complaint, "types.AccessTuple", place)
        entries.append((address(pair[0], f"{place}.Address"), hashes(pair[1], f"{place}.StorageKeys")))
    return tuple(entries)
