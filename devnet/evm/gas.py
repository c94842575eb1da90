"""Gas that depends on a transaction's bytes alone: intrinsic gas, the data floor, init code (Prague)."""

from typing import Final

from devnet.codec.transaction import AccessList

GAS_TRANSACTION: Final = 21_000
GAS_CREATION: Final = 32_000
GAS_INITCODE_WORD: Final = 2  # EIP-3860
GAS_ACCESS_ADDRESS: Final = 2_400  # EIP-2930
GAS_ACCESS_SLOT: Final = 1_900
GAS_DATA_TOKEN: Final = 4  # a zero byte is one token, any other four (EIP-7623)
GAS_FLOOR_TOKEN: Final = 10
MAX_INITCODE: Final = 49_152


def intrinsic_gas(data: bytes, access_list: AccessList, *, creation: bool) -> int:
    """Gas taken before the first opcode."""
    gas = GAS_TRANSACTION + GAS_DATA_TOKEN * _tokens(data)
    if creation:
        gas += GAS_CREATION + initcode_gas(data)
    for _, slots in access_list:
        gas += GAS_ACCESS_ADDRESS + GAS_ACCESS_SLOT * len(slots)
    return gas


def floor_gas(data: bytes) -> int:
    """The least a transaction with this data pays (EIP-7623)."""
    return GAS_TRANSACTION + GAS_FLOOR_TOKEN * _tokens(data)


def initcode_gas(code: bytes) -> int:
    """Gas for init code by its 32-byte words (EIP-3860)."""
    return GAS_INITCODE_WORD * ((len(code) + 31) // 32)


def _tokens(data: bytes) -> int:
    return 4 * len(data) - 3 * data.count(0)
