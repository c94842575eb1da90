"""Takeover and reconcile: rows ↔ journal ↔ chain, on the grounds of P15; nonces a stranger used (P5)."""

from collections.abc import Iterator

from tests.model import rules
from tests.model.build import Build, Scenario
from tests.model.signing import raise_fence
from tests.model.state import (
    BY_FOREIGN,
    CANCEL,
    DRAFT,
    HAS_BYTES,
    MINED,
    OPEN,
    Row,
    State,
    Step,
    newest,
    next_nonce,
)

Evidence = tuple[int, int, tuple[tuple[int, int], ...]]
"""How many nonces the chain counts, how many of them are final, and what the journal binds (nonce, owner)."""


def evidence(b: Build, s: State) -> Evidence:
    """What chain and journal say now."""
    return len(s.chain), s.final, tuple((e.nonce, e.owner) for e in s.journal) if b.journal else ()


def ground(b: Build, s: State, seen: Evidence, rows: tuple[Row, ...]) -> str:
    """The first ground of P15 on which the account is halted, "" without one."""
    latest, final, bound = seen
    owners = {row.nonce: row.owner for row in rows}
    if any(owners.get(nonce) not in (owner, -1) for nonce, owner in bound):
        return "the journal binds a nonce that the rows do not"
    if latest > next_nonce(rows) and not b.follows_chain:
        return "the chain is ahead of the rows"
    closed = sum(row.closed != OPEN for row in rows)
    if final < closed and s.account.witness <= final:
        return "a final nonce went back"
    if b.witness != "none" and s.account.is_changed:
        return "the witness has changed"
    mined = sum(row.closed != OPEN or any(a.status == MINED for a in row.attempts) for row in rows)
    if b.latest_back_halts and latest < mined:
        return "the latest nonce went back"
    return ""


def after_takeover(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """The first act of a new holder: the journal's fence is raised, then everything is compared."""
    raised = s.working(raise_fence(s, w)) if b.journal else s
    if c.splits_reconcile:
        yield Step(w, "reconcile.fenced", "", rules.move(raised, w, ("fenced", s.rows if not b.evidence_first else ())))
        return
    idle = rules.move(raised, w, ())
    why = ground(b, s, evidence(b, s), s.rows)
    yield _compared(w, why, idle)


def _compared(w: int, why: str, to: State) -> Step:
    return Step(w, "reconcile.halted", why, rules.halt(to)) if why else Step(w, "reconcile.recorded", "", to)


def look(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """Read chain and journal; the rows come after, so that honest ones can only be ahead of what was seen."""
    _, rows = s.workers[w].at
    yield Step(w, "reconcile.seen", "", rules.move(s, w, ("evidence", evidence(b, s), rows)))


def conclude(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """Read the rows and compare. Halting needs no fence; the rest of the record does."""
    _, seen, rows = s.workers[w].at
    why = ground(b, s, seen, s.rows if b.evidence_first else rows)  # type: ignore[arg-type]  # what `look` put there
    to = rules.move(s, w, ()) if s.workers[w].lease == 1 else rules.drop(s, w)
    yield _compared(w, why, to)


def now_and_then(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """The periodic pass of a holder, where it finds something."""
    if s.account.halted or not b.reconciles_ever:
        return
    seen = evidence(b, s)
    if c.splits_reconcile:
        yield Step(w, "reconcile.fenced", "", rules.move(s, w, ("fenced", s.rows if not b.evidence_first else ())))
        yield from _unseen(b, s, w)
    elif why := ground(b, s, seen, s.rows):
        yield _compared(w, why, s)
    else:
        yield from _unseen(b, s, w)


def _unseen(b: Build, s: State, w: int) -> Iterator[Step]:
    """Nonces the chain has passed for good (P5) without any transaction of the rows."""
    reach = s.final if b.foreign_when == "final" else len(s.chain)
    for row in s.rows:
        if row.closed or row.nonce >= reach or not rules.is_worked(s, row):
            continue
        tx = s.chain[row.nonce][0]
        if not b.judges_drafts and (a := newest(row)) >= 0 and row.attempts[a].status == DRAFT:
            continue  # it is signed first
        watched = row.attempts if b.watches == "all" else row.attempts[-1:]
        own = {(a.payload, a.variant) for a in watched if a.status in HAS_BYTES}
        if (tx.payload, tx.variant) in own:
            continue
        foreign = Step(
            w,
            "reconcile.foreign_seen",
            f"nonce {row.nonce} went to a stranger",
            rules.move(s, w, ("foreign", row.nonce, row.owner, reach, s.deep)),
        )
        if b.foreign_evidence == "journal" and b.journal and any(tx in e.signed for e in s.journal):
            if b.halts_on_lost_bytes:
                yield _compared(w, f"nonce {row.nonce}: bytes that only the journal has", s)
            continue
        is_ours = tx.payload in (row.owner % 100, CANCEL)
        if is_ours and b.foreign_evidence != "hash":
            yield _compared(w, f"nonce {row.nonce}: our intent, unknown hash", s)
        yield foreign  # where the transaction cannot be found, only the journal could have known it


def record_foreign(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """Close a nonce that a stranger used: its execution is PARKED with the evidence."""
    passes, broken = rules.fenced(b, s, w, "outcome")
    if not passes:
        yield Step(w, "reconcile.foreign_closed", "refused by the fence", rules.drop(s, w))
        return
    _, nonce, owner, height, deep = s.workers[w].at
    assert isinstance(nonce, int)
    assert isinstance(owner, int)
    assert isinstance(height, int)
    assert isinstance(deep, int)
    idle = rules.move(s, w, ())
    i = rules.row_of(s, nonce, owner)
    if i < 0 or s.rows[i].closed or s.account.halted:
        yield Step(w, "reconcile.foreign_closed", "nothing to change", idle)
        return
    e = s.rows[i].owner % 100 // 10
    after = rules.close(b, idle, i, -1, BY_FOREIGN, steps=c.executions[e], in_order=c.in_order)
    after = rules.witnessed(c, after, height, deep)
    yield Step(w, "reconcile.foreign_closed", f"nonce {nonce}", after, broken)
