"""The attempts: signed variants of a reservation. Bytes are written once; status moves along the arrows of P1."""

from collections.abc import Sequence

from sqlalchemy import text

from executor.database import Held, Rows, Tx, expect
from executor.records import Draft, Sendable, Watched, access_list_from

# LATERAL … OFFSET 0: each row is looked up by its whole key, whatever the planner believes of a table it has no statistics of.
_DRAFTS = text("""
SELECT a.nonce, a.seq, a.kind, r.transaction_type, r.execution_id, r.step, r.intent_digest, i.recipient, i.creates, i.value, i.data, nullif(i.access_list, '[]'::jsonb) AS access_list,
       a.gas, a.max_fee, a.tip, s.max_fee AS signed_max_fee, s.tip AS signed_tip
  FROM (SELECT * FROM attempt WHERE account_id = :account AND status = 'DRAFT' AND (NOT :cancels_only OR kind = 'CANCEL')
           AND NOT (SELECT is_moved(b.timeline, b.system_identifier) FROM account b WHERE b.account_id = :account) ORDER BY nonce LIMIT :most) a
 CROSS JOIN LATERAL (SELECT * FROM nonce_reservation n WHERE (n.account_id, n.nonce) = (a.account_id, a.nonce) AND n.state = 'OPEN' OFFSET 0) r
 CROSS JOIN LATERAL (SELECT * FROM intent w WHERE (w.execution_id, w.step) = (r.execution_id, r.step) OFFSET 0) i
  LEFT JOIN LATERAL (SELECT max(x.max_fee) AS max_fee, max(x.tip) AS tip FROM attempt x
                      WHERE (x.account_id, x.nonce) = (a.account_id, a.nonce) AND a.seq > 0 AND x.raw IS NOT NULL) s ON true
 ORDER BY a.nonce
""")
_SIGNED = Rows(nonce="bigint", seq="smallint", raw="bytea", hash="bytea")
_RECORD_SIGNED = text(f"""
UPDATE attempt a SET status = 'SIGNED', raw = r.raw, hash = r.hash, signed_at = clock_timestamp(), signed_token = :token, resend_at = clock_timestamp()
  FROM {_SIGNED.sql} WHERE a.account_id = :account AND (a.nonce, a.seq) = (r.nonce, r.seq) AND a.status = 'DRAFT'
""")
_REFUSED = Rows(nonce="bigint", seq="smallint", reason="text", gas="bigint", max_fee="uint256", tip="uint256")
_RECORD_REFUSED = text(f"""
UPDATE attempt a SET status = 'REFUSED', reason = r.reason
  FROM {_REFUSED.sql} WHERE a.account_id = :account AND (a.nonce, a.seq) = (r.nonce, r.seq) AND a.status = 'DRAFT'
""")
_INSERT_CANCEL = text(f"""
INSERT INTO attempt (account_id, nonce, seq, kind, cancel_digest, gas, max_fee, tip, token)
SELECT :account, r.nonce, r.seq + 1, 'CANCEL', c.cancel_digest, r.gas, r.max_fee, r.tip, :token
  FROM {_REFUSED.sql} JOIN account c ON c.account_id = :account
""")
# The prefix ends at the first nonce that has a draft and no signed bytes: every open nonce has one or the other.
_SENDABLE = text("""
SELECT a.nonce, a.seq, a.status, a.raw, a.hash, a.kind, r.execution_id,
       a.status = 'SIGNED' OR a.resend_at NOT BETWEEN (SELECT clock_timestamp()) AND (SELECT clock_timestamp()) + make_interval(secs => :longest) AS is_due
  FROM attempt a CROSS JOIN LATERAL (SELECT execution_id, state FROM nonce_reservation n WHERE (n.account_id, n.nonce) = (a.account_id, a.nonce) OFFSET 0) r
 WHERE a.account_id = :account AND a.status IN ('SIGNED', 'SENT') AND (a.status = 'SIGNED' OR a.resend_at NOT BETWEEN (SELECT clock_timestamp()) + make_interval(secs => :soon) AND (SELECT clock_timestamp()) + make_interval(secs => :longest)) AND r.state = 'OPEN'
   AND (a.status = 'SENT' OR NOT (SELECT is_moved(b.timeline, b.system_identifier) FROM account b WHERE b.account_id = :account))
   AND NOT EXISTS (SELECT 1 FROM attempt n WHERE (n.account_id, n.nonce) = (a.account_id, a.nonce)
                      AND (n.status = 'MINED' OR (n.seq > a.seq AND n.status IN ('SIGNED', 'SENT'))))
   AND a.nonce < coalesce((SELECT min(d.nonce) FROM attempt d WHERE d.account_id = :account AND d.status = 'DRAFT'
          AND NOT EXISTS (SELECT 1 FROM attempt o WHERE (o.account_id, o.nonce) = (d.account_id, d.nonce) AND o.status IN ('SIGNED', 'SENT', 'MINED'))),
        9223372036854775807)
 ORDER BY a.nonce LIMIT :most
""")
_SENT = Rows(nonce="bigint", seq="smallint", wait="float8")
_RECORD_SENT = text(f"""
UPDATE attempt a SET status = 'SENT', sent_at = coalesce(a.sent_at, clock_timestamp()), sent_token = coalesce(a.sent_token, :token),
       resend_at = clock_timestamp() + make_interval(secs => r.wait)
  FROM {_SENT.sql} WHERE a.account_id = :account AND (a.nonce, a.seq) = (r.nonce, r.seq) AND a.status IN ('SIGNED', 'SENT')
""")
_VERDICT = Rows(nonce="bigint", seq="smallint", endpoint="text", verdict="text", detail="text")
_RECORD_VERDICT = text(f"""
INSERT INTO broadcast (account_id, nonce, seq, endpoint, verdict, detail, token)
SELECT :account, r.nonce, r.seq, r.endpoint, r.verdict, r.detail, :token FROM {_VERDICT.sql}
ON CONFLICT (account_id, nonce, seq, endpoint, verdict)
DO UPDATE SET count = broadcast.count + 1, last_at = clock_timestamp(), detail = excluded.detail
""")
# LATERAL … OFFSET 0 looks each row up by its key. As plain joins a planner without statistics compares every row of the
# account with every other (0.9 s for 1,000 open nonces).
_WATCHED_COLUMNS = """
SELECT a.nonce, a.seq, a.kind, a.status, a.hash, c.block_number, c.block_hash, c.status
  FROM nonce_reservation r
 CROSS JOIN LATERAL (SELECT * FROM attempt x WHERE (x.account_id, x.nonce) = (r.account_id, r.nonce) OFFSET 0) a
  LEFT JOIN LATERAL (SELECT * FROM receipt x
     WHERE (x.account_id, x.nonce, x.seq) = (r.account_id, r.nonce, a.seq) AND x.orphaned_at IS NULL OFFSET 0) c ON true
"""
_WATCHED = text(f"""{_WATCHED_COLUMNS}
 WHERE r.account_id = :account AND r.state = 'OPEN' AND a.raw IS NOT NULL AND (r.nonce < :mined OR a.status = 'MINED')
 ORDER BY a.nonce, a.seq LIMIT :most
""")
_FINALIZABLE = text(f"""{_WATCHED_COLUMNS}
 WHERE r.account_id = :account AND r.state = 'OPEN' AND a.status = 'MINED' AND c.block_number <= :final ORDER BY a.nonce LIMIT :most
""")
_MOVED = Rows(nonce="bigint", seq="smallint")
_ORPHAN = text(f"""
UPDATE attempt a SET status = 'SENT', resend_at = clock_timestamp(), sent_at = coalesce(a.sent_at, clock_timestamp()), sent_token = coalesce(a.sent_token, :token)
  FROM {_MOVED.sql} WHERE a.account_id = :account AND (a.nonce, a.seq) = (r.nonce, r.seq) AND a.status = 'MINED'
""")
_MINE = text(f"""
UPDATE attempt a SET status = 'MINED', sent_at = coalesce(a.sent_at, clock_timestamp()), sent_token = coalesce(a.sent_token, :token)
  FROM {_MOVED.sql} WHERE a.account_id = :account AND (a.nonce, a.seq) = (r.nonce, r.seq) AND a.status IN ('SIGNED', 'SENT')
""")
_FINAL = text(f"""
UPDATE attempt a SET status = 'FINAL' FROM {_MOVED.sql}
 WHERE a.account_id = :account AND (a.nonce, a.seq) = (r.nonce, r.seq) AND a.status = 'MINED'
""")
_SUPERSEDE = text("""
UPDATE attempt a SET status = 'SUPERSEDED' WHERE a.account_id = :account AND a.nonce = ANY(:nonces) AND a.status IN ('DRAFT', 'SIGNED', 'SENT', 'MINED')
""")


