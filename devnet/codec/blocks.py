"""Headers, receipts and blocks as consensus knows them: what is hashed, and what is counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from devnet.codec import rlp_coding
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.transaction import LEGACY, Transaction

EMPTY_UNCLES = keccak(b"\xc0")
NO_REQUESTS = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")  # sha256(""), EIP-7685
ZERO_HASH = bytes(32)
EMPTY_BLOOM = bytes(256)
ELASTICITY = 2
BASE_FEE_DENOMINATOR = 8
INITIAL_BASE_FEE = 10**9  # wei, of the first block that has one


@dataclass(frozen=True, slots=True)
class Log:
    """One event: who emitted it, up to four 32-byte topics, and its data."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


def bloom(logs: Iterable[Log]) -> bytes:
    """The 2048-bit filter of log addresses and topics (yellow paper, 4.3.1)."""
    bits = 0
    for log in logs:
        for value in (log.address, *log.topics):
            bits |= _bits(value)
    return bits.to_bytes(256, "big") if bits else EMPTY_BLOOM


def united(blooms: Sequence[bytes]) -> bytes:
    """The filter of all that is in any of these."""
    if len(blooms) == 1:
        return blooms[0]
    bits = 0
    for one in blooms:
        bits |= int.from_bytes(one, "big")
    return bits.to_bytes(256, "big")


@lru_cache(maxsize=4096)  # the same contracts emit the same events again and again
def _bits(value: bytes) -> int:
    digest = keccak(value)
    bits = 0
    for at in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[at : at + 2], "big") & 2047)
    return bits


@dataclass(frozen=True)
class Header:
    """A header of any fork. `base_fee` in wei per gas, `timestamp` in seconds.

    What a fork does not have yet is None and left out of the encoding (`base_fee` by `has_base_fee`, so that it stays a
    number): who makes a header sets exactly the fields its fork has, in the order of their introduction without a hole.
    `prevrandao` is the mix hash of proof of work before Paris, with `nonce`.
    """

    number: int
    parent_hash: bytes
    coinbase: bytes
    state_root: bytes
    transactions_root: bytes
    receipts_root: bytes
    logs_bloom: bytes
    gas_limit: int
    gas_used: int
    timestamp: int
    prevrandao: bytes
    base_fee: int
    extra_data: bytes = b""
    has_base_fee: bool = True
    difficulty: int = 0
    nonce: bytes = bytes(8)
    uncles_hash: bytes = EMPTY_UNCLES
    withdrawals_root: bytes | None = None
    blob_gas_used: int | None = None
    excess_blob_gas: int | None = None
    parent_beacon_root: bytes | None = None
    requests_hash: bytes | None = None

    @cached_property
    def rlp(self) -> bytes:
        """The bytes whose hash is the block's hash."""
        fields: list[Item] = [
            self.parent_hash,
            self.uncles_hash,
            self.coinbase,
            self.state_root,
            self.transactions_root,
            self.receipts_root,
            self.logs_bloom,
            integer(self.difficulty),
            integer(self.number),
            integer(self.gas_limit),
            integer(self.gas_used),
            integer(self.timestamp),
            self.extra_data,
            self.prevrandao,
            self.nonce,
        ]
        if self.has_base_fee:
            fields.append(integer(self.base_fee))
        if self.withdrawals_root is not None:
            fields.append(self.withdrawals_root)
        if self.blob_gas_used is not None and self.excess_blob_gas is not None and self.parent_beacon_root is not None:
            fields += (integer(self.blob_gas_used), integer(self.excess_blob_gas), self.parent_beacon_root)
        if self.requests_hash is not None:
            fields.append(self.requests_hash)
        return rlp_coding.encode(fields)

    @cached_property
    def hash(self) -> bytes:
        """The block's hash."""
        return keccak(self.rlp)

    def next_base_fee(self) -> int:
        """The base fee the next block must have, if it has one (EIP-1559)."""
        if not self.has_base_fee:
            return INITIAL_BASE_FEE
        target = self.gas_limit // ELASTICITY
        if self.gas_used == target or not target:
            return self.base_fee
        change = self.base_fee * abs(self.gas_used - target) // target // BASE_FEE_DENOMINATOR
        return self.base_fee + max(change, 1) if self.gas_used > target else self.base_fee - change


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of the transaction at `index`; `first_log` numbers its logs within the block, `price` is wei per gas.

    `blob_price` is the block's blob base fee in wei, `state_root` the root after the transaction, which receipts held
    before Byzantium in place of the status; None since then.
    """

    tx: Transaction
    index: int
    succeeded: bool
    gas_used: int
    cumulative_gas: int
    price: int
    logs: tuple[Log, ...]
    first_log: int
    bloom: bytes
    created: bytes | None
    blob_price: int = 1
    state_root: bytes | None = None

    def encode(self) -> bytes:
        """The receipt's leaf in the receipts trie (EIP-2718)."""
        logs = tuple((log.address, log.topics, log.data) for log in self.logs)
        outcome = self.state_root if self.state_root is not None else b"\x01" if self.succeeded else b""
        body = rlp_coding.encode((outcome, integer(self.cumulative_gas), self.bloom, logs))
        return body if self.tx.type == LEGACY else bytes((self.tx.type,)) + body


@dataclass(frozen=True)
class Block:
    """A block of the chain; `receipts` holds its transactions in order.

    `uncles` and `withdrawals` are RLP lists, empty for every block made here.
    """

    header: Header
    receipts: tuple[Receipt, ...]
    uncles: bytes = b"\xc0"
    withdrawals: bytes = b"\xc0"

    @property
    def number(self) -> int:
        """Its height."""
        return self.header.number

    @property
    def hash(self) -> bytes:
        """Its hash."""
        return self.header.hash

    @property
    def transactions(self) -> list[Transaction]:
        """Its transactions in order."""
        return [receipt.tx for receipt in self.receipts]

    @property
    def rlp(self) -> bytes:
        """Header, transactions, uncles and withdrawals, as peers exchange them."""
        bodies = [tx.raw if tx.type == LEGACY else rlp_coding.encode(tx.raw) for tx in self.transactions]
        withdrawals = b"" if self.header.withdrawals_root is None else self.withdrawals
        return rlp_coding.wrap(self.header.rlp + rlp_coding.wrap(b"".join(bodies)) + self.uncles + withdrawals)

    @cached_property
    def size(self) -> int:
        """Bytes of its RLP."""
        return len(self.rlp)
