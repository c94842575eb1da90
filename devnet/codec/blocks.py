"""Headers, receipts and blocks as consensus knows them: what is hashed, and what is counted."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from devnet.codec import rlp_coding
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.transaction import LEGACY, Transaction
from devnet.codec.trie import EMPTY_ROOT

EMPTY_UNCLES = keccak(b"\xc0")
NO_REQUESTS = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")  # sha256(""), EIP-7685
ZERO_HASH = bytes(32)
EMPTY_BLOOM = bytes(256)
ELASTICITY = 2
BASE_FEE_DENOMINATOR = 8


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
            digest = keccak(value)
            for at in (0, 2, 4):
                bits |= 1 << (int.from_bytes(digest[at : at + 2], "big") & 2047)
    return bits.to_bytes(256, "big") if bits else EMPTY_BLOOM


@dataclass(frozen=True)
class Header:
    """A Prague header. `base_fee` in wei per gas, `timestamp` in seconds."""

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

    @cached_property
    def rlp(self) -> bytes:
        """The bytes whose hash is the block's hash."""
        fields: list[Item] = [
            self.parent_hash,
            EMPTY_UNCLES,
            self.coinbase,
            self.state_root,
            self.transactions_root,
            self.receipts_root,
            self.logs_bloom,
            b"",  # difficulty
            integer(self.number),
            integer(self.gas_limit),
            integer(self.gas_used),
            integer(self.timestamp),
            self.extra_data,
            self.prevrandao,
            bytes(8),  # nonce
            integer(self.base_fee),
            EMPTY_ROOT,  # withdrawals
            b"",  # blob gas used
            b"",  # excess blob gas
            ZERO_HASH,  # parent beacon block root
            NO_REQUESTS,
        ]
        return rlp_coding.encode(fields)

    @cached_property
    def hash(self) -> bytes:
        """The block's hash."""
        return keccak(self.rlp)

    def next_base_fee(self) -> int:
        """The base fee the next block must have (EIP-1559)."""
        target = self.gas_limit // ELASTICITY
        if self.gas_used == target or not target:
            return self.base_fee
        change = self.base_fee * abs(self.gas_used - target) // target // BASE_FEE_DENOMINATOR
        return self.base_fee + max(change, 1) if self.gas_used > target else self.base_fee - change


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of the transaction at `index`; `first_log` numbers its logs within the block, `price` is wei per gas."""

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

    def encode(self) -> bytes:
        """The receipt's leaf in the receipts trie (EIP-2718)."""
        logs = tuple((log.address, log.topics, log.data) for log in self.logs)
        status = b"\x01" if self.succeeded else b""
        body = rlp_coding.encode((status, integer(self.cumulative_gas), self.bloom, logs))
        return body if self.tx.type == LEGACY else bytes((self.tx.type,)) + body


@dataclass(frozen=True)
class Block:
    """A block of the chain; `receipts` holds its transactions in order."""

    header: Header
    receipts: tuple[Receipt, ...]

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

    @cached_property
    def size(self) -> int:
        """Bytes of its RLP: header, transactions, no uncles, no withdrawals."""
        bodies = [tx.raw if tx.type == LEGACY else rlp_coding.encode(tx.raw) for tx in self.transactions]
        return len(rlp_coding.wrap(self.header.rlp + rlp_coding.wrap(b"".join(bodies)) + b"\xc0\xc0"))
