"""The journal in SQL: functions over a connection whose transaction the caller opens. Schema `signer`, migration 0001.

Every statement takes a whole batch through unnest: one text for every size, and rows are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from signer.arrays import array_literal
from signer.errors import SignerError
from signer.guard import Bound, Past
from signer.request import Fence, JournalEntry, Kind


@dataclass(frozen=True, slots=True)
class Order:
    """A signature to be ordered, as a row."""

    nonce: int
    sighash: bytes
    kind: Kind
    max_fee_wei: int
    tip_wei: int
    gas: int


_HOLD = text("SELECT fence, lease_id FROM signer.hold(:chain_id, :address, :token, :lease_id)")

# LATERAL … OFFSET 0 looks each row up by its whole key. As a plain join a planner without statistics believes that one
# row has this chain and address, and compares every row of the account with every wanted one (0.5 s for 500).
_BINDINGS = text("""
    SELECT b.nonce, b.execution_id, b.step, b.digest, b.tx_type, b.state
      FROM unnest(CAST(:nonces AS bigint[])) AS wanted (nonce)
     CROSS JOIN LATERAL (SELECT * FROM signer.binding AS b WHERE b.chain_id = :chain_id AND b.address = :address
                            AND b.nonce = wanted.nonce OFFSET 0) AS b
    UNION
    SELECT b.nonce, b.execution_id, b.step, b.digest, b.tx_type, b.state
      FROM unnest(CAST(:executions AS text[]), CAST(:steps AS integer[])) AS wanted (execution_id, step)
     CROSS JOIN LATERAL (SELECT * FROM signer.binding AS b
                          WHERE b.execution_id = wanted.execution_id AND b.step = wanted.step OFFSET 0) AS b
     WHERE b.chain_id = :chain_id AND b.address = :address
""")

_SIGNATURES = text("""
    SELECT s.nonce, s.sighash, s.kind, s.max_fee_wei, s.tip_wei, s.gas, s.raw, s.hash
      FROM unnest(CAST(:nonces AS bigint[])) AS wanted (nonce)
     CROSS JOIN LATERAL (SELECT * FROM signer.signature AS s WHERE s.chain_id = :chain_id AND s.address = :address
                            AND s.nonce = wanted.nonce OFFSET 0) AS s
     ORDER BY s.nonce, s.at
""")

_BIND = text("""
    INSERT INTO signer.binding (chain_id, address, nonce, execution_id, step, digest, tx_type, state)
    SELECT :chain_id, :address, new.*
      FROM unnest(CAST(:nonces AS bigint[]), CAST(:executions AS text[]), CAST(:steps AS integer[]),
                  CAST(:digests AS bytea[]), CAST(:types AS smallint[]), CAST(:states AS text[])) AS new
""")

_CANCEL = text("""
    UPDATE signer.binding SET state = 'cancel'
     WHERE chain_id = :chain_id AND address = :address AND state = 'intent' AND nonce = ANY (CAST(:nonces AS bigint[]))
""")

_ORDER = text("""
    INSERT INTO signer.signature (chain_id, address, token, nonce, sighash, kind, max_fee_wei, tip_wei, gas)
    SELECT :chain_id, :address, :token, new.*
      FROM unnest(CAST(:nonces AS bigint[]), CAST(:sighashes AS bytea[]), CAST(:kinds AS text[]),
                  CAST(:max_fees AS numeric[]), CAST(:tips AS numeric[]), CAST(:gas AS numeric[])) AS new
""")

_STORE = text("""
    WITH durable AS MATERIALIZED (SELECT set_config('synchronous_commit', 'on', true),
                                         -- As signer.hold: who stands still in here keeps no other from the account.
                                         set_config('lock_timeout', '5s', true),
                                         set_config('idle_in_transaction_session_timeout', '10s', true)),
         made AS MATERIALIZED (
             SELECT made.raw, made.hash, found.place
               FROM durable, unnest(CAST(:nonces AS bigint[]), CAST(:sighashes AS bytea[]),
                                    CAST(:raws AS bytea[]), CAST(:hashes AS bytea[])) AS made (nonce, sighash, raw, hash)
              CROSS JOIN LATERAL (SELECT s.ctid AS place FROM signer.signature AS s
                                   WHERE s.chain_id = :chain_id AND s.address = :address
                                     AND s.nonce = made.nonce AND s.sighash = made.sighash OFFSET 0) AS found)
    UPDATE signer.signature AS s SET raw = made.raw, hash = made.hash FROM made
     WHERE s.ctid = made.place AND s.raw IS NULL
""")

_STORED = text("""
    SELECT s.nonce, s.sighash, s.raw, s.hash
      FROM unnest(CAST(:nonces AS bigint[]), CAST(:sighashes AS bytea[])) AS wanted (nonce, sighash)
     CROSS JOIN LATERAL (SELECT * FROM signer.signature AS s WHERE s.chain_id = :chain_id AND s.address = :address
                            AND s.nonce = wanted.nonce AND s.sighash = wanted.sighash OFFSET 0) AS s
     WHERE s.raw IS NOT NULL
""")

_FENCE = text("SELECT fence FROM signer.account WHERE chain_id = :chain_id AND address = :address")

_TYPES = {
    "nonces": "bigint", "executions": "text", "steps": "int", "digests": "bytea", "types": "smallint", "states": "text",
    "sighashes": "bytea", "kinds": "text", "max_fees": "numeric", "tips": "numeric", "gas": "numeric", "raws": "bytea", "hashes": "bytea",
}  # fmt: skip
_ENTRIES = text("""
    SELECT b.nonce, b.execution_id, b.step, b.state, b.digest,
           coalesce(array_agg(s.hash ORDER BY s.at) FILTER (WHERE s.hash IS NOT NULL), CAST('{}' AS bytea[])) AS hashes
      FROM signer.binding AS b
      LEFT JOIN signer.signature AS s USING (chain_id, address, nonce)
     WHERE b.chain_id = :chain_id AND b.address = :address AND b.nonce >= :since
     GROUP BY b.chain_id, b.address, b.nonce
     ORDER BY b.nonce
