"""What compiled code may name: expressions for opcodes without side effects, and the functions it calls for the rest.

Operands are numbers from 0 to 2**256 - 1, {0} the topmost, and so is every result.
"""

from typing import Any, Final

from eth.exceptions import Revert

from devnet.codec.keccak import keccak
from devnet.evm.world import Column, World

WORD: Final = (1 << 256) - 1
_SIGN: Final = 1 << 255
_SENTRY: Final = 2_300  # gas that must be left at an SSTORE (EIP-2200)
_COLD_SLOT: Final = 2_100  # EIP-2929
_WARM: Final = 100
_SET: Final = 20_000
_RESET: Final = 5_000 - _COLD_SLOT
_CLEARED: Final = 4_800  # EIP-3529
REFUSED: Final = -1

# Conditions are kept as such until a number is needed: most end in a JUMPI.
CONDITIONS: Final = {
    "LT": "{0} < {1}",
    "GT": "{0} > {1}",
    "SLT": "{0} ^ SIGN < {1} ^ SIGN",
    "SGT": "{0} ^ SIGN > {1} ^ SIGN",
    "EQ": "{0} == {1}",
    "ISZERO": "not ({0})",
}
EXPRESSIONS: Final = {
    "ADD": "{0} + {1} & WORD",
    "MUL": "{0} * {1} & WORD",
    "SUB": "{0} - {1} & WORD",
    "DIV": "{0} // {1} if {1} else 0",
    "SDIV": "signed_divide({0}, {1})",
    "MOD": "{0} % {1} if {1} else 0",
    "SMOD": "signed_modulo({0}, {1})",
    "ADDMOD": "({0} + {1}) % {2} if {2} else 0",
    "MULMOD": "{0} * {1} % {2} if {2} else 0",
    "SIGNEXTEND": "sign_extend({0}, {1})",
    "AND": "{0} & {1}",
    "OR": "{0} | {1}",
    "XOR": "{0} ^ {1}",
    "NOT": "{0} ^ WORD",
    "BYTE": "{1} >> 8 * (31 - {0}) & 255 if {0} < 32 else 0",
    "SHL": "{1} << {0} & WORD if {0} < 256 else 0",
    "SHR": "{1} >> {0}",
    "SAR": "shift_signed({0}, {1})",
    "CLZ": "256 - ({0}).bit_length()",
    "ADDRESS": "number(c.msg.storage_address, 'big')",
    "ORIGIN": "number(c.transaction_context.origin, 'big')",
    "CALLER": "number(c.msg.sender, 'big')",
    "CALLVALUE": "c.msg.value",
    "CALLDATALOAD": "word(c.msg.data, {0})",
    "CALLDATASIZE": "len(c.msg.data)",
    "CODESIZE": "len(CODE)",
    "GASPRICE": "c.transaction_context.gas_price",
    "COINBASE": "number(c.state.coinbase, 'big')",
    "TIMESTAMP": "c.state.timestamp",
    "NUMBER": "c.state.block_number",
    "GASLIMIT": "c.state.gas_limit",
    "CHAINID": "c.state.execution_context.chain_id",
    "BASEFEE": "c.state.base_fee",
    "BLOBBASEFEE": "c.state.blob_base_fee",
}
# These read what other opcodes change.
READINGS: Final = {
    "RETURNDATASIZE": "len(c.return_data)",
    "SELFBALANCE": "w.balance(a)",
    "MSIZE": "len(m)",
    "TLOAD": "w.transient.get((a, {0}), 0)",
}
ACCOUNTS: Final = {
    "BALANCE": "c.state.get_balance(t)",
    "EXTCODESIZE": "len(c.state.get_code(t))",
    "EXTCODEHASH": "0 if c.state.account_is_empty(t) else number(c.state.get_code_hash(t), 'big')",
}
COPIES: Final = {
    "CALLDATACOPY": "c.msg.data[{0}:{0} + {1}]",
    "CODECOPY": "CODE[{0}:{0} + {1}]",
    "RETURNDATACOPY": "c.return_data[{0}:{0} + {1}]",
    "MCOPY": "m[{0}:{0} + {1}]",
}


