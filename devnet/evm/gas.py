"""Gas that depends on a transaction's bytes alone: intrinsic gas, the data floor, init code."""

from typing import Final

from devnet.codec.fields import AccessList
from devnet.evm.forks import DEFAULT, Fork

GAS_TRANSACTION: Final = 21_000
GAS_INITCODE_WORD: Final = 2  # EIP-3860
GAS_ACCESS_ADDRESS: Final = 2_400  # EIP-2930
GAS_ACCESS_SLOT: Final = 1_900
GAS_ZERO_BYTE: Final = 4
GAS_FLOOR_TOKEN: Final = 10  # a zero byte is one token, any other four (EIP-7623)
GAS_AUTHORIZATION: Final = 25_000  # EIP-7702; half of it comes back where the account exists


def intrinsic_gas(
    data: bytes, access_list: AccessList, *, creation: bool, authorizations: int = 0, fork: Fork = DEFAULT
) -> int:
    """Gas taken before the first opcode."""
    zeros = data.count(0)
    gas = GAS_TRANSACTION + GAS_ZERO_BYTE * zeros + fork.nonzero_byte_gas * (len(data) - zeros)
    if creation:
        gas += fork.creation_gas + initcode_gas(data, fork)
    for _, slots in access_list:
        gas += GAS_ACCESS_ADDRESS + GAS_ACCESS_SLOT * len(slots)
    return gas + GAS_AUTHORIZATION * authorizations


def floor_gas(data: bytes, fork: Fork = DEFAULT) -> int:
    """The least a transaction with this data pays (EIP-7623); 0 under a fork without such a floor."""
    if not fork.has_data_floor:
        return 0
    return GAS_TRANSACTION + GAS_FLOOR_TOKEN * (4 * len(data) - 3 * data.count(0))


def initcode_gas(code: bytes, fork: Fork = DEFAULT) -> int:
    """Gas for init code by its 32-byte words (EIP-3860)."""
    return GAS_INITCODE_WORD * ((len(code) + 31) // 32) if fork.limits_initcode else 0
