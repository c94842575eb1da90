"""Transactions as values: what may be signed, how it is encoded, and reading signed bytes back. Pure.

Types 0 (with EIP-155), 1 (EIP-2930) and 2 (EIP-1559). Every field is checked when the value is made, because a stored
transaction that no node can decode owns its nonce for ever. `decode` takes canonical encodings only and recovers the
sender, so what comes back from a key, a remote signer or a table can be compared field by field.
"""

from dataclasses import dataclass, field
from typing import cast

from chain import rlp
from chain.access_list import AccessList, check_access_list, decode_access_list, encode_access_list
from chain.errors import InvalidTransaction
from chain.keccak import keccak
from chain.signature import check_signature, recover

__all__ = [
    "AccessList",
    "SignedTransaction",
    "UnsignedTransaction",
    "cancel_digest",
    "decode",
    "intent_digest",
]

MIN_GAS = 21_000

_U64 = 1 << 64
_U256 = 1 << 256


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedTransaction:
    """A transaction that any node can decode. Amounts in wei.

    For types 0 and 1 `max_fee_wei` is the gas price and `tip_wei` equals it. `to` is None only for a contract creation,
    which must be asked for with `create=True`: a forgotten recipient never becomes one.

    Raises InvalidTransaction: a field of another type than told here (a bool is not an int), a number out of range
    (EIP-2681 for the nonce), gas below 21,000, a tip above the fee cap, an access list on type 0.
    """

    chain_id: int
    nonce: int
    type: int
    to: bytes | None
    create: bool = False
    value_wei: int
    data: bytes
    access_list: AccessList = ()
    gas: int
    max_fee_wei: int
    tip_wei: int
    _body: bytes | None = field(default=None, init=False, repr=False, compare=False)
    _sighash: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _number("the chain id", self.chain_id, 1, 1 << 63)
        _number("the nonce", self.nonce, 0, _U64 - 1)
        _number("the type", self.type, 0, 3)
        _number("the value", self.value_wei, 0, _U256)
        _number("the gas limit", self.gas, MIN_GAS, _U64)
        _number("the fee cap", self.max_fee_wei, 0, _U256)
        _number("the tip", self.tip_wei, 0, _U256)
        if self.tip_wei > self.max_fee_wei:
            raise InvalidTransaction(f"the tip of {self.tip_wei} wei is above the fee cap of {self.max_fee_wei} wei")
        if self.type < 2 and self.tip_wei != self.max_fee_wei:
            raise InvalidTransaction(
                f"a transaction of type {self.type} has one gas price: tip and fee cap must be equal"
            )
        if self.create not in (True, False) or self.create != (self.to is None):
            raise InvalidTransaction("a transaction has either a recipient or create=True")
        if self.to is not None and (type(self.to) is not bytes or len(self.to) != 20):
            raise InvalidTransaction("the recipient is not 20 bytes")
        if type(self.data) is not bytes:
            raise InvalidTransaction(f"the call data is {type(self.data).__name__}, not bytes")
        check_access_list(self.access_list)
        if self.access_list and self.type == 0:
            raise InvalidTransaction("a transaction of type 0 cannot carry an access list")

    def signing_payload(self) -> bytes:
        """The bytes whose keccak is signed."""
        if self.type == 0:
            return rlp.wrap(self._fields() + rlp.integer(self.chain_id) + b"\x80\x80")
        return bytes((self.type,)) + rlp.wrap(self._fields())

    def signing_hash(self) -> bytes:
        """keccak of `signing_payload`: what the key signs. It does not contain the sender."""
        if self._sighash is None:  # asked for by guard, key and verifier in turn
            object.__setattr__(self, "_sighash", keccak(self.signing_payload()))
        return cast("bytes", self._sighash)

    def encode(self, r: int, s: int, y_parity: int) -> bytes:
        """The signed transaction as it goes to a node. Raises InvalidTransaction for a bad or high-s signature."""
        check_signature(r, s, y_parity)
        if self.type == 0:
            v = rlp.integer(35 + 2 * self.chain_id + y_parity)
            return rlp.wrap(self._fields() + v + rlp.integer(r) + rlp.integer(s))
        tail = rlp.integer(y_parity) + rlp.integer(r) + rlp.integer(s)
        return bytes((self.type,)) + rlp.wrap(self._fields() + tail)

    def _fields(self) -> bytes:
        if self._body is None:
            object.__setattr__(self, "_body", self._encode_fields())
        return cast("bytes", self._body)

    def _encode_fields(self) -> bytes:
        integer, kind = rlp.integer, self.type
        head = integer(self.nonce)
        if kind:
            head = integer(self.chain_id) + head
        if kind == 2:
            head += integer(self.tip_wei)
        to = b"\x80" if self.to is None else b"\x94" + self.to
        body = (
            head + integer(self.max_fee_wei) + integer(self.gas) + to + integer(self.value_wei) + rlp.string(self.data)
        )
        return body + encode_access_list(self.access_list) if kind else body


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """Signed bytes, read back. `hash` is keccak of `raw`; `sender` is recovered from the signature."""

    unsigned: UnsignedTransaction
    r: int
    s: int
    y_parity: int
    raw: bytes
    hash: bytes
    sender: bytes


