"""A private key in memory, held so that it shows in no repr, pickle, copy or error.

CPython cannot wipe memory: copies of the key stay in this process until it ends. Keep it from dumping core.
"""

from typing import NoReturn

from coincurve import PrivateKey

from chain.signature import SECP256K1_N, address_of
from chain.transaction import UnsignedTransaction
from chain.types import checksum
from signer.errors import KeyRefused


class Key:
    """A secp256k1 key and its address. Raises KeyRefused, without the key, if the bytes are none."""

    __slots__ = ("__key", "address")

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32 or not 0 < int.from_bytes(secret, "big") < SECP256K1_N:
            raise KeyRefused("a private key is 32 bytes between 1 and the order of secp256k1")
        self.__key = PrivateKey(secret)
        self.address = address_of(self.__key.public_key)

    def sign(self, transaction: UnsignedTransaction) -> bytes:
        """Sign by RFC 6979: the same transaction gives the same bytes, with a low s (libsecp256k1)."""
        signature = self.__key.sign_recoverable(transaction.signing_hash(), hasher=None)
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
        return transaction.encode(r, s, signature[64])

    def __repr__(self) -> str:
        return f"Key({checksum(self.address)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not copied or written anywhere")


class LocalBackend:
    """A backend whose key lies in this process; how it got here is the subclass's business."""

    _key: Key

    @property
    def address(self) -> bytes:
        """The account, 20 bytes."""
        return self._key.address

    def sign(self, transaction: UnsignedTransaction) -> bytes:
        """Sign, deterministically."""
        return self._key.sign(transaction)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._key!r})"


def pinned(key: Key, address: bytes, where: str) -> Key:
    """The key, if it is the one of `address`. Raises KeyRefused otherwise.

    Needed even for a keystore with the right password: its checksum does not cover the initialisation vector, so a
    changed one decrypts without an error to another key.
    """
    if key.address != address:
        raise KeyRefused(f"the key in {where} is of {checksum(key.address)}, not of the configured {checksum(address)}")
    return key