def leave(computation: Any, height: int, values: tuple[int, ...], gas: int, pc: int) -> int:
    """Give the computation its stack above `height` and its gas back; the pc to go on at."""
    computation._stack.values[height:] = values
    computation._gas_meter.gas_remaining = gas
    return pc


def claim(memory: bytearray, offset: int, size: int, price: int, gas: int) -> int:
    """Pay `price` and for memory up to the end of an area, and extend it. Gas left; REFUSED, with nothing done, if too dear."""
    held, end = len(memory), offset + size
    if size and end > held:
        words, had = end + 31 >> 5, held >> 5
        price += 3 * (words - had) + words * words // 512 - had * had // 512
        if price > gas:
            return REFUSED
        memory.extend(bytes((words << 5) - held))
    return gas - price if price <= gas else REFUSED


def sstore(computation: Any, world: World, column: Column, slot: int, value: int, gas: int, spare: int) -> int:
    """SSTORE (EIP-2200, EIP-2929, EIP-3529). Gas left; REFUSED, with nothing done, where py-evm has to say why not.

    `spare` is gas paid ahead for what follows: at this opcode it is still there.
    """
    if computation.msg.is_static or gas + spare <= _SENTRY:
        return REFUSED
    address = computation.msg.storage_address
    key = (address, slot)
    cold = key not in world.warm
    now = column.get(slot, 0)
    first = world.originals.get(key)
    if first is None:
        first = now
    price, refund = _WARM, 0
    if now != value:
        if now == first:
            price = _RESET if first else _SET
            if first and not value:
                refund = _CLEARED
        else:
            if first:
                refund = _CLEARED * ((not value) - (not now))
            if first == value:
                refund += (_RESET if first else _SET) - _WARM
    if cold:
        price += _COLD_SLOT
    if price > gas:
        return REFUSED
    if cold:
        world.write(world.warm, key, True)
    if now != value:
        computation._gas_meter.gas_refunded += refund
        world.originals[key] = first
        world.write(column, slot, value)
    return gas - price


def word(data: bytes, at: int) -> int:
    """The 32 bytes at an offset as a number, zeros beyond the end."""
    part = data[at : at + 32]
    return int.from_bytes(part, "big") << 8 * (32 - len(part))


def signed(value: int) -> int:
    """A word read as two's complement."""
    return value - (value >> 255 << 256)


def signed_divide(numerator: int, denominator: int) -> int:
    """SDIV: rounds towards zero."""
    if not denominator:
        return 0
    one, other = signed(numerator), signed(denominator)
    quotient = abs(one) // abs(other)
    return (quotient if (one < 0) == (other < 0) else -quotient) & WORD


def signed_modulo(value: int, modulus: int) -> int:
    """SMOD: takes the sign of the value."""
    if not modulus:
        return 0
    one = signed(value)
    rest = abs(one) % abs(signed(modulus))
    return (rest if one >= 0 else -rest) & WORD


def sign_extend(size: int, value: int) -> int:
    """SIGNEXTEND of a number of size + 1 bytes."""
    if size > 30:
        return value
    bit = 1 << 8 * size + 7
    return value | WORD + 1 - bit if value & bit else value & bit - 1


def shift_signed(shift: int, value: int) -> int:
    """SAR."""
    return signed(value) >> shift & WORD


NAMES: Final[dict[str, Any]] = {
    "REFUSED": REFUSED,
    "Revert": Revert,
    "SIGN": _SIGN,
    "WORD": WORD,
    "claim": claim,
    "keccak": keccak,
    "leave": leave,
    "number": int.from_bytes,
    "shift_signed": shift_signed,
    "sign_extend": sign_extend,
    "signed_divide": signed_divide,
    "signed_modulo": signed_modulo,
    "sstore": sstore,
    "word": word,
}
