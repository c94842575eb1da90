"""Blob gas: what it costs now, and how a block moves the price of the next (EIP-4844, EIP-7691, EIP-7918)."""

from functools import lru_cache
from typing import Final

from devnet.codec.blocks import Header
from devnet.codec.transaction import GAS_PER_BLOB
from devnet.evm.forks import Fork

MIN_BLOB_BASE_FEE: Final = 1
_BLOB_BASE_COST: Final = 8_192  # execution gas a blob is held to be worth (EIP-7918)


@lru_cache(maxsize=1024)
def _fake_exponential(numerator: int, denominator: int) -> int:
    """About `MIN_BLOB_BASE_FEE * e ** (numerator / denominator)` in integers, as EIP-4844 prescribes it."""
    index, output, term = 1, 0, MIN_BLOB_BASE_FEE * denominator
    while term > 0:
        output += term
        term = term * numerator // (denominator * index)
        index += 1
    return output // denominator


def blob_base_fee(fork: Fork, excess: int) -> int:
    """Wei per blob gas at this excess; the least there is under a fork without blobs."""
    if fork.blobs is None:
        return MIN_BLOB_BASE_FEE
    return _fake_exponential(excess, fork.blobs.base_fee_update_fraction)


def next_excess(fork: Fork, parent: Header) -> int:
    """The excess blob gas of a block under `fork` that follows `parent`."""
    if fork.blobs is None:
        return 0
    excess, used = parent.excess_blob_gas or 0, parent.blob_gas_used or 0
    target = fork.blobs.target * GAS_PER_BLOB
    if excess + used < target:
        return 0
    if fork.reserves_blob_price:
        reserve = _BLOB_BASE_COST * parent.base_fee
        if reserve > GAS_PER_BLOB * blob_base_fee(fork, excess):
            return excess + used * (fork.blobs.max - fork.blobs.target) // fork.blobs.max
    return excess + used - target


def max_blob_gas(fork: Fork) -> int:
    """The blob gas a block may use."""
    return fork.blobs.max * GAS_PER_BLOB if fork.blobs else 0
