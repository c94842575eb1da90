"""What a worker does, one transition per boundary between act and record; the names are those of the crash points."""

from collections.abc import Callable, Iterator

from tests.model import reconciling, replacing, rules, signing
from tests.model.build import Build, Scenario
from tests.model.rules import fenced, move
from tests.model.state import (
    CANCEL,
    DRAFT,
    EFFECT,
    FAILED,
    HAS_BYTES,
    MINED,
    NO_EFFECT,
    OPEN,
    REVERT,
    RUNNING,
    SENT,
    SIGNED,
    SUPERSEDED,
    Attempt,
    Row,
    State,
    Step,
    Tx,
    execution_of,
    newest,
    next_nonce,
    put,
)


def worker_steps(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """Everything worker `w` may do next."""
    lease, _, at = s.workers[w]
    if at:
        yield from _GO_ON[str(at[0])](b, c, s, w)
    elif lease:
        yield from _begin(b, c, s, w)


def _begin(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """What an idle worker finds to do. A stale one begins only what has an effect before its record is refused."""
    is_current = s.workers[w].lease == 1
    if is_current or b.is_weak:
        yield from _reserve(b, c, s, w)
        yield from _look(b, s, w)
    yield from _sign(b, c, s, w)
    yield from _broadcast(b, c, s, w)
    if is_current:
        yield from replacing.bump(b, c, s, w)
        yield from replacing.answer_cancel(b, c, s, w)
        yield from reconciling.now_and_then(b, c, s, w)


def _reserve(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    if s.account.halted:
        return
    following = next_nonce(s.rows)
    for e, execution in enumerate(s.executions):
        owners = rules.steps_to_reserve(b, s, e, execution, c.executions[e], c.in_order)
        if not owners:
            continue
        if len(s.chain) > following and not b.follows_chain:
            yield Step(w, "reserve.halted", f"before E{e}", rules.halt(s))
        else:
            yield Step(w, "reserve.prepared", f"E{e}", move(s, w, ("reserve", owners)))


def _sign(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    if s.account.rewound:
        return
    for row in s.rows:
        if row.closed or not rules.is_worked(s, row):
            continue
        a = newest(row)
        if a < 0 or row.attempts[a].status != DRAFT or (s.account.halted and row.attempts[a].payload != CANCEL):
            continue
        wanted = row.attempts[a]
        at = ("selected", row.nonce, row.owner, a, Tx(row.nonce, wanted.payload, wanted.variant))
        if c.splits_sign:
            yield Step(w, "sign.selected", f"nonce {row.nonce}", move(s, w, at))
        else:
            yield from signing.ask(b, c, s, w, at)


def _broadcast(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """The contiguous prefix of open nonces that have bytes, each with its newest."""
    for row in s.rows:
        if row.closed:
            continue
        signed = [a for a, attempt in enumerate(row.attempts) if attempt.status in HAS_BYTES]
        if not signed or not rules.is_worked(s, row):
            if b.sends_prefix:
                return
            continue
        for a in signed if b.sends_any else signed[-1:]:
            attempt = row.attempts[a]
            tx = Tx(row.nonce, attempt.payload, attempt.variant)
            if attempt.status == MINED or not _is_due(b, s, row, attempt, tx):
                continue
            selected = move(s, w, ("send", tx, a))
            if c.splits_send:
                yield Step(w, "broadcast.selected", f"nonce {row.nonce}", selected)
            else:
                yield from _send(b, c, selected, w)


def _is_due(b: Build, s: State, row: Row, attempt: Attempt, tx: Tx) -> bool:
    if s.account.halted and attempt.status == SIGNED and attempt.payload != CANCEL:
        return False
    if len(s.chain) > row.nonce:
        return b.new_nonce_on == "too low" and attempt.payload != CANCEL
    return attempt.status == SIGNED or tx not in s.pool or b.new_nonce_on == "unknown hash"


def _send(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """Hand over the bytes in memory. Whatever the answer, they may be out."""
    _, tx, a = s.workers[w].at
    assert isinstance(tx, Tx)
    broken = () if s.restored or rules.is_stored(s, tx) else ("I2",)
    is_late = len(s.chain) > tx.nonce
    out = s if is_late else s._replace(pool=s.pool | {tx})
    about = f"nonce {tx.nonce}"
    if tx.payload == CANCEL or not (b.new_nonce_on or b.error_ends):
        yield Step(w, "broadcast.sent", about, move(out, w, ("sent", tx, a, "taken")), broken)
        return
    answers = {"too low": is_late, "timeout": True, "unknown hash": not is_late}
    if not is_late:
        yield Step(w, "broadcast.sent", about, move(out, w, ("sent", tx, a, "taken")), broken)
    if answers.get(b.new_nonce_on):
        yield Step(w, "broadcast.sent", f"{about}: {b.new_nonce_on}", move(out, w, ("sent", tx, a, "again")), broken)
    if b.error_ends:
        yield Step(w, "broadcast.sent", f"{about}: an error", move(out, w, ("sent", tx, a, "error")), broken)


def _look(b: Build, s: State, w: int) -> Iterator[Step]:
    """Confirm and finalize: what the chain says of a reservation's attempts."""
    reach = s.final if b.finality == "final" else len(s.chain)
    for row in s.rows:
        if row.closed or not rules.is_worked(s, row):
            continue
        yield from _confirm(b, s, w, row)
        mined = next((a for a, attempt in enumerate(row.attempts) if attempt.status == MINED), -1)
        if mined < 0 or row.nonce >= reach:
            continue
        on_chain, succeeded = s.chain[row.nonce]
        if on_chain == Tx(row.nonce, row.attempts[mined].payload, row.attempts[mined].variant):
            yield _finalize(b, s, w, row, mined, succeeded)


def _finalize(b: Build, s: State, w: int, row: Row, a: int, succeeded: bool) -> Step:
    if b.witness == "checked before closing" and s.account.is_changed:
        return Step(w, "finalize.seen", "halts: the witness has changed", rules.halt(s))
    height = s.final if b.finality == "final" else len(s.chain)
    seen = ("final", row.nonce, row.owner, a, succeeded, height, s.deep)
    return Step(w, "finalize.seen", f"nonce {row.nonce}", move(s, w, seen))


def _confirm(b: Build, s: State, w: int, row: Row) -> Iterator[Step]:
    on_chain = s.chain[row.nonce][0] if row.nonce < len(s.chain) else None
    last = newest(row)
    seen, believed = -1, -1
    for a, attempt in enumerate(row.attempts):
        if attempt.status not in HAS_BYTES or (attempt.status == SIGNED and not b.signed_may_be_mined):
            continue
        if attempt.status == MINED:
            believed = a
        if (b.watches == "all" or a == last) and on_chain == Tx(row.nonce, attempt.payload, attempt.variant):
            seen = a
    if seen != believed:
        yield Step(w, "confirm.seen", f"nonce {row.nonce}", move(s, w, ("seen", row.nonce, row.owner, seen)))
    elif b.gone_is_success and row.nonce < s.final and (seen < 0 or row.attempts[seen].payload == CANCEL):
        yield _finalize(b, s, w, row, last, True)


def _record_reserve(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    passes, broken = fenced(b, s, w, "reserve")
    name = "reserve.recorded"
    if not passes:
        yield Step(w, name, "refused by the fence", rules.drop(s, w))
        return
    kind, owners = s.workers[w].at
    assert isinstance(owners, tuple)
    idle = move(s, w, ())
    e = execution_of(owners[0])
    execution = s.executions[e]
    now = rules.steps_to_reserve(b, s, e, execution, c.executions[e], c.in_order)
    if s.account.halted or (b.state_guard and kind != "again" and owners != now):
        yield Step(w, name, "halted, or refused by the state", idle)
        return
    if b.unique_step and any(row.owner in owners for row in s.rows):
        yield Step(w, name, "refused by UNIQUE", idle)
        return
    if execution.cancel == 2:
        broken = (*broken, "I8")
    first = max(next_nonce(s.rows), len(s.chain)) if b.follows_chain else next_nonce(s.rows)
    variant = 10 if s.restored else 0
    news = tuple(Row(first + i, o, OPEN, (Attempt(o % 100, variant, DRAFT),)) for i, o in enumerate(owners))
    after = rules.set_execution(idle._replace(rows=s.rows + news), e, execution._replace(state=RUNNING))
    yield Step(w, name, f"E{e} at {first}", after, broken)
    if b.unknown_commit == "again" and kind != "again":
        yield Step(w, name, f"E{e} at {first}, no reply", move(after, w, ("again", owners)), broken)


def _record_sent(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    passes, broken = fenced(b, s, w, "outcome")
    name = "broadcast.recorded"
    if not passes:
        yield Step(w, name, "refused by the fence", rules.drop(s, w))
        return
    _, tx, a, verdict = s.workers[w].at
    assert isinstance(tx, Tx)
    assert isinstance(a, int)
    idle = move(s, w, ())
    found = rules.find(s, tx, a, (SIGNED, SENT))
    if found is None:
        yield Step(w, name, "nothing to change", idle)
        return
    i, row = found
    e = execution_of(row.owner)
    if verdict == "again":
        given_up = row._replace(closed=NO_EFFECT, attempts=tuple(x._replace(status=SUPERSEDED) for x in row.attempts))
        anew = Row(next_nonce(s.rows), row.owner, OPEN, (Attempt(row.owner % 100, tx.variant, DRAFT),))
        yield Step(w, name, f"E{e} gets another nonce", idle._replace(rows=(*put(s.rows, i, given_up), anew)), broken)
        return
    marked = row._replace(attempts=(*row.attempts[:a], row.attempts[a]._replace(status=SENT), *row.attempts[a + 1 :]))
    after = idle._replace(rows=put(s.rows, i, marked))
    if verdict == "error":
        after = rules.end_as(after, e, FAILED)
    elif b.cancel_counts_when == "SENT" and tx.payload == CANCEL:
        after = rules.close(b, after, i, a, NO_EFFECT, steps=c.executions[e], in_order=c.in_order)
    yield Step(w, name, f"nonce {tx.nonce}", after, broken)


def _record_seen(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    passes, broken = fenced(b, s, w, "outcome")
    if not passes:
        yield Step(w, "confirm.recorded", "refused by the fence", rules.drop(s, w))
        return
    _, nonce, owner, seen = s.workers[w].at
    assert isinstance(nonce, int)
    assert isinstance(owner, int)
    assert isinstance(seen, int)
    idle = move(s, w, ())
    i = rules.row_of(s, nonce, owner)
    if i < 0 or s.rows[i].closed or not rules.may_be_believed(s.rows[i], seen):
        yield Step(w, "confirm.recorded", "nothing to change", idle)
        return
    row = s.rows[i]
    moved = tuple(
        x._replace(status=MINED) if a == seen else x._replace(status=SENT) if x.status == MINED else x
        for a, x in enumerate(row.attempts)
    )
    after = idle._replace(rows=put(s.rows, i, row._replace(attempts=moved)))
    yield Step(w, "confirm.recorded", f"nonce {nonce}" + (" is orphaned" if seen < 0 else ""), after, broken)


def _record_final(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    passes, broken = fenced(b, s, w, "outcome")
    name = "finalize.recorded"
    if not passes:
        yield Step(w, name, "refused by the fence", rules.drop(s, w))
        return
    _, nonce, owner, a, succeeded, height, deep = s.workers[w].at
    assert isinstance(nonce, int)
    assert isinstance(owner, int)
    assert isinstance(a, int)
    assert isinstance(height, int)
    idle = move(s, w, ())
    i = rules.row_of(s, nonce, owner)
    if i < 0 or s.rows[i].closed or not rules.has_status(s.rows[i], a, None if b.gone_is_success else MINED):
        yield Step(w, name, "nothing to change", idle)
        return
    is_cancel = s.rows[i].attempts[a].payload == CANCEL and not b.gone_is_success
    closed = NO_EFFECT if is_cancel else EFFECT if succeeded else REVERT
    e = execution_of(owner)
    after = rules.close(b, idle, i, a, closed, steps=c.executions[e], in_order=c.in_order)
    assert isinstance(deep, int)
    yield Step(w, name, f"nonce {nonce}", rules.witnessed(c, after, height, deep), broken)


def _ask(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    yield from signing.ask(b, c, s, w, s.workers[w].at)


_GO_ON: dict[str, Callable[[Build, Scenario, State, int], Iterator[Step]]] = {
    "reserve": _record_reserve,
    "again": _record_reserve,
    "selected": _ask,
    "signed": signing.store,
    "bumped": signing.store_sent_bump,
    "send": _send,
    "sent": _record_sent,
    "seen": _record_seen,
    "final": _record_final,
    "acquired": reconciling.after_takeover,
    "fenced": reconciling.look,
    "evidence": reconciling.conclude,
    "foreign": reconciling.record_foreign,
}
