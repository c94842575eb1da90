"""Signed transactions: bytes to fields to sender. Types 0 (legacy), 1 (EIP-2930), 2 (EIP-1559), 3 (EIP-4844), 4 (EIP-7702)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from devnet.codec import rlp_coding
from devnet.codec.authorization import Authorization, authorization_list
from devnet.codec.fields import (
    AccessList,
    FieldError,
    access_list,
    address,
    big,
    checked_count,
    hashes,
    recipient,
    string,
    struct_fields,
    uint64,
    uint256,
)
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.sidecar import Sidecar, decode_sidecar
from devnet.codec.signature import signer
from devnet.errors import DecodeError, Rejected

LEGACY, ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE = range(5)
GAS_PER_BLOB: Final = 131_072
_STRUCTS: Final = {
    LEGACY: ("LegacyTx", 9),
    ACCESS_LIST: ("AccessListTx", 11),
    DYNAMIC_FEE: ("DynamicFeeTx", 12),
    BLOB: ("BlobTx", 14),
    SET_CODE: ("SetCodeTx", 13),
}


@dataclass(frozen=True)
class Transaction:
    """A decoded transaction with the exact bytes a block holds of it. Amounts are wei; `to` is None for a creation.

    Types 0 and 1 carry their gas price in both fee fields. `chain_id` is None for a legacy transaction without EIP-155.
    `sidecar` travels with a type 3 transaction and is part neither of `raw` nor of the hash.
    `given_sender` is the account it was sent as without a signature (impersonation); None where the signature tells.
    """

    raw: bytes
    hash: bytes
    type: int
    chain_id: int | None
    nonce: int
    max_priority_fee: int
    max_fee: int
    gas: int
    to: bytes | None
    value: int
    data: bytes
    access_list: AccessList
    v: int
    r: int
    s: int
    signing_hash: bytes
    given_sender: bytes | None = None
    max_fee_per_blob_gas: int = 0
    blob_hashes: tuple[bytes, ...] = ()
    authorizations: tuple[Authorization, ...] = ()
    sidecar: Sidecar | None = None

    @property
    def y_parity(self) -> int:
        """The bit that tells the two candidate public keys apart."""
        if self.type != LEGACY:
            return self.v
        return self.v - 27 if self.chain_id is None else (self.v - 35) % 2

    @property
    def blob_gas(self) -> int:
        """Gas for its blobs, bought apart from the other (EIP-4844)."""
        return GAS_PER_BLOB * len(self.blob_hashes)

    @property
    def cost(self) -> int:
        """The most it can take from its sender, in wei: gas and blob gas at the fee caps, and the value."""
        return self.gas * self.max_fee + self.value + self.blob_gas * self.max_fee_per_blob_gas

    @property
    def wire(self) -> bytes:
        """The bytes it came as and goes on as: with the sidecar where there is one (EIP-4844, networking)."""
        if self.sidecar is None:
            return self.raw
        return self.raw[:1] + rlp_coding.encode([rlp_coding.decode(self.raw[1:]), *self.sidecar.items()])

    @cached_property
    def sender(self) -> bytes:
        """The address that signed. High s values are refused (EIP-2). Raises Rejected("invalid_signature")."""
        if self.given_sender is not None:
            return self.given_sender
        found = signer(self.signing_hash, self.y_parity, self.r, self.s)
        if found is None:
            raise Rejected("invalid_signature")
        return found

    def price(self, base_fee: int) -> int:
        """What a unit of gas costs at this base fee, in wei (EIP-1559 effective gas price)."""
        return min(self.max_fee, base_fee + self.max_priority_fee)

    def tip(self, base_fee: int) -> int:
        """What of that goes to the block's maker; negative where the fee cap is below the base fee."""
        return min(self.max_priority_fee, self.max_fee - base_fee)


