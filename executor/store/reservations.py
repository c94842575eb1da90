"""The nonce-reservation table: one step owns one nonce for ever (G2), nonces have no holes (G7)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from chain.types import BlockRef
from executor.database import Held, Rows, Tx, expect
from executor.records import Acknowledged, NewReservation, Spent

# Nonces acknowledged after a rewind count as present: no reservation takes one, none leaves a hole beside one.
_HIGHEST = """greatest((SELECT max(nonce) FROM nonce_reservation WHERE account_id = :account),
                 (SELECT max(nonce) FROM acknowledged_nonce WHERE account_id = :account))"""
_FRONTIER = text(f"""
SELECT coalesce({_HIGHEST} + 1, a.first_nonce) AS next_nonce,
       a.max_in_flight, a.state,
       count(r.nonce) FILTER (WHERE NOT EXISTS (SELECT 1 FROM attempt m WHERE (m.account_id, m.nonce) = (r.account_id, r.nonce) AND m.status = 'MINED')) AS in_flight,
       coalesce(sum((SELECT i.value FROM intent i WHERE (i.execution_id, i.step) = (r.execution_id, r.step))
         + (SELECT max(t.gas * t.max_fee) FROM attempt t WHERE (t.account_id, t.nonce) = (r.account_id, r.nonce)))
         FILTER (WHERE r.nonce >= :mined), 0) AS committed
  FROM account a LEFT JOIN nonce_reservation r ON r.account_id = a.account_id AND r.state = 'OPEN'
 WHERE a.account_id = :account GROUP BY a.account_id
""")
_NEXT = text(f"""
SELECT coalesce({_HIGHEST} + 1, first_nonce) FROM account WHERE account_id = :account
""")
_NEW = Rows(
    nonce="bigint",
    execution_id="text",
    step="int",
    digest="bytea",
    once="text",
    gas="bigint",
    max_fee="uint256",
    tip="uint256",
)
_INSERT = text(f"""
INSERT INTO nonce_reservation (account_id, nonce, execution_id, step, intent_digest, once, transaction_type, token)
SELECT :account, r.nonce, r.execution_id, r.step, r.digest, r.once, :type, :token FROM {_NEW.sql}
""")
_INSERT_SENDS = text(f"""
INSERT INTO attempt (account_id, nonce, seq, kind, intent_digest, gas, max_fee, tip, token)
SELECT :account, r.nonce, 0, 'SEND', r.digest, r.gas, r.max_fee, r.tip, :token FROM {_NEW.sql}
""")
_SPENT = text("""
SELECT r.once, r.execution_id, r.step, r.effect, a.hash FROM nonce_reservation r
  LEFT JOIN attempt a ON (a.account_id, a.nonce, a.seq) = (r.account_id, r.nonce, r.closed_seq)
 WHERE r.once = ANY(:once) AND r.effect IS NOT FALSE
""")
_PAID = Rows(execution_id="text", step="int", once="text", paid_execution_id="text", paid_step="int", paid_hash="bytea")
_INSERT_PAID = text(f"""
INSERT INTO already_paid (execution_id, step, account_id, once, paid_execution_id, paid_step, paid_hash, token)
SELECT r.execution_id, r.step, :account, r.once, r.paid_execution_id, r.paid_step, r.paid_hash, :token FROM {_PAID.sql}
""")
_CLOSING = Rows(nonce="bigint", seq="smallint", effect="bool")
_CLOSE = text(f"""
UPDATE nonce_reservation n SET state = 'CLOSED', closed_as = 'attempt', closed_seq = r.seq, effect = r.effect,
       witness_number = :number, witness_hash = :hash, witness_rule = :rule, witness_endpoints = :endpoints, closed_at = clock_timestamp()
  FROM {_CLOSING.sql} WHERE n.account_id = :account AND n.nonce = r.nonce AND n.state = 'OPEN' RETURNING n.execution_id
""")
_CLOSE_FOREIGN = text("""
UPDATE nonce_reservation SET state = 'CLOSED', closed_as = 'foreign', foreign_hash = :foreign,
       witness_number = :number, witness_hash = :hash, witness_rule = :rule, witness_endpoints = :endpoints, closed_at = clock_timestamp()
 WHERE account_id = :account AND nonce = :nonce AND state = 'OPEN' RETURNING execution_id