def decode(raw: bytes) -> SignedTransaction:
    """Read signed bytes. Raises InvalidTransaction unless they are canonical, in range, low-s and recoverable."""
    if type(raw) is not bytes or not raw:
        raise InvalidTransaction("a signed transaction is bytes, and not empty")
    unsigned, r, s, y_parity = _decode_legacy(raw) if raw[0] >= 0xC0 else _decode_typed(raw)
    if unsigned.encode(r, s, y_parity) != raw:
        raise InvalidTransaction("the encoding is not the canonical one")
    sender = recover(unsigned.signing_hash(), r, s, y_parity)
    return SignedTransaction(unsigned, r, s, y_parity, raw, keccak(raw), sender)


def intent_digest(
    chain_id: int, sender: bytes, to: bytes | None, value_wei: int, data: bytes, access_list: AccessList
) -> bytes:
    """Name what a nonce is for: keccak(rlp([chain id, sender, to or empty, value, data, access list])), rule P24.

    Fees, gas, nonce and type are left out, so a bump has the digest of what it bumps. An absent recipient and the
    zero address differ.
    """
    body = rlp.integer(chain_id) + rlp.string(sender) + rlp.string(to or b"") + rlp.integer(value_wei)
    return keccak(rlp.wrap(body + rlp.string(data) + encode_access_list(access_list)))


def cancel_digest(chain_id: int, sender: bytes) -> bytes:
    """The digest of a cancel: nothing, sent to oneself."""
    return intent_digest(chain_id, sender, sender, 0, b"", ())


def _number(what: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidTransaction(f"{what} is {type(value).__name__}, not int")
    if not low <= value < high:
        raise InvalidTransaction(f"{what} {value} is not in {low} … {high - 1}")


def _decode_legacy(raw: bytes) -> tuple[UnsignedTransaction, int, int, int]:
    items = _items(rlp.decode(raw), 9)
    nonce, price, gas = (rlp.unsigned(item) for item in items[:3])
    v, r, s = (rlp.unsigned(item) for item in items[6:])
    if v < 37:
        raise InvalidTransaction("a transaction without a chain id could be replayed on every chain (EIP-155)")
    chain_id, y_parity = divmod(v - 35, 2)
    unsigned = _make(0, chain_id, nonce, (price, price, gas), items[3:6], ())
    return unsigned, r, s, y_parity


def _decode_typed(raw: bytes) -> tuple[UnsignedTransaction, int, int, int]:
    kind = raw[0]
    if kind not in (1, 2):
        raise InvalidTransaction(f"transactions of type {kind} are not ours")
    items = _items(rlp.decode(raw[1:]), 11 if kind == 1 else 12)
    fees = items[2:4] if kind == 1 else items[2:5]
    rest = items[2 + len(fees) :]
    chain_id, nonce, y_parity, r, s = (rlp.unsigned(item) for item in (*items[:2], *rest[-3:]))
    prices = [rlp.unsigned(item) for item in fees]
    tip, cap, gas = (prices[0], *prices) if kind == 1 else prices
    return _make(kind, chain_id, nonce, (tip, cap, gas), rest[:3], decode_access_list(rest[3])), r, s, y_parity


def _make(
    kind: int, chain_id: int, nonce: int, prices: tuple[int, int, int], call: list[rlp.Item], access_list: AccessList
) -> UnsignedTransaction:
    to, value, data = call
    if not isinstance(to, bytes) or not isinstance(data, bytes):
        raise InvalidTransaction("a list stands where bytes belong")
    tip, cap, gas = prices
    return UnsignedTransaction(
        chain_id=chain_id,
        nonce=nonce,
        type=kind,
        to=to or None,
        create=not to,
        value_wei=rlp.unsigned(value),
        data=data,
        access_list=access_list,
        gas=gas,
        max_fee_wei=cap,
        tip_wei=tip,
    )


def _items(item: rlp.Item, count: int) -> list[rlp.Item]:
    if not isinstance(item, list) or len(item) != count:
        raise InvalidTransaction(f"a transaction of this type is a list of {count} fields")
    return item
