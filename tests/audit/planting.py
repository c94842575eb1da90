"""Planting what the database would refuse: triggers and constraints are taken away first."""

from collections.abc import Sequence
from dataclasses import dataclass

from eth_hash.auto import keccak

from executor.audit import Violation
from tests.store.rows import Rows

_TABLES = (
    "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind = 'r' AND n.nspname IN ('public', 'signer')"
)


@dataclass(frozen=True, slots=True)
class Plant:
    """The rows that must be named (a table and some of a key), the statements, the statements, and the constraints taken away
    first. `also` are kinds that cannot but be broken with it.
    """

    rows: tuple[str, ...]
    statements: tuple[str, ...]
    drop: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


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
        assert rows.run(statement) != 0, statement


def names(violations: Sequence[Violation], row: str) -> bool:
    """Whether one of the violations names this row: "table column=value …"."""
    table, *key = row.split()
    wanted = dict(one.split("=") for one in key)
    return any(
        named["table"] == table and all(str(named[column]) == value for column, value in wanted.items())
        for violation in violations
        for named in violation.rows
    )


def swap_bytes(rows: Rows, nonce: int, data: bytes, seq: int = 0) -> None:
    """Put other bytes under an attempt, in the rows and in the signer's journal."""
    old = rows.value("SELECT hash FROM attempt WHERE (nonce, seq) = (%s, %s)", nonce, seq)
    disarm(rows)
    rows.run("UPDATE attempt SET raw = %s, hash = %s WHERE (nonce, seq) = (%s, %s)", data, keccak(data), nonce, seq)
    assert rows.run("UPDATE signer.signature SET raw = %s, hash = %s WHERE hash = %s", data, keccak(data), old) == 1
