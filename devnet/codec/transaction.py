"""Signed transactions: bytes to fields to sender. Types 0 (legacy), 1 (EIP-2930) and 2 (EIP-1559)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from coincurve import PublicKey

from devnet.codec import rlp_coding
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import Item, integer
from devnet.errors import DecodeError, Rejected

SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
HALF_ORDER = SECP256K1_ORDER // 2
LEGACY, ACCESS_LIST, DYNAMIC_FEE = 0, 1, 2
_FIELDS = {LEGACY: 9, ACCESS_LIST: 11, DYNAMIC_FEE: 12}

AccessList = tuple[tuple[bytes, tuple[bytes, ...]], ...]


@dataclass(frozen=True)
class Transaction:
    """A decoded transaction with the exact bytes it came as. Amounts are wei; `to` is None for a creation.

    Types 0 and 1 carry their gas price in both fee fields. `chain_id` is None for a legacy transaction without EIP-155.
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

    @property
    def y_parity(self) -> int:
        """The bit that tells the two candidate public keys apart."""
        if self.type != LEGACY:
            return self.v
        return self.v - 27 if self.chain_id is None else (self.v - 35) % 2

    @property
    def cost(self) -> int:
        """The most it can take from its sender, in wei: gas at the fee cap, and the value."""
        return self.gas * self.max_fee + self.value

    @cached_property
    def sender(self) -> bytes:
        """The address that signed. High s values are refused (EIP-2). Raises Rejected("invalid_signature")."""
        if not (0 < self.r < SECP256K1_ORDER and 0 < self.s <= HALF_ORDER and self.y_parity in {0, 1}):
            raise Rejected("invalid_signature")
        signature = self.r.to_bytes(32, "big") + self.s.to_bytes(32, "big") + bytes((self.y_parity,))
        try:
            key = PublicKey.from_signature_and_message(signature, self.signing_hash, hasher=None)
        except ValueError:
            raise Rejected("invalid_signature") from None
        except Exception as problem:
            if type(problem) is not Exception:  # coincurve raises bare Exception for a point that is none
                raise
            raise Rejected("invalid_signature") from None
        return keccak(key.format(compressed=False)[1:])[12:]

    def price(self, base_fee: int) -> int:
        """What a unit of gas costs at this base fee, in wei (EIP-1559 effective gas price)."""
        return min(self.max_fee, base_fee + self.max_priority_fee)

    def tip(self, base_fee: int) -> int:
        """What of that goes to the block's maker; negative where the fee cap is below the base fee."""
        return min(self.max_priority_fee, self.max_fee - base_fee)


def decode(raw: bytes) -> Transaction:
    """Read a transaction from the bytes of eth_sendRawTransaction (EIP-2718). Raises DecodeError with geth's words."""
    if raw and raw[0] >= 0x80:
        return _legacy(raw)
    if len(raw) <= 1:
        raise DecodeError("typed transaction too short")
    kind = raw[0]
    if kind not in {ACCESS_LIST, DYNAMIC_FEE}:
        raise DecodeError("transaction type not supported")
    fields = _fields(raw[1:], kind)
    unsigned = rlp_coding.encode(fields[:-3])
    prices = 2 if kind == ACCESS_LIST else 3
    max_fee = _number(fields[prices], 32)
    to, value, payload, access = fields[prices + 2 : prices + 6]
    return Transaction(
        raw=raw,
        hash=keccak(raw),
        type=kind,
        chain_id=_number(fields[0], 32),
        nonce=_number(fields[1], 8),
        max_priority_fee=_number(fields[2], 32),
        max_fee=max_fee,
        gas=_number(fields[prices + 1], 8),
        to=_recipient(to),
        value=_number(value, 32),
        data=_string(payload),
        access_list=_access_list(access),
        v=_number(fields[-3], 32),
        r=_number(fields[-2], 32),
        s=_number(fields[-1], 32),
        signing_hash=keccak(raw[:1] + unsigned),
    )


def _legacy(raw: bytes) -> Transaction:
    fields = _fields(raw, LEGACY)
    v = _number(fields[6], 32)
    chain_id = None if v in {27, 28} else (v - 35) // 2
    if chain_id is not None and chain_id < 0:
        raise DecodeError("invalid transaction v, r, s values")
    unsigned = fields[:6] if chain_id is None else [*fields[:6], integer(chain_id), b"", b""]
    price = _number(fields[1], 32)
    return Transaction(
        raw=raw,
        hash=keccak(raw),
        type=LEGACY,
        chain_id=chain_id,
        nonce=_number(fields[0], 8),
        max_priority_fee=price,
        max_fee=price,
        gas=_number(fields[2], 8),
        to=_recipient(fields[3]),
        value=_number(fields[4], 32),
        data=_string(fields[5]),
        access_list=(),
        v=v,
        r=_number(fields[7], 32),
        s=_number(fields[8], 32),
        signing_hash=keccak(rlp_coding.encode(unsigned)),
    )


def _fields(raw: bytes, kind: int) -> Sequence[Item]:
    item = rlp_coding.decode(raw)
    if isinstance(item, bytes):
        raise DecodeError("rlp: expected input list for types.TxData")
    if len(item) < _FIELDS[kind]:
        raise DecodeError("rlp: too few elements for types.TxData")
    if len(item) > _FIELDS[kind]:
        raise DecodeError("rlp: input list has too many elements for types.TxData")
    return item


def _string(item: Item) -> bytes:
    if not isinstance(item, bytes):
        raise DecodeError("rlp: expected input string or byte for []uint8")
    return item


def _number(item: Item, width: int) -> int:
    text = _string(item)
    if len(text) > width:
        raise DecodeError("rlp: input string too long for uint64" if width == 8 else "rlp: value overflows uint256")
    if text[:1] == b"\0":
        raise DecodeError("rlp: non-canonical integer (leading zero bytes)")
    return int.from_bytes(text, "big")


def _recipient(item: Item) -> bytes | None:
    text = _string(item)
    if text and len(text) != 20:
        raise DecodeError("rlp: input string has the wrong size for common.Address")
    return text or None


def _access_list(item: Item) -> AccessList:
    if isinstance(item, bytes):
        raise DecodeError("rlp: expected input list for types.AccessList")
    entries = []
    for entry in item:
        if isinstance(entry, bytes) or len(entry) != 2 or isinstance(entry[1], bytes):
            raise DecodeError("rlp: expected input list for types.AccessTuple")
        slots = tuple(_string(slot) for slot in entry[1])
        address = _recipient(entry[0])
        if address is None or any(len(slot) != 32 for slot in slots):
            raise DecodeError("rlp: input string too short for common.Hash")
        entries.append((address, slots))
    return tuple(entries)
