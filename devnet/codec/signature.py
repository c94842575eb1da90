"""Who made a secp256k1 signature."""

from coincurve import PublicKey

from devnet.codec.keccak import keccak

SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
HALF_ORDER = SECP256K1_ORDER // 2


def signer(digest: bytes, y_parity: int, r: int, s: int) -> bytes | None:
    """The address that signed a 32-byte digest, None where the signature is none. High s values are none (EIP-2)."""
    if not (0 < r < SECP256K1_ORDER and 0 < s <= HALF_ORDER and y_parity in {0, 1}):
        return None
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((y_parity,))
    try:
        key = PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except ValueError:
        return None
    except Exception as problem:
        if type(problem) is not Exception:  # coincurve raises bare Exception for a point that is none
            raise
        return None
    return keccak(key.format(compressed=False)[1:])[12:]
