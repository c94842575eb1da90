"""Frames over the pipes between the executor and a plan's process: four bytes of length, then JSON. Never pickle."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from chain.nesting import is_too_deep

MAX_RESPONSE_BYTES: Final = 1024 * 1024
_LENGTH: Final = struct.Struct(">I")


class TooLong(ValueError):
    """A frame beyond the limit: the sender is not to be trusted any further."""


def frame(value: Any) -> bytes:
    """`value` as one frame. Raises TypeError or ValueError where JSON cannot carry it."""
    body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
    return _LENGTH.pack(len(body)) + body


class Frames:
    """Bytes in, whole JSON values out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take the bytes that were read."""
        self._buffer += chunk

    def take(self) -> Any:
        """The next value, or None while it is not whole.

        Raises:
            TooLong: the frame is longer than the limit.
            ValueError: the frame is not JSON.
        """
        if len(self._buffer) < 4:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > self._limit:
            raise TooLong(f"{length} bytes")
        if len(self._buffer) < 4 + length:
            return None
        body = bytes(self._buffer[4 : 4 + length])
        del self._buffer[: 4 + length]
        if is_too_deep(body):
            raise ValueError("nested too deeply")
        try:
            return json.loads(body)
        except RecursionError:
            raise ValueError("nested too deeply") from None
