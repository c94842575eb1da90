"""What `show` reads: everything the rows know about one execution."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from executor.database import Tx

_BY_NONCE = text("""
SELECT r.execution_id FROM nonce_reservation r JOIN account a USING (account_id) WHERE a.name = :account AND r.nonce = :nonce
""")
_BY_HASH = text("""
SELECT r.execution_id FROM attempt t JOIN nonce_reservation r USING (account_id, nonce) WHERE t.hash = :hash
UNION ALL SELECT r.execution_id FROM nonce_reservation r WHERE r.foreign_hash = :hash LIMIT 1
""")
# Whoever holds or spent the name comes first, then the newest that wants it.
_BY_ONCE = text("""
SELECT i.execution_id FROM intent i JOIN execution e USING (execution_id)
  LEFT JOIN nonce_reservation r ON (r.execution_id, r.step) = (i.execution_id, i.step)
 WHERE i.once = :once ORDER BY (r.nonce IS NOT NULL AND r.effect IS NOT FALSE) DESC, e.created_at DESC LIMIT 1
""")
_ACKNOWLEDGED = text("""
SELECT a.name AS account, k.nonce, k.hash, k.execution_id, r.who, r.why FROM acknowledged_nonce k JOIN account a USING (account_id)
  JOIN request r USING (request_id)
 WHERE (a.name, k.nonce) = (CAST(:account AS text), CAST(:nonce AS bigint)) OR k.hash = CAST(:hash AS bytea) LIMIT 1
""")
_EXISTS = text("SELECT execution_id FROM execution WHERE execution_id = :id")
_EXECUTION = text("""
SELECT e.execution_id, e.strategy, a.name AS account, a.chain_id, a.address, a.state AS account_state, e.slot, e.trigger_key, e.reissue_no,
       e.revision, s.revision AS registered_revision, e.input, e.state, e.reason, e.evidence, e.due_at, e.expires_at, e.planning_attempts,
       e.retry_at, e.plan_order, e.plan_block_number, e.plan_block_hash, e.steps, e.steps_effective, e.created_at, e.planned_at, e.ended_at
  FROM execution e JOIN account a USING (account_id) JOIN strategy s ON s.name = e.strategy WHERE e.execution_id = :id
""")
_STEPS = text("""
SELECT i.step, i.once, i.label, i.recipient, i.creates, i.value AS value_wei, i.data, i.gas, r.nonce, r.state, r.closed_as, r.closed_seq,
       r.effect, r.foreign_hash, r.witness_number, r.witness_rule, r.reserved_at, r.closed_at, p.paid_execution_id, p.paid_hash
  FROM intent i LEFT JOIN nonce_reservation r ON (r.execution_id, r.step) = (i.execution_id, i.step)
  LEFT JOIN already_paid p ON (p.execution_id, p.step) = (i.execution_id, i.step)
 WHERE i.execution_id = :id ORDER BY i.step
""")
_ATTEMPTS = text("""
SELECT r.step, t.nonce, t.seq, t.kind, t.status, t.gas, t.max_fee AS max_fee_wei, t.tip AS tip_wei, t.hash, t.reason, t.drafted_at, t.signed_at,
       t.signed_token, t.sent_at, t.sent_token
  FROM nonce_reservation r JOIN attempt t USING (account_id, nonce) WHERE r.execution_id = :id ORDER BY t.nonce, t.seq
""")
_VERDICTS = text("""
SELECT b.nonce, b.seq, b.endpoint, b.verdict, b.detail, b.count, b.first_at, b.last_at
  FROM nonce_reservation r JOIN broadcast b USING (account_id, nonce) WHERE r.execution_id = :id ORDER BY b.nonce, b.seq, b.first_at
""")
_RECEIPTS = text("""
SELECT c.nonce, c.seq, c.block_number, c.block_hash, c.status, c.gas_used, c.effective_gas_price AS gas_price_wei, c.l1_fee AS l1_fee_wei,
       c.seen_at, c.orphaned_at
  FROM nonce_reservation r JOIN receipt c USING (account_id, nonce) WHERE r.execution_id = :id ORDER BY c.nonce, c.seen_at
""")
_HISTORY = text("""
SELECT h.at, h.kind, h.subject, h.from_state, h.to_state, h.why, h.token, h.actor, g.holder
  FROM history h LEFT JOIN lease_generation g ON (g.account_id, g.token) = (h.account_id, h.token)
 WHERE (h.kind = 'execution' AND h.subject = :id)
    OR (h.kind = 'nonce' AND h.subject IN (SELECT account_id || '/' || nonce FROM nonce_reservation WHERE execution_id = :id))
    OR (h.kind = 'attempt' AND h.subject IN (
         SELECT t.account_id || '/' || t.nonce || '/' || t.seq FROM nonce_reservation r JOIN attempt t USING (account_id, nonce) WHERE r.execution_id = :id))
 ORDER BY h.history_id
