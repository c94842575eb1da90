"""Bumps, and the holder's answer to a cancel: record transactions of a current worker, decided from the rows they change."""

from collections.abc import Iterator

from tests.model import reconciling, rules, signing
from tests.model.build import Build, Scenario
from tests.model.state import (
    CANCEL,
    CANCELLED,
    DRAFT,
    MINED,
    OPEN,
    PENDING,
    RUNNING,
    SENT,
    SIGNED,
    SUPERSEDED,
    Attempt,
    Row,
    State,
    Step,
    Tx,
    newest,
    put,
)

RECORDED = "record.committed"


def bump(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """A raise of a SEND that is out, one per nonce: a draft at first, as everything that is to be signed."""
    if not c.bump or s.account.halted:
        return
    for i, row in enumerate(s.rows):
        a = newest(row)
        if row.closed or a < 0 or not rules.is_worked(s, row):
            continue
        last = row.attempts[a]
        if last.status not in (SIGNED, SENT) or last.payload == CANCEL or last.variant % 10 >= 1:
            continue
        payload = last.payload
        if b.bump == "another intent":
            payload = 10 if payload < 10 else 0
        raised = Attempt(payload, last.variant + 1, DRAFT)
        if b.bump == "sent first":
            yield from _send_first(b, c, s, w, row, Tx(row.nonce, payload, raised.variant))
            continue
        kept = row.attempts[:a] if b.bump == "in place" else row.attempts
        after = s._replace(rows=put(s.rows, i, row._replace(attempts=(*kept, raised))))
        yield Step(w, RECORDED, f"nonce {row.nonce} is raised", after)


def _send_first(b: Build, c: Scenario, s: State, w: int, row: Row, tx: Tx) -> Iterator[Step]:
    for outcome, after, broken in signing.sign(b, c, s, w, row.owner, tx):
        if outcome == "signed" and len(s.chain) <= tx.nonce:
            out = after._replace(pool=s.pool | {tx})
            yield Step(
                w,
                "broadcast.sent",
                f"nonce {tx.nonce}, raised and not stored",
                rules.move(out, w, ("bumped", tx)),
                (*broken, "I2"),
            )


def answer_cancel(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """What an operator asked for: every open nonce gets a CANCEL, and no further one is reserved (P2)."""
    if s.account.rewound:
        return
    if b.compares_before_cancel and reconciling.ground(b, s, reconciling.evidence(b, s), s.rows):
        return
    for e, execution in enumerate(s.executions):
        if execution.cancel != 1 or execution.state not in (PENDING, RUNNING):
            continue
        answered = rules.set_execution(s, e, execution._replace(cancel=2))
        if execution.state == PENDING:
            yield Step(w, RECORDED, f"E{e} is cancelled before it began", rules.end_as(answered, e, CANCELLED))
            continue
        base = rules.owner_base(e, execution)
        rows: list[Row] = []
        for row in s.rows:
            if not base <= row.owner < base + 10 or row.closed or any(x.status == MINED for x in row.attempts):
                rows.append(row)
            elif not _is_released(b, s, row):
                rows.append(_to_cancel(row))
        after = answered._replace(rows=tuple(rows))
        if len(rows) < len(s.rows) and not rules.reserved(after, base):
            after = rules.end_as(after, e, CANCELLED)
        steps, in_order = c.executions[e], c.in_order
        yield Step(w, RECORDED, f"E{e} is to be cancelled", rules.end_settled(b, after, e, steps, in_order))


def _is_released(b: Build, s: State, row: Row) -> bool:
    """Rows 15 and 16: a nonce without signed bytes is given back."""
    if not b.release or any(x.status not in (DRAFT, SUPERSEDED) for x in row.attempts):
        return False
    return b.release == "any" or row.nonce == max(r.nonce for r in s.rows)


def _to_cancel(row: Row) -> Row:
    if any(x.payload == CANCEL for x in row.attempts) or row.closed != OPEN:
        return row
    attempts = tuple(x._replace(status=SUPERSEDED) if x.status == DRAFT else x for x in row.attempts)
    return row._replace(attempts=(*attempts, Attempt(CANCEL, attempts[-1].variant + 1, DRAFT)))
