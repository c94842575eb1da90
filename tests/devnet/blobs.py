"""Blob transactions for the tests. The blob of zeros needs no KZG library: its commitment and proofs are the point at infinity."""

from typing import Any

import rlp
from eth_account import Account
from eth_hash.auto import keccak

from tests.devnet.wallet import GWEI, Signed, Wallet

ZERO_BLOB = bytes(131_072)
INFINITY = b"\xc0" + bytes(47)
ZERO_HASH = "0x010657f37554c781402a22917dee2f75def7ab966d7b770905398eba3c444014"  # 0x01 and sha256(INFINITY)[1:]
CELLS = 128


def body(wallet: Wallet, nonce: int, blobs: int = 1, **fields: Any) -> Signed:
    """A type 3 transaction naming so many zero blobs, without its sidecar, as blocks hold it."""
    named = {"maxFeePerBlobGas": GWEI, "blobVersionedHashes": [ZERO_HASH] * blobs, "type": 3}
    return wallet.sign(nonce, **(named | fields))


def nameless(wallet: Wallet, nonce: int) -> Signed:
    """A type 3 transaction that names no blobs, which eth-account refuses to sign."""
    to = bytes.fromhex("5e" * 20)
    fields: list[Any] = [31337, nonce, GWEI, 10 * GWEI, 21_000, to, 0, b"", [], GWEI, []]
    made = Account.unsafe_sign_hash(keccak(b"\x03" + rlp.encode(fields)), wallet.key)
    raw = b"\x03" + rlp.encode([*fields, made.v - 27, made.r, made.s])
    return Signed("0x" + raw.hex(), "0x" + keccak(raw).hex())


def with_sidecar(
    signed: Signed, blobs: list[bytes], commitments: list[bytes], proofs: list[bytes], version: int = 1
) -> str:
    """The network form: version 1 carries proofs of cells, version 0 (no field) proofs of blobs."""
    wrapper = [b"\x01"] if version == 1 else [] if version == 0 else [bytes((version,))]
    inner = rlp.decode(bytes.fromhex(signed.raw[4:]))
    return "0x03" + rlp.encode([inner, *wrapper, blobs, commitments, proofs]).hex()


def sign(wallet: Wallet, nonce: int, blobs: int = 1, **fields: Any) -> Signed:
    """A transaction with so many zero blobs, ready to send (EIP-7594)."""
    signed = body(wallet, nonce, blobs, **fields)
    raw = with_sidecar(signed, [ZERO_BLOB] * blobs, [INFINITY] * blobs, [INFINITY] * (CELLS * blobs))
    return Signed(raw, signed.hash)