""")


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A nonce that was used above the rows, as an operator acknowledged it; `execution_id` is what the signer's journal had bound it to."""

    account: str
    nonce: int
    hash: bytes | None
    execution_id: str | None
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Execution:
    """The execution itself, with what its account and strategy are now."""

    execution_id: str
    strategy: str
    account: str
    chain_id: int
    address: bytes
    account_state: str
    slot: datetime | None
    trigger_key: str | None
    reissue_no: int
    revision: str
    registered_revision: str
    input: Any
    state: str
    reason: str | None
    evidence: Any
    due_at: datetime
    expires_at: datetime | None
    planning_attempts: int
    retry_at: datetime | None
    plan_order: str | None
    plan_block_number: int | None
    plan_block_hash: bytes | None
    steps: int | None
    steps_effective: int | None
    created_at: datetime
    planned_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Step:
    """One planned call, the nonce it owns, and how that nonce was closed."""

    step: int
    once: str | None
    label: str | None
    recipient: bytes | None
    creates: bool
    value_wei: int
    data: bytes
    gas: int | None
    nonce: int | None
    state: str | None
    closed_as: str | None
    closed_seq: int | None
    effect: bool | None
    foreign_hash: bytes | None
    witness_number: int | None
    witness_rule: str | None
    reserved_at: datetime | None
    closed_at: datetime | None
    paid_execution_id: str | None
    paid_hash: bytes | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One signed variant; fees in wei per gas."""

    step: int
    nonce: int
    seq: int
    kind: str
    status: str
    gas: int
    max_fee_wei: int
    tip_wei: int
    hash: bytes | None
    reason: str | None
    drafted_at: datetime
    signed_at: datetime | None
    signed_token: int | None
    sent_at: datetime | None
    sent_token: int | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one endpoint said to an attempt, and how often."""

    nonce: int
    seq: int
    endpoint: str
    verdict: str
    detail: str | None
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Sighting:
    """An attempt in a block, for as long as that was believed."""

    nonce: int
    seq: int
    block_number: int
    block_hash: bytes
    status: int
    gas_used: int
    gas_price_wei: int
    l1_fee_wei: int | None
    seen_at: datetime
    orphaned_at: datetime | None


@dataclass(frozen=True, slots=True)
class Event:
    """One transition: who (actor and, where a lease was held, its token and holder), when and why."""

    at: datetime
    kind: str
    subject: str
    from_state: str | None
    to_state: str
    why: str | None
    token: int | None
    actor: str
    holder: str | None


def by_id(tx: Tx, execution_id: str) -> str | None:
    """The execution of this id, if there is one."""
    return _one(tx.scalar(_EXISTS, {"id": execution_id}))


def acknowledged(
    tx: Tx, account: str | None, nonce: int | None, transaction_hash: bytes | None
) -> Acknowledgement | None:
    """What is known of a nonce or transaction that was acknowledged after a rewind."""
    row = tx.execute(_ACKNOWLEDGED, {"account": account, "nonce": nonce, "hash": transaction_hash}).one_or_none()
    return None if row is None else Acknowledgement(*row)


def by_nonce(tx: Tx, account: str, nonce: int) -> str | None:
    """The execution that owns a nonce."""
    return _one(tx.scalar(_BY_NONCE, {"account": account, "nonce": nonce}))


def by_hash(tx: Tx, transaction_hash: bytes) -> str | None:
    """The execution a transaction belongs to, or whose nonce it took."""
    return _one(tx.scalar(_BY_HASH, {"hash": transaction_hash}))


def by_once(tx: Tx, once: str) -> str | None:
    """The execution that holds or spent this name, else the newest that wants it."""
    return _one(tx.scalar(_BY_ONCE, {"once": once}))


def execution(tx: Tx, execution_id: str) -> Execution:
    """The execution of this id, which must exist."""
    return Execution(*tx.execute(_EXECUTION, {"id": execution_id}).one())


def steps(tx: Tx, execution_id: str) -> list[Step]:
    """Its calls in order."""
    return [Step(*row) for row in tx.execute(_STEPS, {"id": execution_id})]


def attempts(tx: Tx, execution_id: str) -> list[Attempt]:
    """Its attempts by nonce and number."""
    return [Attempt(*row) for row in tx.execute(_ATTEMPTS, {"id": execution_id})]


def verdicts(tx: Tx, execution_id: str) -> list[Verdict]:
    """What the endpoints said to its attempts."""
    return [Verdict(*row) for row in tx.execute(_VERDICTS, {"id": execution_id})]


def sightings(tx: Tx, execution_id: str) -> list[Sighting]:
    """The blocks its attempts were seen in."""
    return [Sighting(*row) for row in tx.execute(_RECEIPTS, {"id": execution_id})]


def events(tx: Tx, execution_id: str) -> list[Event]:
    """Its transitions, and those of its nonces and attempts, oldest first."""
    return [Event(*row) for row in tx.execute(_HISTORY, {"id": execution_id})]


def _one(found: Any) -> str | None:
    return None if found is None else str(found)
