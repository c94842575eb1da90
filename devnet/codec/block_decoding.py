"""Blocks from their RLP, as peers and `geth export` pass them on: header, transactions, uncles, withdrawals."""

from collections.abc import Sequence
from dataclasses import dataclass

from devnet.codec import rlp_coding
from devnet.codec.blocks import Header
from devnet.codec.rlp_coding import Item
from devnet.errors import DecodeError

_SIZES = frozenset({15, 16, 17, 20, 21})  # up to Gray Glacier without and with base fee, Shanghai, Cancun, Prague


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Ether coming back from the consensus layer: `amount` in gwei (EIP-4895)."""

    index: int
    validator: int
    address: bytes
    amount: int


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A block whose transactions are still bytes, as eth_sendRawTransaction takes them.

    `uncles_rlp` is the list as it was encoded, `withdrawal_leaves` are the items of the other; None before Shanghai.
    """

    header: Header
    transactions: tuple[bytes, ...]
    uncles: tuple[Header, ...]
    uncles_rlp: bytes
    withdrawals: tuple[Withdrawal, ...]
    withdrawal_leaves: tuple[bytes, ...] | None

    @property
    def withdrawals_rlp(self) -> bytes:
        """The list of withdrawals as it was encoded; the empty one where there is none."""
        return rlp_coding.wrap(b"".join(self.withdrawal_leaves or ()))


def decode_block(raw: bytes) -> EncodedBlock:
    """Read one block. Raises DecodeError."""
    parts = _list(rlp_coding.decode(raw), "block")
    if len(parts) not in {3, 4}:
        raise DecodeError(f"a block has 3 or 4 parts, not {len(parts)}")
    withdrawals = _list(parts[3], "withdrawals") if len(parts) == 4 else ()
    return EncodedBlock(
        header=decode_header(parts[0]),
        transactions=tuple(
            item if isinstance(item, bytes) else rlp_coding.encode(item) for item in _list(parts[1], "transactions")
        ),
        uncles=tuple(decode_header(item) for item in _list(parts[2], "uncles")),
        uncles_rlp=rlp_coding.encode(parts[2]),
        withdrawals=tuple(_withdrawal(item) for item in withdrawals),
        withdrawal_leaves=tuple(rlp_coding.encode(item) for item in withdrawals) if len(parts) == 4 else None,
    )


def decode_header(item: Item) -> Header:
    """Read a header of any fork from its RLP item; which it is tells their number. Raises DecodeError."""
    fields = _list(item, "header")
    count = len(fields)
    if count not in _SIZES:
        raise DecodeError(f"a header has 15, 16, 17, 20 or 21 fields, not {count}")
    return Header(
        parent_hash=_fixed(fields[0], 32, "parentHash"),
        uncles_hash=_fixed(fields[1], 32, "sha3Uncles"),
        coinbase=_fixed(fields[2], 20, "miner"),
        state_root=_fixed(fields[3], 32, "stateRoot"),
        transactions_root=_fixed(fields[4], 32, "transactionsRoot"),
        receipts_root=_fixed(fields[5], 32, "receiptsRoot"),
        logs_bloom=_fixed(fields[6], 256, "logsBloom"),
        difficulty=_number(fields[7], "difficulty"),
        number=_number(fields[8], "number"),
        gas_limit=_number(fields[9], "gasLimit"),
        gas_used=_number(fields[10], "gasUsed"),
        timestamp=_number(fields[11], "timestamp"),
        extra_data=_text(fields[12], "extraData"),
        prevrandao=_fixed(fields[13], 32, "mixHash"),
        nonce=_fixed(fields[14], 8, "nonce"),
        has_base_fee=count > 15,
        base_fee=_number(fields[15], "baseFeePerGas") if count > 15 else 0,
        withdrawals_root=_fixed(fields[16], 32, "withdrawalsRoot") if count > 16 else None,
        blob_gas_used=_number(fields[17], "blobGasUsed") if count > 17 else None,
        excess_blob_gas=_number(fields[18], "excessBlobGas") if count > 17 else None,
        parent_beacon_root=_fixed(fields[19], 32, "parentBeaconBlockRoot") if count > 17 else None,
        requests_hash=_fixed(fields[20], 32, "requestsHash") if count > 20 else None,
    )


def decode_uncles(raw: bytes) -> tuple[Header, ...]:
    """Read a list of headers. Raises DecodeError."""
    return tuple(decode_header(item) for item in _list(rlp_coding.decode(raw), "uncles"))


def decode_withdrawals(raw: bytes) -> tuple[Withdrawal, ...]:
    """Read a list of withdrawals. Raises DecodeError."""
    return tuple(_withdrawal(item) for item in _list(rlp_coding.decode(raw), "withdrawals"))


def _withdrawal(item: Item) -> Withdrawal:
    fields = _list(item, "withdrawal")
    if len(fields) != 4:
        raise DecodeError(f"a withdrawal has 4 fields, not {len(fields)}")
    return Withdrawal(
        index=_number(fields[0], "index"),
        validator=_number(fields[1], "validatorIndex"),
        address=_fixed(fields[2], 20, "address"),
        amount=_number(fields[3], "amount"),
    )


def _list(item: Item, name: str) -> Sequence[Item]:
    if isinstance(item, bytes):
        raise DecodeError(f"{name} is no list")
    return item


def _text(item: Item, name: str) -> bytes:
    if not isinstance(item, bytes):
        raise DecodeError(f"{name} is a list")
    return item


def _fixed(item: Item, size: int, name: str) -> bytes:
    text = _text(item, name)
    if len(text) != size:
        raise DecodeError(f"{name} has {len(text)} bytes, want {size}")
    return text


def _number(item: Item, name: str) -> int:
    text = _text(item, name)
    if len(text) > 32 or text[:1] == b"\0":
        raise DecodeError(f"{name} is no number in shortest form")
    return int.from_bytes(text, "big")
