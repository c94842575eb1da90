"""What one endpoint says about things that must not be believed from one endpoint alone: a final receipt, a nonce used by others.

Each is asked in one post, so that what comes back belongs together. An endpoint that stands below the final block, or
answers a question with an error, has no say; one with another block at that height contradicts everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chain import answers
from chain.errors import ChainError
from chain.finality import is_final
from chain.rpc import Call, Result, Rpc
from chain.types import BlockRef, checksum


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to be final: this transaction stands in this block with this status (1 is success)."""

    hash: bytes
    block: BlockRef
    status: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """For each claim whether it is `proved` (one endpoint at least says so, none says otherwise), and by whom.

    `denied` are the claims that one endpoint at least says are wrong and none affirms; `contradicting` are the endpoints
    that denied what another affirmed.
    """

    proved: list[bool]
    denied: list[bool]
    endpoints: list[str]
    contradicting: list[str]


def opinion(rpc: Rpc, claims: Sequence[Claim], final: BlockRef) -> list[bool | None]:
    """What this endpoint says of each claim: True, False, or None where it has no say. Raises like `Rpc.batch`."""
    numbers = sorted({final.number, *(claim.block.number for claim in claims)})
    calls: list[Call] = [("eth_getTransactionReceipt", [answers.hex_of(claim.hash)]) for claim in claims]
    calls += [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
    replies = rpc.batch(calls)
    blocks = {n: _hash(reply, n) for n, reply in zip(numbers, replies[len(claims) :], strict=True)}
    if blocks[final.number] is None:
        return [None] * len(claims)
    if blocks[final.number] != final.hash:
        return [False] * len(claims)
    return [_judge(claim, reply, blocks, final) for claim, reply in zip(claims, replies, strict=False)]


def weigh(opinions: dict[str, list[bool | None]], count: int) -> Agreement:
    """Put the endpoints' opinions on `count` claims together."""
    affirmed = [any(said[i] for said in opinions.values()) for i in range(count)]
    denied = [any(said[i] is False for said in opinions.values()) for i in range(count)]
    contradicting = [
        label for label, said in opinions.items() if any(affirmed[i] and said[i] is False for i in range(count))
    ]
    return Agreement(
        proved=[yes and not no for yes, no in zip(affirmed, denied, strict=True)],
        denied=[no and not yes for yes, no in zip(affirmed, denied, strict=True)],
        endpoints=[label for label, said in opinions.items() if True in said],
        contradicting=contradicting,
    )


def nothing_of_ours(rpc: Rpc, hashes: Sequence[bytes], sender: bytes, nonce: int, final: BlockRef) -> bool | None:
    """Whether by this endpoint `nonce` is used at the final block and none of these transactions is in any block.

    None where it has no say; a receipt counts wherever it stands. Raises like `Rpc.batch`.
    """
    calls: list[Call] = [("eth_getTransactionReceipt", [answers.hex_of(item)]) for item in hashes]
    at = hex(final.number)
    calls += [("eth_getBlockByNumber", [at, False]), ("eth_getTransactionCount", [checksum(sender), at])]
    *receipts, block, count = rpc.batch(calls)
    plain = [(r, h) for r, h in zip(receipts, hashes, strict=True) if not isinstance(r, ChainError)]
    if any(answers.receipt(reply, item) for reply, item in plain):
        return False
    found = _hash(block, final.number)
    if found is not None and found != final.hash:
        return False
    if found is None or isinstance(count, ChainError) or len(plain) < len(hashes):
        return None
    return answers.quantity(count) > nonce


def _hash(reply: Result, number: int) -> bytes | None:
    return None if reply is None or isinstance(reply, ChainError) else answers.head(reply, number).hash


def _judge(claim: Claim, reply: Result, blocks: dict[int, bytes | None], final: BlockRef) -> bool | None:
    canonical = blocks[claim.block.number]
    if isinstance(reply, ChainError) or canonical is None or not is_final(claim.block.number, final):
        return None
    receipt = answers.receipt(reply, claim.hash)
    if receipt is None:
        return False
    return (receipt.block, receipt.status, canonical) == (claim.block, claim.status, claim.block.hash)
