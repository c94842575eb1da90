"""What the data of a REVERT says, as geth's accounts/abi reads it: Error(string) and Panic(uint256) of Solidity."""

from typing import Final

_ERROR: Final = bytes.fromhex("08c379a0")
_PANIC: Final = bytes.fromhex("4e487b71")
_PANICS: Final = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}


def revert_reason(output: bytes) -> str | None:
    """The reason in words, None where the data is neither of the two."""
    selector, body = output[:4], output[4:]
    if selector == _PANIC and len(body) >= 32:
        code = int.from_bytes(body[:32], "big")
        return _PANICS.get(code, f"unknown panic code: {code:#x}")
    if selector == _ERROR and len(body) >= 64:
        at = int.from_bytes(body[:32], "big")
        length = int.from_bytes(body[at : at + 32], "big")
        text = body[at + 32 : at + 32 + length]
        if len(body) >= at + 32 and len(text) == length:
            return text.decode(errors="replace")
    return None