def select_drafts(tx: Tx, account_id: int, most: int, cancels_only: bool) -> list[Draft]:
    """Drafts to sign, in nonce order; only cancels while the account is halted, none where the database moved (P16)."""
    rows = tx.execute(_DRAFTS, {"account": account_id, "most": most, "cancels_only": cancels_only})
    return [Draft(**{**row._asdict(), "access_list": access_list_from(row.access_list)}) for row in rows]


def record_signed(held: Held, rows: Sequence[tuple[int, int, bytes, bytes]]) -> None:
    """DRAFT → SIGNED with the bytes and their hash: rows of (nonce, seq, raw, hash)."""
    if rows:
        full = [{"nonce": n, "seq": s, "raw": raw, "hash": h} for n, s, raw, h in rows]
        changed = held.tx.execute(
            _RECORD_SIGNED, {**_SIGNED.bind(full), "account": held.account_id, "token": held.token}
        ).rowcount
        expect(changed, len(rows), "signed attempts")


def record_refused(held: Held, rows: Sequence[tuple[int, int, str, int, int, int]]) -> None:
    """DRAFT → REFUSED and a CANCEL draft beside it (P6): rows of (nonce, seq, reason, gas, max fee, tip)."""
    if rows:
        full = [
            {"nonce": n, "seq": s, "reason": why, "gas": gas, "max_fee": fee, "tip": tip}
            for n, s, why, gas, fee, tip in rows
        ]
        bound = {**_REFUSED.bind(full), "account": held.account_id, "token": held.token}
        expect(held.tx.execute(_RECORD_REFUSED, bound).rowcount, len(rows), "refused attempts")
        expect(held.tx.execute(_INSERT_CANCEL, bound).rowcount, len(rows), "cancel drafts")


