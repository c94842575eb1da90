"""Arrays as PostgreSQL reads them, written in one go: the driver's own way costs two to four times as much."""

from collections.abc import Sequence
from typing import Any

_QUOTED = str.maketrans({'"': '\\"', "\\": "\\\\"})
_BARE = {"bigint", "int", "smallint", "numeric", "uint256", "float8", "bool"}


def array_literal(kind: str, values: Sequence[Any]) -> str:
    """The literal of an array of `kind`, a PostgreSQL type name; None is NULL, bytes are for bytea."""
    if kind == "bytea":
        items = ["NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values]
    elif kind in _BARE:
        items = ["NULL" if value is None else str(value) for value in values]
    else:
        items = ["NULL" if value is None else f'"{str(value).translate(_QUOTED)}"' for value in values]
    return "{" + ",".join(items) + "}"
