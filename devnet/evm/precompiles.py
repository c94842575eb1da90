"""Precompiled contracts that py-evm lacks, has for older forks only, or runs too slowly: one function each on its computation."""

from typing import Any, Final

from eth.exceptions import VMError
from eth.precompiles.ecrecover import ecrecover as _recover

from devnet.codec.sidecar import trusted_setup, versioned_hash

_GAS_ECRECOVER: Final = 3_000
_GAS_P256VERIFY: Final = 6_900
_GAS_POINT_EVALUATION: Final = 50_000
_MODEXP_BYTES: Final = 1_024
_MODEXP_LEAST_GAS: Final = 500
_P256_FIELD: Final = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_P256_BASE: Final = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_FIELD_ELEMENTS_PER_BLOB: Final = 4_096
_BLS_MODULUS: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001


def ecrecover(computation: Any) -> Any:
    """The signer of a digest, or who the signature was given to by hand (anvil_impersonateSignature)."""
    given = computation.state.given_signatures
    if given:
        data = computation.msg.data_as_bytes
        address = given.get(data[64:128] + data[63:64])
        if address is not None:
            computation.consume_gas(_GAS_ECRECOVER, reason="ECRecover Precompile")
            computation.output = address.rjust(32, b"\0")
            return computation
    return _recover(computation)


def modexp(computation: Any) -> Any:
    """Base to the exponent, modulo; each at most 1024 bytes long (EIP-198, EIP-7823, EIP-7883)."""
    data = computation.msg.data_as_bytes
    base_size, exponent_size, modulus_size = (_word(data, at) for at in (0, 32, 64))
    if max(base_size, exponent_size, modulus_size) > _MODEXP_BYTES:
        raise VMError("one or more of base/exponent/modulus length exceeded 1024 bytes")
    body = data[96:].ljust(base_size + exponent_size + modulus_size, b"\0")
    exponent_at = body[base_size : base_size + exponent_size]
    computation.consume_gas(modexp_gas(base_size, exponent_at, modulus_size), reason="MODEXP")
    modulus = int.from_bytes(body[base_size + exponent_size :][:modulus_size], "big")
    power = 0
    if modulus:
        power = pow(int.from_bytes(body[:base_size], "big"), int.from_bytes(exponent_at, "big"), modulus)
    computation.output = power.to_bytes(modulus_size, "big")
    return computation


def modexp_gas(base_size: int, exponent: bytes, modulus_size: int) -> int:
    """The price of MODEXP (EIP-7883)."""
    size = max(base_size, modulus_size)
    words = (size + 7) // 8
    complexity = 2 * words * words if size > 32 else 16
    head = int.from_bytes(exponent[:32], "big")
    iterations = max(head.bit_length() - 1, 0) + 16 * max(len(exponent) - 32, 0)
    return max(_MODEXP_LEAST_GAS, complexity * max(iterations, 1))


def p256verify(computation: Any) -> Any:
    """Check an ECDSA signature over secp256r1: 1 as a word where it holds, else no output (EIP-7951)."""
    computation.consume_gas(_GAS_P256VERIFY, reason="P256VERIFY")
    data = computation.msg.data_as_bytes
    if len(data) == 160 and p256_holds(*(_word(data, at) for at in range(0, 160, 32))):
        computation.output = (1).to_bytes(32, "big")
    return computation


def p256_holds(digest: int, r: int, s: int, x: int, y: int) -> bool:
    """Whether (r, s) is a signature of the digest by the key (x, y), all as numbers."""
    from Crypto.PublicKey.ECC import EccPoint

    if not (0 < r < _P256_ORDER and 0 < s < _P256_ORDER and x < _P256_FIELD and y < _P256_FIELD) or x == y == 0:
        return False
    try:
        key = EccPoint(x, y, "p256")
    except ValueError:  # not on the curve
        return False
    inverse = pow(s, -1, _P256_ORDER)
    point = EccPoint(*_P256_BASE, "p256") * (digest * inverse % _P256_ORDER) + key * (r * inverse % _P256_ORDER)
    return not point.is_point_at_infinity() and int(point.x) % _P256_ORDER == r


def point_evaluation(computation: Any) -> Any:
    """Check that a blob's polynomial has a value at a point (EIP-4844). py-evm loads the ceremony's file for every call."""
    import ckzg

    computation.consume_gas(_GAS_POINT_EVALUATION, reason="POINT_EVALUATION")
    data = computation.msg.data_as_bytes
    if len(data) != 192:
        raise VMError("invalid input length")
    named, z, y, commitment, proof = data[:32], data[32:64], data[64:96], data[96:144], data[144:]
    if versioned_hash(commitment) != named:
        raise VMError("mismatched versioned hash")
    try:
        proven = ckzg.verify_kzg_proof(commitment, z, y, proof, trusted_setup())
    except (RuntimeError, ValueError):
        proven = False
    if not proven:
        raise VMError("error verifying kzg proof")
    computation.output = _FIELD_ELEMENTS_PER_BLOB.to_bytes(32, "big") + _BLS_MODULUS.to_bytes(32, "big")
    return computation


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 32].ljust(32, b"\0"), "big")
