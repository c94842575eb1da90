"""Frozen row types, as the stores hand them to the stages. Addresses are 20 bytes, hashes 32 bytes, amounts int wei."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from chain.transaction import AccessList
from chain.types import BlockRef


@dataclass(frozen=True, slots=True)
class Account:
    """One account as stored; `first_nonce` is None until the first reconcile has seeded it."""

    account_id: int
    name: str
    chain_id: int
    address: bytes
    cancel_digest: bytes
    genesis_hash: bytes | None
    first_nonce: int | None
    state: str
    reason: str | None
    attention: str | None
    max_in_flight: int
    is_rewound: bool
    """The database is on another timeline, or in another cluster, than the account was last opened under (P13)."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease generation that was acquired: identity is (account, token, lease id)."""

    account_id: int
    token: int
    lease_id: UUID


@dataclass(frozen=True, slots=True)
class DueStrategy:
    """A strategy with slots to look at; `now` is the database's clock, as it was judged."""

    name: str
    account_id: int
    schedule: str | None
    every_seconds: float | None
    timezone: str
    misfire: str
    overlap: str
    start_deadline_seconds: float | None
    revision: str
    input: Any
    high_water_mark: datetime
    tzdata_version: str | None
    now: datetime


@dataclass(frozen=True, slots=True)
class PendingExecution:
    """An execution that waits for its plan."""

    execution_id: str
    strategy: str
    slot: datetime | None
    revision: str
    input: Any
    planning_attempts: int
    expired: bool
    due_before: bool
    """Its slot lies at or before the account's last reopening after a rewind, and no operator has released it."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One planned call, and what the reserve stage must know about its execution."""

    execution_id: str
    execution_state: str
    plan_order: str
    steps: int
    expired: bool
    reason: str | None
    step: int
    once: str | None
    recipient: bytes | None
    creates: bool
    value: int
    data: bytes
    access_list: AccessList
    gas: int | None
    digest: bytes


@dataclass(frozen=True, slots=True)
class Spent:
    """Who holds a `once`: `effect` is None while that step is open; `hash` is its FINAL transaction's."""

    once: str
    execution_id: str
    step: int
    effect: bool | None
    hash: bytes | None


@dataclass(frozen=True, slots=True)
class NewReservation:
    """An intent that gets a nonce, with the fees and gas of its first attempt. Fees in wei per gas."""

    intent: Intent
    gas: int
    max_fee: int
    tip: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A nonce that the chain used for good above the rows; what the signer's journal had bound it to, where it remembers."""

    nonce: int
    hash: bytes | None
    execution_id: str | None
    step: int | None
    final: BlockRef
    rule: str
    endpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A DRAFT attempt with all the signer needs."""

    nonce: int
    seq: int
    kind: str
    transaction_type: int
    execution_id: str
    step: int
    intent_digest: bytes
    recipient: bytes | None
    creates: bool
    value: int
    data: bytes
    access_list: AccessList
    gas: int
    max_fee: int
    tip: int
    signed_max_fee: int | None
    signed_tip: int | None


@dataclass(frozen=True, slots=True)
class Sendable:
    """The newest signed attempt of an open nonce, which waits to be handed over (again)."""

    nonce: int
    seq: int
    status: str
    raw: bytes
    hash: bytes
    execution_id: str


@dataclass(frozen=True, slots=True)
class Watched:
    """An attempt with bytes on an open nonce; `block_*` is the receipt believed, if any."""

    nonce: int
    seq: int
    kind: str
    status: str
    hash: bytes
    block_number: int | None
    block_hash: bytes | None
    receipt_status: int | None


def access_list_json(access_list: AccessList) -> list[list[Any]]:
    """An access list as it is stored: [[address, [key, …]], …] in hexadecimal."""
    return [["0x" + address.hex(), ["0x" + key.hex() for key in keys]] for address, keys in access_list]


def access_list_from(stored: list[list[Any]] | None) -> AccessList:
    """The access list that `access_list_json` stored; None is the empty one."""
    if stored is None:
        return ()
    return tuple(
        (bytes.fromhex(address[2:]), tuple(bytes.fromhex(key[2:]) for key in keys)) for address, keys in stored
    )