""")


def hold(connection: Connection, fence: Fence) -> int | None:
    """Lock the account's row until the transaction ends, raising its fence to a newer one.

    None if the caller is current; otherwise the token that is. Sets a synchronous commit and short limits for the
    transaction.
    """
    row = connection.execute(_HOLD, _account(fence) | {"token": fence.token, "lease_id": fence.lease_id}).one()
    return None if (row.fence, row.lease_id) == (fence.token, fence.lease_id) else int(row.fence)


def histories(
    connection: Connection, fence: Fence, nonces: Sequence[int], steps: Sequence[tuple[str, int]]
) -> list[Bound]:
    """Every binding of these nonces and steps, with all signatures of each. Two queries."""
    account = _account(fence)
    executions, numbers = [item[0] for item in steps], [item[1] for item in steps]
    rows = connection.execute(
        _BINDINGS, account | _arrays(nonces=list(nonces), executions=executions, steps=numbers)
    ).all()
    if not rows:
        return []
    signatures: dict[int, list[Past]] = {row.nonce: [] for row in rows}
    for row in connection.execute(_SIGNATURES, account | _arrays(nonces=list(signatures))):
        fees = int(row.max_fee_wei), int(row.tip_wei), int(row.gas)
        signatures[row.nonce].append(Past(row.sighash, Kind(row.kind), *fees, row.raw, row.hash))
    return [
        Bound(r.nonce, r.execution_id, r.step, r.digest, r.tx_type, r.state == "cancel", tuple(signatures[r.nonce]))
        for r in rows
    ]


def bind(connection: Connection, fence: Fence, bindings: Sequence[Bound]) -> None:
    """Bind nonces that were free."""
    columns: dict[str, Sequence[Any]] = {
        "nonces": [bound.nonce for bound in bindings],
        "executions": [bound.execution_id for bound in bindings],
        "steps": [bound.step for bound in bindings],
        "digests": [bound.digest for bound in bindings],
        "types": [bound.type for bound in bindings],
        "states": ["cancel" if bound.cancelled else "intent" for bound in bindings],
    }
    _write(connection, _BIND, _account(fence) | _arrays(**columns), len(bindings))


def cancel(connection: Connection, fence: Fence, nonces: Sequence[int]) -> None:
    """Turn bindings from intent to cancel, for ever."""
    _write(connection, _CANCEL, _account(fence) | _arrays(nonces=list(nonces)), len(nonces))


def order(connection: Connection, fence: Fence, orders: Sequence[Order]) -> None:
    """Record that these signatures are about to be made."""
    columns: dict[str, Sequence[Any]] = {
        "nonces": [item.nonce for item in orders],
        "sighashes": [item.sighash for item in orders],
        "kinds": [item.kind.value for item in orders],
        "max_fees": [item.max_fee_wei for item in orders],
        "tips": [item.tip_wei for item in orders],
        "gas": [item.gas for item in orders],
    }
    _write(connection, _ORDER, _account(fence) | {"token": fence.token} | _arrays(**columns), len(orders))


def store(
    connection: Connection, fence: Fence, made: dict[tuple[int, bytes], tuple[bytes, bytes]]
) -> dict[tuple[int, bytes], tuple[bytes, bytes]]:
    """Store bytes and hash for each (nonce, sighash) that has none; return what is stored for each afterwards.

    Where somebody else was first, that is theirs: a key that signs differently every time still has one outcome.
    """
    keys = _arrays(nonces=[nonce for nonce, _ in made], sighashes=[sighash for _, sighash in made])
    values = _arrays(raws=[raw for raw, _ in made.values()], hashes=[hash_ for _, hash_ in made.values()])
    if connection.execute(_STORE, _account(fence) | keys | values).rowcount == len(made):
        return made
    rows = connection.execute(_STORED, _account(fence) | keys)
    return {(row.nonce, row.sighash): (row.raw, row.hash) for row in rows}


def current_fence(connection: Connection, chain_id: int, address: bytes) -> int:
    """The newest token that was here; 0 for an account the journal does not know."""
    found = connection.execute(_FENCE, {"chain_id": chain_id, "address": address}).scalar()
    return 0 if found is None else int(found)


def entries(connection: Connection, chain_id: int, address: bytes, since_nonce: int) -> list[JournalEntry]:
    """What the journal knows about each nonce from `since_nonce` on, in order."""
    rows = connection.execute(_ENTRIES, {"chain_id": chain_id, "address": address, "since": since_nonce})
    return [JournalEntry(r.nonce, r.execution_id, r.step, r.state, r.digest, tuple(r.hashes)) for r in rows]


def _arrays(**columns: Sequence[Any]) -> dict[str, str]:
    return {name: array_literal(_TYPES[name], values) for name, values in columns.items()}


def _account(fence: Fence) -> dict[str, Any]:
    return {"chain_id": fence.chain_id, "address": fence.address}


def _write(connection: Connection, statement: Any, parameters: dict[str, Any], expected: int) -> None:
    if expected == 0:
        return
    written = connection.execute(statement, parameters).rowcount
    if written != expected:
        raise SignerError(f"the journal wrote {written} rows of {expected}")
