"""Amounts, durations and addresses as people write them, turned into exact values.

Amounts are text with a unit ("2 gwei", "0.5 ether"), because a bare number does not say wei or ether and
50 ether in wei overflows a TOML integer. Only integer arithmetic is used: nothing is rounded.
"""

from __future__ import annotations

import re
from functools import lru_cache

from chain.types import checksum

UINT256_MAX = 2**256 - 1
_WEI = {"wei": 0, "kwei": 3, "mwei": 6, "gwei": 9, "szabo": 12, "finney": 15, "ether": 18, "eth": 18}
_AMOUNT = re.compile(r"([0-9][0-9_]{0,90})(?:\.([0-9]{1,90}))?[ ]*([a-zA-Z]+)", re.ASCII)
_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,3}))?[ ]*(ms|s|m|h|d)", re.ASCII)


def parse_wei(text: object) -> int:
    """The amount in wei that `text` names, such as "2 gwei".

    Raises:
        ValueError: no unit, an unknown unit, a sign, a fraction of a wei, or more than uint256 holds.
    """
    match = _AMOUNT.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f'{_shown(text)} is not an amount; write a number and a unit, such as "2 gwei" or "0.5 ether"')
    whole, fraction, unit = match[1].replace("_", ""), (match[2] or "").rstrip("0"), match[3].lower()
    if unit not in _WEI:
        raise ValueError(f"{_shown(match[3])} is not a unit of ether; use wei, gwei or ether")
    places = _WEI[unit]
    if len(fraction) > places:
        raise ValueError(f"{_shown(text)} is not a whole number of wei; drop the digits that are too small")
    wei = int(whole + fraction.ljust(places, "0"))
    if wei > UINT256_MAX:
        raise ValueError(f"{_shown(text)} is more than 2^256 - 1 wei; no chain can hold it")
    return wei


def format_wei(wei: int) -> str:
    """`wei` in the largest of ether, gwei and wei that keeps it short; exact, and `parse_wei` reads it back."""
    if wei < 0:
        return "-" + format_wei(-wei)
    for unit in ("ether", "gwei"):
        places = _WEI[unit]
        if wei >= 10 ** (places - 3):
            whole, rest = divmod(wei, 10**places)
            digits = str(rest).rjust(places, "0").rstrip("0")
            return f"{whole}.{digits} {unit}" if digits else f"{whole} {unit}"
    return f"{wei} wei"


def parse_seconds(text: object) -> float:
    """The duration in seconds that `text` names, such as "15m", "30s", "200ms", "1h" or "1d".

    Raises:
        ValueError: no unit, an unknown unit, a sign, or a fraction of a millisecond.
    """
    match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f'{_shown(text)} is not a duration; write a number and one of ms, s, m, h, d, such as "30s"')
    scale = _MILLISECONDS[match[3]]
    fraction = match[2] or ""
    part, rest = divmod(int(fraction or "0") * scale, int("1".ljust(len(fraction) + 1, "0")))
    if rest:
        raise ValueError(f"{_shown(text)} is not a whole number of milliseconds; drop the digits that are too small")
    return (int(match[1]) * scale + part) / 1_000


def format_seconds(seconds: float) -> str:
    """`seconds` in the largest unit that divides it; `parse_seconds` reads it back."""
    milliseconds = round(seconds * 1_000)
    for unit in ("d", "h", "m", "s"):
        if milliseconds and milliseconds % _MILLISECONDS[unit] == 0:
            return f"{milliseconds // _MILLISECONDS[unit]}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0s"


@lru_cache(maxsize=4096)
def parse_address(text: object) -> bytes:
    """The 20 bytes of the address `text`, which must be spelled with its EIP-55 checksum.

    Raises:
        ValueError: not text, not an address, or another spelling; the sentence gives the right one.
    """
    if not isinstance(text, str) or _ADDRESS.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} is not an address; write 0x and 40 hex digits")
    raw = bytes.fromhex(text[2:])
    right = checksum(raw)
    if text != right:
        raise ValueError(f'"{text}" has a wrong checksum; check every digit, and if they are right write "{right}"')
    return raw


def _shown(value: object) -> str:
    """A value as an error may show it: at most 40 characters of text, numbers named as what they are."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:37]}..."'
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"the bare number {value if abs(value) < 10**21 else format(value, '.3e')}"
    return "None" if value is None else f"a value of type {type(value).__name__}"
