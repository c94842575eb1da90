"""Calls, amounts and hashes in the words of people."""

from chain.types import checksum
from executor.units import format_wei

_TRANSFER = bytes.fromhex("a9059cbb")
_APPROVE = bytes.fromhex("095ea7b3")
_TRANSFER_FROM = bytes.fromhex("23b872dd")


def call_text(recipient: bytes | None, value_wei: int, data: bytes) -> str:
    """What a call does: ether moved, an ERC-20 transfer, a contract called or created."""
    if recipient is None:
        return f"create a contract from {len(data)} bytes of code" + _with_value(value_wei)
    if not data:
        return f"send {format_wei(value_wei)} to {checksum(recipient)}"
    return _token_call(recipient, data) + _with_value(value_wei)


def short(value: bytes | None) -> str:
    """A hash in full, "-" for none."""
    return "-" if value is None else "0x" + value.hex()


def per_gas(wei: int) -> str:
    """A price per gas."""
    return f"{wei / 10**9:.9g} gwei"


def _token_call(recipient: bytes, data: bytes) -> str:
    selector, words = data[:4], [data[at : at + 32] for at in range(4, len(data), 32)]
    token = checksum(recipient)
    if selector == _TRANSFER and len(data) == 68 and _is_address(words[0]):
        return f"ERC-20 transfer of {_amount(words[1])} units of {token} to {checksum(words[0][12:])}"
    if selector == _APPROVE and len(data) == 68 and _is_address(words[0]):
        return f"ERC-20 approval of {_amount(words[1])} units of {token} for {checksum(words[0][12:])}"
    if selector == _TRANSFER_FROM and len(data) == 100 and _is_address(words[0]) and _is_address(words[1]):
        giver, receiver = checksum(words[0][12:]), checksum(words[1][12:])
        return f"ERC-20 transfer of {_amount(words[2])} units of {token} from {giver} to {receiver}"
    return f"call {token} with 0x{selector.hex()}… ({len(data)} bytes)"


def _amount(word: bytes) -> str:
    number = int.from_bytes(word)
    return "all (2^256 - 1)" if number == 2**256 - 1 else str(number)


def _is_address(word: bytes) -> bool:
    return len(word) == 32 and not any(word[:12])


def _with_value(value_wei: int) -> str:
    return f", with {format_wei(value_wei)}" if value_wei else ""
