"""Reading the JSON of rules and plans: one clear sentence for what is wrong."""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TypeVar, cast

from devnet.encoding import parse_address, parse_hash, parse_quantity
from devnet.errors import InvalidParams

Json = Mapping[str, object]
Value = TypeVar("Value")


def an_object(value: object, name: str, allowed: Iterable[str]) -> Json:
    """A JSON object with none but the allowed fields. Raises InvalidParams."""
    fields = sorted(allowed)
    if not isinstance(value, dict):
        raise InvalidParams(f"{name} must be an object with fields of {listed(fields)}")
    for field in value:
        if field not in fields:
            raise InvalidParams(f"{name} has no field {field!r}: it takes {listed(fields)}")
    return cast("Json", value)


def listed(names: Iterable[str]) -> str:
    """Names for a sentence."""
    return ", ".join(names) or "none"


def optional(fields: Json, name: str, read: Callable[[object, str], Value]) -> Value | None:
    """A field by its reader, None where it is missing or null."""
    value = fields.get(name)
    return None if value is None else read(value, name)


def flag(value: object, name: str) -> bool:
    """A JSON boolean."""
    if not isinstance(value, bool):
        raise InvalidParams(f"{name} must be true or false")
    return value


def text(value: object, name: str) -> str:
    """A JSON string."""
    if not isinstance(value, str):
        raise InvalidParams(f"{name} must be a string")
    return value


def number(value: object, name: str) -> float:
    """A JSON number of 0 or more."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < inf:
        raise InvalidParams(f"{name} must be a number of 0 or more")
    return value


def integer(value: object, name: str) -> int:
    """Any whole JSON number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidParams(f"{name} must be a whole number")
    return value


def count(value: object, name: str) -> int:
    """A whole number of 0 or more, plain or as a quantity."""
    try:
        return parse_quantity(value, name)
    except InvalidParams:
        raise InvalidParams(f"{name} must be a whole number of 0 or more") from None


def positive(value: object, name: str) -> int:
    """A whole number of 1 or more."""
    found = count(value, name)
    if not found:
        raise InvalidParams(f"{name} must be a whole number of 1 or more")
    return found


def share(value: object, name: str) -> float:
    """A probability."""
    found = number(value, name)
    if found > 1:
        raise InvalidParams(f"{name} must be a number from 0 to 1")
    return found


def counts(value: object, name: str) -> frozenset[int]:
    """Positions counted from 1, one or a list of them."""
    return frozenset(positive(item, name) for item in (value if isinstance(value, list) else [value]))


def texts(value: object, name: str) -> tuple[str, ...]:
    """A string or a list of them."""
    return tuple(text(item, name) for item in (value if isinstance(value, list) else [value]))


def address(value: object, name: str) -> bytes:
    """An address."""
    return parse_address(value, name)


def hash32(value: object, name: str) -> bytes:
    """A 32-byte hash."""
    return parse_hash(value, name)


def one_of(value: object, name: str, names: Iterable[str]) -> str:
    """One of a few words."""
    allowed = list(names)
    if value not in allowed:
        raise InvalidParams(f"{name} must be one of {listed(allowed)}: {value!r} is none of them")
    return value