""")
_BOUND = text("SELECT nonce, execution_id, step FROM nonce_reservation WHERE account_id = :account AND nonce >= :since")
_OPEN_BELOW = text("""
SELECT r.nonce, r.intent_digest, array_agg(a.hash::bytea) FILTER (WHERE a.hash IS NOT NULL) AS hashes
  FROM nonce_reservation r JOIN attempt a USING (account_id, nonce)
 WHERE r.account_id = :account AND r.state = 'OPEN' AND r.nonce < :below
   AND NOT EXISTS (SELECT 1 FROM attempt m WHERE (m.account_id, m.nonce) = (r.account_id, r.nonce) AND m.status IN ('MINED', 'DRAFT'))
 GROUP BY r.account_id, r.nonce, r.intent_digest ORDER BY r.nonce
""")
_ABOVE = Rows(
    nonce="bigint",
    hash="bytea",
    execution_id="text",
    step="int",
    number="bigint",
    block="bytea",
    rule="text",
    endpoints="text",
)
_ACKNOWLEDGE = text(f"""
INSERT INTO acknowledged_nonce (account_id, nonce, hash, execution_id, step, witness_number, witness_hash, witness_rule, witness_endpoints, request_id, token)
SELECT :account, r.nonce, r.hash, r.execution_id, r.step, r.number, r.block, r.rule, string_to_array(r.endpoints, ' '), :request, :token FROM {_ABOVE.sql}
""")
_ACKNOWLEDGED = text("SELECT nonce FROM acknowledged_nonce WHERE account_id = :account AND nonce >= :since")
_WITNESS = text(f"""
SELECT coalesce({_HIGHEST} + 1 - a.first_nonce, 0)
         - (SELECT count(*) FROM nonce_reservation WHERE account_id = :account AND state = 'OPEN') AS closed,
       {_HIGHEST} AS highest,
       (SELECT min(nonce) FROM nonce_reservation WHERE account_id = :account AND state = 'OPEN') AS oldest_open,
       w.witness_number, w.witness_hash
  FROM account a LEFT JOIN LATERAL (
    (SELECT witness_number, witness_hash FROM nonce_reservation WHERE account_id = :account AND state = 'CLOSED'
      ORDER BY witness_number DESC LIMIT 1)
    UNION ALL
    (SELECT witness_number, witness_hash FROM acknowledged_nonce WHERE account_id = :account ORDER BY nonce DESC LIMIT 1)
    ORDER BY witness_number DESC LIMIT 1) w ON true
 WHERE a.account_id = :account
