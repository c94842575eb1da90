"""Wishes of operators, carried out by the holder of the account and answered once."""

from dataclasses import dataclass

from sqlalchemy import text

from executor.database import Held, Tx, expect

_WAITING = text("""
SELECT request_id, kind, strategy, execution_id, paid_hash, why, who, is_moved(timeline, system_identifier) AS outlived
  FROM request WHERE account_id = :account AND answered_at IS NULL ORDER BY request_id
""")
_ANSWER = text("""
UPDATE request SET answered_at = clock_timestamp(), granted = :granted, answer = :answer WHERE request_id = :id AND answered_at IS NULL
""")
_RESUME = text("""
UPDATE strategy SET paused_at = NULL, paused_why = NULL,
       high_water_mark = CASE WHEN schedule IS NULL AND every_seconds IS NULL THEN high_water_mark ELSE greatest(high_water_mark, clock_timestamp()) END
 WHERE name = :strategy AND account_id = :account AND paused_at IS NOT NULL
""")


@dataclass(frozen=True, slots=True)
class Request:
    """One wish that waits. `outlived`: it was recorded before the database was restored, promoted or copied."""

    request_id: int
    kind: str
    strategy: str | None
    execution_id: str | None
    paid_hash: bytes | None
    why: str
    who: str
    outlived: bool


def select_waiting(tx: Tx, account_id: int) -> list[Request]:
    """Unanswered requests of an account, oldest first."""
    return [Request(*row) for row in tx.execute(_WAITING, {"account": account_id})]


def answer(held: Held, request_id: int, granted: bool, answer_text: str) -> None:
    """Answer a request; the answer is what the asker reads."""
    expect(
        held.tx.execute(_ANSWER, {"id": request_id, "granted": granted, "answer": answer_text}).rowcount, 1, "request"
    )


def record_resumed(held: Held, strategy: str) -> bool:
    """Let a paused strategy make slots again, from now on: what fell into the pause stays skipped. False if it was not paused."""
    return held.tx.execute(_RESUME, {"strategy": strategy, "account": held.account_id}).rowcount == 1
