"""The receipts: intervals of belief that an attempt stands in a block (P23)."""

from collections.abc import Sequence

from sqlalchemy import text

from chain.types import Receipt
from executor.database import Held, Rows, expect

_SEEN = Rows(
    nonce="bigint",
    seq="smallint",
    block_number="bigint",
    block_hash="bytea",
    status="smallint",
    gas_used="uint256",
    price="uint256",
    l1_fee="uint256",
)
_INSERT = text(f"""
INSERT INTO receipt (account_id, nonce, seq, block_number, block_hash, status, gas_used, effective_gas_price, l1_fee, token)
SELECT :account, r.nonce, r.seq, r.block_number, r.block_hash, r.status, r.gas_used, r.price, r.l1_fee, :token FROM {_SEEN.sql}
""")
_GONE = Rows(nonce="bigint", seq="smallint")
_ORPHAN = text(f"""
UPDATE receipt c SET orphaned_at = clock_timestamp()
  FROM {_GONE.sql} WHERE c.account_id = :account AND (c.nonce, c.seq) = (r.nonce, r.seq) AND c.orphaned_at IS NULL
""")


def record_seen(held: Held, rows: Sequence[tuple[int, int, Receipt]]) -> None:
    """Begin to believe: rows of (nonce, seq, receipt)."""
    if rows:
        full = [
            {
                "nonce": n,
                "seq": s,
                "block_number": r.block.number,
                "block_hash": r.block.hash,
                "status": r.status,
                "gas_used": r.gas_used,
                "price": r.effective_gas_price_wei,
                "l1_fee": r.l1_fee_wei,
            }
            for n, s, r in rows
        ]
        expect(
            held.tx.execute(_INSERT, {**_SEEN.bind(full), "account": held.account_id, "token": held.token}).rowcount,
            len(rows),
            "receipts",
        )


def record_orphaned(held: Held, rows: Sequence[tuple[int, int]]) -> None:
    """Stop to believe: the block left the canonical chain."""
    if rows:
        bound = {**_GONE.bind([{"nonce": n, "seq": s} for n, s in rows]), "account": held.account_id}
        expect(held.tx.execute(_ORPHAN, bound).rowcount, len(rows), "orphaned receipts")