""")


@dataclass(frozen=True, slots=True)
class Frontier:
    """Where an account stands: next nonce (None before the first reconcile), in flight (P18), wei that pending work may still cost."""

    next_nonce: int | None
    max_in_flight: int
    state: str
    in_flight: int
    committed_wei: int


@dataclass(frozen=True, slots=True)
class Witness:
    """What reconcile compares with the chain (P14, P15). Acknowledged nonces count as closed."""

    closed: int
    highest: int | None
    oldest_open: int | None
    witness_number: int | None
    witness_hash: bytes | None


@dataclass(frozen=True, slots=True)
class Unseen:
    """An open nonce with none of our transactions seen in a block."""

    nonce: int
    intent_digest: bytes
    hashes: tuple[bytes, ...]


def frontier(tx: Tx, account_id: int, mined: int) -> Frontier:
    """Where the account stands; nonces below `mined` (the chain's count) no longer cost anything."""
    return Frontier(*tx.execute(_FRONTIER, {"account": account_id, "mined": mined}).one())


def insert(held: Held, new: Sequence[NewReservation], transaction_type: int) -> int:
    """Give each intent the next nonce and a DRAFT of its first attempt; the first nonce given.

    The next nonce is computed here, under the account's lock that hold has taken.
    """
    first = held.tx.scalar(_NEXT, {"account": held.account_id})
    if first is None:
        raise ValueError("an account without a first nonce cannot reserve")
    rows = [
        {
            "nonce": first + i,
            "execution_id": n.intent.execution_id,
            "step": n.intent.step,
            "digest": n.intent.digest,
            "once": n.intent.once,
            "gas": n.gas,
            "max_fee": n.max_fee,
            "tip": n.tip,
        }
        for i, n in enumerate(new)
    ]
    bound = {**_NEW.bind(rows), "account": held.account_id, "token": held.token, "type": transaction_type}
    expect(held.tx.execute(_INSERT, bound).rowcount, len(rows), "nonce reservations")
    expect(held.tx.execute(_INSERT_SENDS, bound).rowcount, len(rows), "drafts")
    return int(first)


def select_spent(tx: Tx, once: Sequence[str]) -> dict[str, Spent]:
    """Who holds each of these `once` names, living or effective (G2b)."""
    return {row.once: Spent(*row) for row in tx.execute(_SPENT, {"once": list(once)})}


def record_already_paid(held: Held, rows: Sequence[tuple[str, int, Spent]]) -> None:
    """Record steps whose `once` was spent elsewhere; they are never sent."""
    if rows:
        full = [
            {
                "execution_id": e,
                "step": s,
                "once": by.once,
                "paid_execution_id": by.execution_id,
                "paid_step": by.step,
                "paid_hash": by.hash,
            }
            for e, s, by in rows
        ]
        changed = held.tx.execute(
            _INSERT_PAID, {**_PAID.bind(full), "account": held.account_id, "token": held.token}
        ).rowcount
        expect(changed, len(rows), "steps already paid")


def close(
    held: Held, rows: Sequence[tuple[int, int, bool]], final: BlockRef, rule: str, endpoints: Sequence[str]
) -> list[str]:
    """Close nonces by their FINAL attempts: rows of (nonce, seq, effect). The executions concerned."""
    full = [{"nonce": nonce, "seq": seq, "effect": effect} for nonce, seq, effect in rows]
    found = held.tx.execute(
        _CLOSE, {**_CLOSING.bind(full), "account": held.account_id, **_witness(final, rule, endpoints)}
    )
    executions = list(found.scalars())
    expect(len(executions), len(rows), "nonces to close")
    return sorted(set(executions))


def close_foreign(
    held: Held, nonce: int, foreign_hash: bytes | None, final: BlockRef, rule: str, endpoints: Sequence[str]
) -> str:
    """Close a nonce that another transaction used (P5); the execution concerned."""
    found = (
        held.tx.execute(
            _CLOSE_FOREIGN,
            {"account": held.account_id, "nonce": nonce, "foreign": foreign_hash, **_witness(final, rule, endpoints)},
        )
        .scalars()
        .all()
    )
    expect(len(found), 1, "nonces to close as foreign")
    return str(found[0])


def bound_steps(tx: Tx, account_id: int, since: int) -> dict[int, tuple[str, int]]:
    """Nonce → (execution, step) from `since` on."""
    return {
        row.nonce: (row.execution_id, row.step) for row in tx.execute(_BOUND, {"account": account_id, "since": since})
    }


def acknowledge(held: Held, rows: Sequence[Acknowledged], request_id: int) -> None:
    """Record nonces that the chain used above the rows, by an operator's request to reopen; none is reserved ever after."""
    if rows:
        full = [
            {
                "nonce": r.nonce,
                "hash": r.hash,
                "execution_id": r.execution_id,
                "step": r.step,
                "number": r.final.number,
                "block": r.final.hash,
                "rule": r.rule,
                "endpoints": " ".join(r.endpoints),
            }
            for r in rows
        ]
        bound = {**_ABOVE.bind(full), "account": held.account_id, "token": held.token, "request": request_id}
        expect(held.tx.execute(_ACKNOWLEDGE, bound).rowcount, len(rows), "acknowledged nonces")


def acknowledged(tx: Tx, account_id: int, since: int) -> set[int]:
    """The nonces from `since` on that an operator acknowledged as used above the rows."""
    return set(tx.execute(_ACKNOWLEDGED, {"account": account_id, "since": since}).scalars())


def select_unseen(tx: Tx, account_id: int, below: int) -> list[Unseen]:
    """Open nonces below `below` that have no MINED attempt, and no draft: that is signed first, its hash may be the one on the chain."""
    return [
        Unseen(row.nonce, row.intent_digest, tuple(row.hashes or ()))
        for row in tx.execute(_OPEN_BELOW, {"account": account_id, "below": below})
    ]


def witness(tx: Tx, account_id: int) -> Witness:
    """The account's closed nonces and its newest witness block."""
    return Witness(*tx.execute(_WITNESS, {"account": account_id}).one())


def _witness(final: BlockRef, rule: str, endpoints: Sequence[str]) -> dict[str, object]:
    return {"number": final.number, "hash": final.hash, "rule": rule, "endpoints": list(endpoints)}
