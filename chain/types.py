"""The words used for a chain: blocks, receipts, what an account looks like. Frozen values, no I/O.

Addresses are 20 bytes and hashes 32 bytes everywhere inside; text exists at the edges only. Amounts are int wei.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from chain.errors import ChainError
from chain.keccak import keccak


class InvalidAddress(ChainError, ValueError):
    """Text that is not an address, or one whose spelling does not prove it was copied whole."""


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block by number and hash: both, because a number alone means another block after a reorg."""

    number: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The header fields we use. `timestamp` is in seconds, `base_fee_wei` is 0 on chains without EIP-1559."""

    number: int
    hash: bytes
    parent_hash: bytes
    timestamp: int
    base_fee_wei: int
    gas_limit: int

    @property
    def ref(self) -> BlockRef:
        """The block as a reference."""
        return BlockRef(self.number, self.hash)


@dataclass(frozen=True, slots=True)
class Receipt:
    """One sighting of a transaction in a block. `l1_fee_wei` is what OP-stack chains charge beside gas."""

    hash: bytes
    block: BlockRef
    status: int
    gas_used: int
    effective_gas_price_wei: int
    l1_fee_wei: int | None


@dataclass(frozen=True, slots=True)
class ChainView:
    """What one tick knows about a chain and an account, asked once and used by every stage.

    `final` is the newest block the chain's finality rule calls final, None while a tag names no block yet;
    `nonce_final` is the account's nonce at exactly that block. `nonce_pending` is never below `nonce_latest`, and None
    where the node does not tell it.
    """

    head: Head
    final: BlockRef | None
    nonce_latest: int
    nonce_pending: int | None
    nonce_final: int | None
    balance_wei: int
    tip_wei: int


@dataclass(frozen=True, slots=True)
class Depth:
    """Final is the block `depth` below the head (block 0 while the chain is shorter)."""

    depth: int

    def __post_init__(self) -> None:
        if type(self.depth) is not int or self.depth < 0:
            raise ValueError(f"a finality depth is a number of blocks, 0 or more, not {self.depth!r}")


@dataclass(frozen=True, slots=True)
class Tag:
    """Final is what the node calls so."""

    tag: Literal["safe", "finalized"]

    def __post_init__(self) -> None:
        if self.tag not in ("safe", "finalized"):
            raise ValueError(f"the finality tags are safe and finalized, not {self.tag!r}")


FinalityRule = Depth | Tag

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


@lru_cache(maxsize=4096)
def checksum(address: bytes) -> str:
    """Spell an address with its EIP-55 checksum."""
    if len(address) != 20:
        raise InvalidAddress(f"an address has 20 bytes, not {len(address)}")
    text = address.hex()
    marks = keccak(text.encode()).hex()
    return "0x" + "".join(c.upper() if int(mark, 16) >= 8 else c for c, mark in zip(text, marks, strict=False))


def to_address(text: str) -> bytes:
    """Read an address. Only the exact EIP-55 spelling is taken: one wrong character is another account.

    Raises InvalidAddress, which tells the right spelling where there is one.
    """
    if not _ADDRESS.fullmatch(text):
        raise InvalidAddress(f"an address is 0x and 40 hexadecimal digits, not {text[:60]!r}")
    address = bytes.fromhex(text[2:])
    right = checksum(address)
    if text != right:
        raise InvalidAddress(
            f"the address {text} does not carry its EIP-55 checksum; if it is the right one, write {right}"
        )
    return address
