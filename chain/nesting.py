"""How deep foreign JSON is nested, looked at before it is parsed."""

import re

MANY_OPENINGS = 2000
MAX_DEPTH = 100
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def is_too_deep(raw: bytes, *, harmless_openings: int = MANY_OPENINGS) -> bool:
    """Say whether JSON is nested deeper than any answer is; up to `harmless_openings` brackets it is not looked at.

    The parser recurses in C, and libraries raise the recursion limit for everybody (py_ecc, and so web3 and eth-account,
    to 100,000): then 100 kB of "[" from a node would end the process with a segmentation fault.
    """
    if raw.count(b"[") + raw.count(b"{") <= harmless_openings:
        return False
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(raw):
        first = raw[token.start()]
        depth += 1 if first in b"[{" else -1 if first in b"]}" else 0
        if depth > MAX_DEPTH:
            return True
    return False
