"""keccak-256 through a C extension: eth-hash's default backend costs eight times as much a call."""

from sha3 import keccak_256


def keccak(data: bytes) -> bytes:
    """The keccak-256 hash of `data`, 32 bytes."""
    digest: bytes = keccak_256(data).digest()
    return digest
