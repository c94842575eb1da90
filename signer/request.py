"""What is asked of the signer and what it answers: one verb, a batch of requests under one fence."""

import uuid
from dataclasses import dataclass, field
from enum import StrEnum

from chain.transaction import AccessList, UnsignedTransaction


class Kind(StrEnum):
    """What a signature is for."""

    SEND = "SEND"
    """The first offer for a nonce."""
    BUMP = "BUMP"
    """The same intent at the same nonce with higher fees."""
    CANCEL = "CANCEL"
    """Nothing, sent to oneself, so that the nonce is used and what it was for is not done."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The lease generation that asks: account, token and lease id (P8, P9). Raises ValueError for values out of range."""

    chain_id: int
    address: bytes
    token: int
    lease_id: uuid.UUID

    def __post_init__(self) -> None:
        if type(self.chain_id) is not int or not 1 <= self.chain_id < 1 << 63:
            raise ValueError(f"a chain id is 1 to 2^63 - 1, not {self.chain_id!r}")
        if type(self.address) is not bytes or len(self.address) != 20:
            raise ValueError("an account's address is 20 bytes")
        if type(self.token) is not int or not 1 <= self.token < 1 << 63:
            raise ValueError(f"a lease token is 1 to 2^63 - 1, not {self.token!r}")


@dataclass(frozen=True, slots=True)
class SignRequest:
    """One wanted signature, for one step of one execution.

    `intent_digest` is the reservation's digest (P24); for a SEND or BUMP the signer recomputes it from the
    transaction, for a CANCEL it is not read. Raises ValueError for values out of range.
    """

    execution_id: str
    step: int
    kind: Kind
    transaction: UnsignedTransaction
    intent_digest: bytes

    def __post_init__(self) -> None:
        if not self.execution_id or len(self.execution_id) > 500 or "\0" in self.execution_id:
            raise ValueError("an execution id is 1 to 500 characters")
        if type(self.step) is not int or not 0 <= self.step < 1 << 31:
            raise ValueError(f"a step is a number from 0, not {self.step!r}")
        if type(self.intent_digest) is not bytes or len(self.intent_digest) != 32:
            raise ValueError("an intent digest is 32 bytes")


def reads_as_cancel(to: bytes | None, value_wei: int, data: bytes, access_list: AccessList, address: bytes) -> bool:
    """Say whether a call does nothing but use its nonce: zero to oneself, without data or access list."""
    return to == address and value_wei == 0 and not data and not access_list


class RefusalReason(StrEnum):
    """Why the signer said no, which decides what the caller does (P6)."""

    POLICY = "POLICY"
    """The account's policy forbids it: the attempt is REFUSED and its nonce cancelled."""
    STALE = "STALE"
    """An older fence: the caller drops its lease."""
    GUARD = "GUARD"
    """The nonce is bound to something else, or the step to another nonce: the account halts, nothing is cancelled."""


@dataclass(frozen=True, slots=True)
class Signed:
    """Stored bytes. `replayed` tells that they were there before this call."""

    raw: bytes = field(repr=False)
    hash: bytes
    replayed: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal with its evidence: `detail` is one sentence naming what stands against it."""

    reason: RefusalReason
    detail: str


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """What the journal knows about a nonce. `state` is intent or cancel; `hashes` are those of the bytes it gave out."""

    nonce: int
    execution_id: str
    step: int
    state: str
    digest: bytes
    hashes: tuple[bytes, ...]
