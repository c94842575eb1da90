"""Signatures on secp256k1: their range, and whose they are."""

from coincurve import PublicKey

from chain.errors import InvalidTransaction
from chain.keccak import keccak

SECP256K1_N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
HALF_N = SECP256K1_N // 2


def check_signature(r: int, s: int, y_parity: int) -> None:
    """Raise InvalidTransaction unless 0 < r < n, 0 < s ≤ n/2 (EIP-2) and the parity is 0 or 1."""
    if y_parity not in (0, 1):
        raise InvalidTransaction(f"a signature's parity is 0 or 1, not {y_parity}")
    if not 0 < r < SECP256K1_N or not 0 < s < SECP256K1_N:
        raise InvalidTransaction("the signature is out of the curve's range")
    if s > HALF_N:
        raise InvalidTransaction("the signature has a high s: the same transaction has a second hash (EIP-2)")


def recover(digest: bytes, r: int, s: int, y_parity: int) -> bytes:
    """The address whose key signed this digest. Raises InvalidTransaction if there is none."""
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((y_parity,))
    try:
        key = PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except Exception:  # noqa: BLE001  (the library raises bare Exception when no point fits)
        raise InvalidTransaction("the signature fits no key") from None
    return address_of(key)


def address_of(key: PublicKey) -> bytes:
    """The address of a public key: the last 20 bytes of keccak(x, y)."""
    return keccak(key.format(compressed=False)[1:])[12:]
