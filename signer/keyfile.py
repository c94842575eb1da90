"""A key in a plain file, for development: 64 hexadecimal digits, with or without 0x and a newline at the end."""

import re
from pathlib import Path

from signer import secretfile
from signer.errors import KeyRefused
from signer.key import Key, LocalBackend, pinned

_HEX = re.compile(rb"(?:0x)?([0-9a-fA-F]{64})\r?\n?")


class KeyFileBackend(LocalBackend):
    """Signs with the key in `path`, which must be that of `address`. Raises KeyRefused, never showing the content."""

    def __init__(self, path: Path, address: bytes) -> None:
        found = _HEX.fullmatch(secretfile.read(path))
        if found is None:
            raise KeyRefused(f"the key file {path} does not hold 64 hexadecimal digits")
        self._key = pinned(Key(bytes.fromhex(found[1].decode())), address, str(path))
