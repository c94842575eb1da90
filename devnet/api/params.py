"""The parameters of one call, read one by one with geth's complaints for what is missing or malformed."""

from collections.abc import Mapping
from typing import cast

from devnet.encoding import parse_address, parse_data, parse_hash, parse_quantity
from devnet.errors import InvalidParams

Fields = Mapping[str, object]


class Params:
    """Positional parameters. Each reader raises InvalidParams (-32602)."""

    def __init__(self, values: list[object]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def optional(self, at: int) -> object:
        """The parameter as it came; None where it is null or missing."""
        return self._values[at] if at < len(self._values) else None

    def required(self, at: int) -> object:
        """The parameter as it came, which must not be null or missing."""
        value = self.optional(at)
        if value is None:
            raise InvalidParams(f"missing value for required argument {at}")
        return value

    def number(self, at: int, default: int | None = None) -> int:
        """A quantity, or `default` where it is missing."""
        if default is not None and self.optional(at) is None:
            return default
        return parse_quantity(self.required(at), f"argument {at}")

    def seconds(self, at: int) -> float:
        """A time span that may be a JSON float."""
        value = self.required(at)
        return value if isinstance(value, float) and value >= 0 else self.number(at)

    def flag(self, at: int) -> bool:
        """A JSON boolean; missing is false."""
        value = self.optional(at)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise InvalidParams(f"invalid argument {at}: want a boolean")
        return value

    def address(self, at: int) -> bytes:
        """A 20-byte address."""
        return parse_address(self.required(at), f"argument {at}")

    def hash(self, at: int) -> bytes:
        """A 32-byte hash."""
        return parse_hash(self.required(at), f"argument {at}")

    def data(self, at: int) -> bytes:
        """Any bytes."""
        return parse_data(self.required(at), f"argument {at}")

    def fields(self, at: int) -> Fields:
        """A JSON object."""
        value = self.required(at)
        if not isinstance(value, dict):
            raise InvalidParams(f"invalid argument {at}: want an object")
        return cast("Fields", value)

    def items(self, at: int) -> list[object]:
        """A JSON array; missing is empty."""
        value = self.optional(at)
        if value is None:
            return []
        if not isinstance(value, list):
            raise InvalidParams(f"invalid argument {at}: want an array")
        return cast("list[object]", value)