def decode(raw: bytes) -> Transaction:
    """Read a transaction from the bytes of eth_sendRawTransaction (EIP-2718). Raises DecodeError with geth's words.

    A type 3 transaction may come with its sidecar or as blocks hold it, without.
    """
    if raw and raw[0] >= 0x80:
        kind, body = LEGACY, raw
    elif len(raw) <= 1:
        raise DecodeError("typed transaction too short")
    else:
        kind, body = raw[0], raw[1:]
    if kind not in _STRUCTS:
        raise DecodeError("transaction type not supported")
    if kind == BLOB:
        return _blob(rlp_coding.decode(body))
    struct, count = _STRUCTS[kind]
    fields = struct_fields(body, struct, count)
    try:
        return _legacy(raw, fields) if kind == LEGACY else _typed(raw, kind, fields)
    except FieldError as problem:
        raise problem.inside(struct) from None


def _blob(item: Item) -> Transaction:
    """Both forms of type 3: the network's is a list whose first item is the transaction."""
    struct, count = _STRUCTS[BLOB]
    if isinstance(item, bytes):
        raise DecodeError("rlp: expected List")
    if not item or (len(item) == 1 and not isinstance(item[0], bytes)):
        raise DecodeError("unexpected EOF")
    inner, place, path = item, "", struct
    if not isinstance(item[0], bytes):
        wrapper = f"blobTxWithBlobsV{int(isinstance(item[1], bytes))}"
        inner, place, path = item[0], f", decoding into (types.{wrapper}).BlobTx", f"{wrapper}.BlobTx"
    fields = checked_count(inner, struct, count, place)
    try:
        tx = _typed(bytes((BLOB,)) + rlp_coding.encode(inner), BLOB, fields)
    except FieldError as problem:
        raise problem.inside(path) from None
    return tx if inner is item else replace(tx, sidecar=decode_sidecar(item[1:]))


def _typed(raw: bytes, kind: int, fields: Sequence[Item]) -> Transaction:
    amount = big if kind in {ACCESS_LIST, DYNAMIC_FEE} else uint256
    tip, cap = (2, 2) if kind == ACCESS_LIST else (2, 3)
    names = ("GasPrice", "GasPrice") if kind == ACCESS_LIST else ("GasTipCap", "GasFeeCap")
    gas, to, value, payload, access = fields[cap + 1 : cap + 6]
    return Transaction(
        raw=raw,
        hash=keccak(raw),
        type=kind,
        chain_id=amount(fields[0], "ChainID"),
        nonce=uint64(fields[1], "Nonce"),
        max_priority_fee=amount(fields[tip], names[0]),
        max_fee=amount(fields[cap], names[1]),
        gas=uint64(gas, "Gas"),
        to=recipient(to) if amount is big else address(to, "To"),
        value=amount(value, "Value"),
        data=string(payload, "Data"),
        access_list=access_list(access),
        v=amount(fields[-3], "V"),
        r=amount(fields[-2], "R"),
        s=amount(fields[-1], "S"),
        signing_hash=keccak(raw[:1] + rlp_coding.encode(fields[:-3])),
        max_fee_per_blob_gas=uint256(fields[9], "BlobFeeCap") if kind == BLOB else 0,
        blob_hashes=hashes(fields[10], "BlobHashes") if kind == BLOB else (),
        authorizations=authorization_list(fields[9]) if kind == SET_CODE else (),
    )


def _legacy(raw: bytes, fields: Sequence[Item]) -> Transaction:
    v = big(fields[6], "V")
    chain_id = None if v in {27, 28} else (v - 35) // 2
    if chain_id is not None and chain_id < 0:
        raise DecodeError("invalid transaction v, r, s values")
    unsigned = fields[:6] if chain_id is None else [*fields[:6], integer(chain_id), b"", b""]
    price = big(fields[1], "GasPrice")
    return Transaction(
        raw=raw,
        hash=keccak(raw),
        type=LEGACY,
        chain_id=chain_id,
        nonce=uint64(fields[0], "Nonce"),
        max_priority_fee=price,
        max_fee=price,
        gas=uint64(fields[2], "Gas"),
        to=recipient(fields[3]),
        value=big(fields[4], "Value"),
        data=string(fields[5], "Data"),
        access_list=(),
        v=v,
        r=big(fields[7], "R"),
        s=big(fields[8], "S"),
        signing_hash=keccak(rlp_coding.encode(unsigned)),
    )
