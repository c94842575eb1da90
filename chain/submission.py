"""What a node's answer to a transaction means: one closed set of verdicts, translated once, here. Pure.

**No verdict ends an execution.** A node may refuse what another has mined, and may say "nonce too low" about the very
bytes it holds; only a receipt or a nonce at a final block is evidence. A verdict decides when to send the same bytes
again, and what to tell a person.

The table is keyed by the beginning of the node's message in lower case: today's geth appends details, and codes are
shared by unlike answers (-32003 is "response too large" in geth and "insufficient funds" in reth), so a code is a hint
only. A text that is not in the table is AMBIGUOUS: maybe sent.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """How one endpoint answered one transaction."""

    ACCEPTED = "accepted"
    """It returned the hash we computed."""
    ALREADY_KNOWN = "already known"
    """It holds these very bytes."""
    NONCE_TOO_LOW = "nonce too low"
    """The nonce is used: by these bytes, by another attempt of ours, or by a stranger. Receipts tell which."""
    UNDERPRICED = "underpriced"
    """Too cheap for this node now; the same bytes may do later."""
    REPLACEMENT_UNDERPRICED = "replacement underpriced"
    """It holds another transaction of this nonce and wants a higher raise."""
    INSUFFICIENT_FUNDS = "insufficient funds"
    """By its count (which may include everything pooled) the account cannot pay now."""
    REJECTED = "rejected"
    """One of the few refusals that are definite for this node: it did not take the bytes and says why."""
    RATE_LIMITED = "rate limited"
    """Turned away for going too fast. As uncertain as AMBIGUOUS; slow down."""
    AMBIGUOUS = "ambiguous"
    """Maybe sent: time-out, broken answer, HTTP error, or a text nobody has read yet."""


@dataclass(frozen=True, slots=True)
class SendAnswer:
    """A verdict and the node's words for it: at most 300 printable characters, without URLs."""

    verdict: Verdict
    detail: str


_K, _L, _U, _R = Verdict.ALREADY_KNOWN, Verdict.NONCE_TOO_LOW, Verdict.UNDERPRICED, Verdict.REPLACEMENT_UNDERPRICED
_F, _X, _S = Verdict.INSUFFICIENT_FUNDS, Verdict.REJECTED, Verdict.RATE_LIMITED

BY_PREFIX: dict[str, Verdict] = {
    # the bytes are there
    "already known": _K,
    "alreadyknown": _K,
    "transaction already imported": _K,
    "known transaction": _K,
    "existing txn with same hash": _K,
    "existing tx with same hash": _K,
    "transaction with the same hash was already imported": _K,
    "already in mempool": _K,
    "tx already in mempool": _K,
    # the nonce is used
    "nonce too low": _L,
    "oldnonce": _L,
    "transaction nonce is too low": _L,
    "transaction nonce too low": _L,
    "noncetoolow": _L,
    # another of this nonce is there
    "replacement transaction underpriced": _R,
    "could not replace existing tx": _R,
    "replacementnotallowed": _R,
    "replaceunderpriced": _R,
    # too cheap
    "transaction underpriced": _U,
    "underpriced": _U,
    "fee too low": _U,
    "feetoolow": _U,  # and FeeTooLowToCompete
    "transaction gas price below minimum": _U,
    "gas price below": _U,
    "max fee per gas less than block base fee": _U,
    "gas tip cap": _U,
    "transaction priority fee below minimum required": _U,
    # funds
    "insufficient funds": _F,
    "insufficientfunds": _F,
    "upfront cost exceeds account balance": _F,
    # definite
    "intrinsic gas": _X,
    "intrinsicgas": _X,
    "insufficient gas for floor data gas cost": _X,
    "oversized data": _X,
    "oversizeddata": _X,
    "exceeds block gas limit": _X,
    "gas limit is too high": _X,
    "transaction gas limit too high": _X,
    "transaction gas limit exceeds block gas limit": _X,
    "exceeds max transaction gas limit": _X,
    "max initcode size exceeded": _X,
    "max priority fee per gas higher than max fee per gas": _X,
    "invalid chain id": _X,
    "invalid sender": _X,
    "wrong chainid": _X,
    "only replay-protected": _X,
    "tx fee (": _X,
    "transaction fee cap exceeded": _X,
    "transaction type not supported": _X,
    "typed transaction too short": _X,
    "failed to decode transaction": _X,
    "empty transaction data": _X,
    "rlp:": _X,
    "rlptoolong": _X,
    "invalid rlp": _X,
    "initcode too large": _X,
    "gas limit too high": _X,
    "gas limit reached": _X,
    "gaslimitexceeded": _X,
    "transaction too large": _X,
    "maxtxsizeexceeded": _X,
    "transaction invalid,": _X,
    "invalid,": _X,
    "invalid signature": _X,
    "invalid transaction signature": _X,
    "invalid transaction params": _X,
    "invalid transaction type": _X,
    "unsupported transaction type": _X,
    "failed to decode signed transaction": _X,
    "failed to recover sender": _X,
    "failedtoresolvesender": _X,
    "chainid is required": _X,
    "max priority fee per gas exceeds max fee per gas": _X,
    "sender is not an eoa": _X,
    "sender not an eoa": _X,
    "senderiscontract": _X,
    "sender account not authorized": _X,
    "nonce has max value": _X,
    # too fast
    "over rate limit": _S,
    "sender is over rate limit": _S,
    "rate limit": _S,
    "too many requests": _S,
    "daily request count exceeded": _S,
}
"""Beginning of a message, lower case and with single spaces → verdict (anvil, geth, Nethermind, Besu, Erigon, Reth, Nitro, proxyd)."""

RATE_LIMIT_CODES = frozenset({-32005, -32016, -32017, -32024})
"""Codes that EIP-1474 (-32005) and proxyd give to rate limits and nobody else to anything."""

_ERIGON_STATUS = re.compile(r"^(already_exists|internal_error|fee_too_low|invalid): ")
_PREFIXES = tuple(sorted(BY_PREFIX, key=len, reverse=True))
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_DETAIL_LIMIT = 300


def classify(code: int | None, message: str) -> Verdict:
    """Translate a node's error. Whatever is not known for certain is AMBIGUOUS."""
    text = _ERIGON_STATUS.sub("", " ".join(message[:1000].lower().split()))
    for prefix in _PREFIXES:
        if text.startswith(prefix):
            return BY_PREFIX[prefix]
    return Verdict.RATE_LIMITED if code in RATE_LIMIT_CODES else Verdict.AMBIGUOUS


def detail(message: str) -> str:
    """Make a stranger's text fit to be stored and shown: printable, one line, bounded, URLs masked."""
    text = _URL.sub("<url>", "".join(c if c.isprintable() else " " for c in message[:4000]))
    text = " ".join(text.split())
    return text if len(text) <= _DETAIL_LIMIT else text[: _DETAIL_LIMIT - 1] + "…"


def answer(code: int | None, message: str, data: Any = None) -> SendAnswer:
    """The whole answer for a node's error. Some gateways put the node's own words into `data`."""
    verdict = classify(code, message)
    inner = data.get("message") if isinstance(data, dict) else data
    if verdict is not Verdict.AMBIGUOUS or not isinstance(inner, str) or inner.startswith("0x"):
        return SendAnswer(verdict, detail(message))
    return SendAnswer(classify(code, inner), detail(f"{message}: {inner}" if message else inner))
