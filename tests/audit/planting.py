"""Planting what the database would refuse: triggers and constraints are taken away first."""

from dataclasses import dataclass

from eth_hash.auto import keccak

from tests.store.rows import Rows

_TABLES = (
    "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind = 'r' AND n.nspname IN ('public', 'signer')"
)


@dataclass(frozen=True, slots=True)
class Plant:
    """The promise that is broken, words of the sentence that must say so, what is dropped first, and the statements."""

    promise: str
    words: str
    statements: tuple[str, ...]
    drop: tuple[str, ...] = ()


def disarm(rows: Rows) -> None:
    """No trigger fires any more, not even those of foreign keys."""
    for (table,) in rows.connection.execute(_TABLES).fetchall():
        rows.run(f"ALTER TABLE {table} DISABLE TRIGGER ALL")


def plant(rows: Rows, what: Plant) -> None:
    """Break it."""
    disarm(rows)
    for name in what.drop:
        table = rows.value("SELECT conrelid::regclass::text FROM pg_constraint WHERE conname = %s", name)
        rows.run(f"ALTER TABLE {table} DROP CONSTRAINT {name} CASCADE" if table else f"DROP INDEX {name}")
    for statement in what.statements:
        assert rows.run(statement) > 0, statement


def swap_bytes(rows: Rows, nonce: int, data: bytes, seq: int = 0) -> None:
    """Put other bytes under an attempt, in the rows and in the signer's journal."""
    old = rows.value("SELECT hash FROM attempt WHERE (nonce, seq) = (%s, %s)", nonce, seq)
    disarm(rows)
    rows.run("UPDATE attempt SET raw = %s, hash = %s WHERE (nonce, seq) = (%s, %s)", data, keccak(data), nonce, seq)
    assert rows.run("UPDATE signer.signature SET raw = %s, hash = %s WHERE hash = %s", data, keccak(data), old) == 1