def select_sendable(
    tx: Tx, account_id: int, most: int, halted: bool, soon_seconds: float, longest_seconds: float
) -> list[Sendable]:
    """What is due to be handed over of the contiguous prefix of open nonces that have signed bytes, in order.

    What is due brings along what lies below it and is due within `soon_seconds`, so that bytes no node has taken arrive in
    the order of their nonces [B14]. A halted account makes no first hand-over but of cancels (P16), one whose database
    moved none at all. What is due later than in `longest_seconds`, the longest wait there is, was noted before the
    database's clock was set back, and is due now.
    """
    bound = {"account": account_id, "most": most, "soon": soon_seconds, "longest": longest_seconds}
    rows = [
        row for row in tx.execute(_SENDABLE, bound) if not (halted and row.status == "SIGNED" and row.kind != "CANCEL")
    ]
    last = max((row.nonce for row in rows if row.is_due), default=-1)
    return [
        Sendable(row.nonce, row.seq, row.status, row.raw, row.hash, row.execution_id)
        for row in rows
        if row.nonce <= last
    ]


def record_sent(held: Held, rows: Sequence[tuple[int, int, float]]) -> None:
    """SIGNED → SENT, or SENT once more: rows of (nonce, seq, seconds until the bytes are due again)."""
    if rows:
        full = [{"nonce": n, "seq": s, "wait": wait} for n, s, wait in rows]
        bound = {**_SENT.bind(full), "account": held.account_id, "token": held.token}
        expect(held.tx.execute(_RECORD_SENT, bound).rowcount, len(rows), "sent attempts")


def record_verdicts(held: Held, rows: Sequence[tuple[int, int, str, str, str]]) -> None:
    """Count what each endpoint said: rows of (nonce, seq, endpoint, verdict, detail)."""
    if rows:
        full = [{"nonce": n, "seq": s, "endpoint": e, "verdict": v, "detail": d or None} for n, s, e, v, d in rows]
        held.tx.execute(_RECORD_VERDICT, {**_VERDICT.bind(full), "account": held.account_id, "token": held.token})


def select_watched(tx: Tx, account_id: int, mined: int, most: int) -> list[Watched]:
    """Attempts with bytes whose nonce the chain has passed, whatever their status, and those believed mined (P1)."""
    return [Watched(*row) for row in tx.execute(_WATCHED, {"account": account_id, "mined": mined, "most": most})]


def select_finalizable(tx: Tx, account_id: int, final: int, most: int) -> list[Watched]:
    """MINED attempts in blocks at or below the final one."""
    return [Watched(*row) for row in tx.execute(_FINALIZABLE, {"account": account_id, "final": final, "most": most})]


def record_orphaned(held: Held, rows: Sequence[tuple[int, int]]) -> None:
    """MINED → SENT after a reorg: the same bytes go out again."""
    _move(held, _ORPHAN, rows, "orphaned attempts")


def record_mined(held: Held, rows: Sequence[tuple[int, int]]) -> None:
    """SIGNED or SENT → MINED."""
    _move(held, _MINE, rows, "mined attempts")


def record_final(held: Held, rows: Sequence[tuple[int, int]]) -> None:
    """MINED → FINAL; the other attempts of these nonces are SUPERSEDED."""
    _move(held, _FINAL, rows, "final attempts")
    supersede(held, [nonce for nonce, _ in rows])


def supersede(held: Held, nonces: Sequence[int]) -> None:
    """Whatever is still live of these nonces can never be mined any more."""
    held.tx.execute(_SUPERSEDE, {"account": held.account_id, "nonces": list(nonces)})


def _move(held: Held, statement: object, rows: Sequence[tuple[int, int]], what: str) -> None:
    if rows:
        bound = {
            **_MOVED.bind([{"nonce": n, "seq": s} for n, s in rows]),
            "account": held.account_id,
            "token": held.token,
        }
        expect(held.tx.execute(statement, bound).rowcount, len(rows), what)  # type: ignore[call-overload]  # one of the texts above
