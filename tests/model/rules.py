"""The rules that rows obey, whoever writes them: the fence, what may be reserved, how a nonce is closed and an execution ends."""

from tests.model.build import Build, Scenario
from tests.model.state import (
    ACKNOWLEDGED,
    BY_FOREIGN,
    CANCELLED,
    EFFECT,
    FINAL,
    HAS_BYTES,
    IDLE,
    MINED,
    PARKED,
    PARTIAL,
    PENDING,
    REFUSED,
    REVERT,
    REVERTED,
    RUNNING,
    SUCCEEDED,
    SUPERSEDED,
    UNENDED,
    Execution,
    Row,
    State,
    Tx,
    Worker,
    execution_of,
    put,
)


def workers_with(s: State, w: int, worker: Worker) -> tuple[Worker, Worker]:
    """The two workers with one of them changed."""
    return (worker, s.workers[1]) if w == 0 else (s.workers[0], worker)


def move(s: State, w: int, at: tuple[object, ...]) -> State:
    """The worker stands at another boundary, everything else as it was."""
    lease, may_sign, _ = s.workers[w]
    return s.working(workers_with(s, w, Worker(lease, may_sign, at)))


def drop(s: State, w: int) -> State:
    """The worker forgets its lease and what it was at."""
    return s.working(workers_with(s, w, IDLE))


def halt(s: State) -> State:
    """Halting needs no fence (P21): it only ever stops work."""
    return s._replace(account=s.account._replace(halted=True))


def fenced(b: Build, s: State, w: int, what: str) -> tuple[bool, tuple[str, ...]]:
    """Whether hold lets worker `w` write (P8), and whether that breaks G6."""
    mine, other = s.workers[w].lease, s.workers[1 - w].lease
    passes = mine == 1
    if b.expiry_refuses and s.account.expired:
        return False, ()
    if b.identity == "unexpired":
        passes = not s.account.expired
    if what not in b.fences or (b.identity == "name" and other == 1) or (b.identity == "token" and s.restored):
        passes = True
    return passes, ("G6",) if passes and mine != 1 else ()


def is_stored(s: State, tx: Tx) -> bool:
    """Whether these bytes are in the rows (G4)."""
    for nonce, _, _, attempts in s.rows:
        if nonce == tx.nonce:
            for payload, variant, status in attempts:
                if (payload, variant) == (tx.payload, tx.variant) and (
                    status in HAS_BYTES or status in (FINAL, SUPERSEDED)
                ):
                    return True
    return False


def is_worked(s: State, row: Row) -> bool:
    """Only reservations of executions that have not ended are worked on; in the right build there are no others."""
    return row.closed != ACKNOWLEDGED and s.executions[execution_of(row.owner)].state in UNENDED


def owner_base(e: int, execution: Execution) -> int:
    """The owner of an execution's step 0."""
    return execution.reissue * 100 + e * 10


def row_of(s: State, nonce: int, owner: int) -> int:
    """The place of the row with this nonce and owner, -1 without one."""
    for i, row in enumerate(s.rows):
        if row.nonce == nonce and row.owner == owner:
            return i
    return -1


def reserved(s: State, base: int) -> list[Row]:
    """The reservations of one execution, by nonce."""
    return [row for row in s.rows if base <= row.owner < base + 10]


def steps_to_reserve(b: Build, s: State, e: int, execution: Execution, steps: int, in_order: bool) -> tuple[int, ...]:
    """The owners that an execution may reserve now, all of one transaction (P17)."""
    base = owner_base(e, execution)
    if execution.state == PENDING and execution.cancel < 2:
        together = steps if not in_order and b.reserves_together else 1
        return tuple(range(base, base + together))
    if execution.state != RUNNING or (execution.cancel == 2 and b.cancel_stops_rest):
        return ()
    rows = reserved(s, base)
    following = len({row.owner for row in rows})
    if following == steps or not (in_order or not b.reserves_together):
        return ()
    if in_order:
        before = next(row for row in rows if row.owner == base + following - 1)
        if before.closed != EFFECT and not (b.gate == "MINED" and any(a.status == MINED for a in before.attempts)):
            return ()
    elif execution.cancel == 2:
        return ()
    return (base + following,)


def find(s: State, tx: Tx, a: int, statuses: tuple[str, ...]) -> tuple[int, Row] | None:
    """The open row whose attempt `a` has these bytes and one of these statuses: the guard of an UPDATE."""
    for i, row in enumerate(s.rows):
        if row.nonce == tx.nonce and not row.closed and a < len(row.attempts):
            payload, variant, status = row.attempts[a]
            if (payload, variant) == (tx.payload, tx.variant) and status in statuses:
                return i, row
    return None


def set_execution(s: State, e: int, execution: Execution) -> State:
    """One execution changed."""
    return s._replace(executions=(*s.executions[:e], execution, *s.executions[e + 1 :]))


def end_as(s: State, e: int, state: str) -> State:
    """The execution ends."""
    return set_execution(s, e, s.executions[e]._replace(state=state))


def has_status(row: Row, a: int, status: str | None) -> bool:
    """Whether attempt `a` is there, with this status if one is named."""
    return a < len(row.attempts) and status in (None, row.attempts[a].status)


def may_be_believed(row: Row, seen: int) -> bool:
    """Whether attempt `seen` may become MINED; -1 is the news that none is."""
    return seen < 0 or (seen < len(row.attempts) and row.attempts[seen].status in HAS_BYTES)


def witnessed(c: Scenario, s: State, height: int, deep: int) -> State:
    """Keep what proved a closing (P14): the final height that was seen, when the last reorg past finality was `deep`."""
    if not (c.deep or c.splits_reconcile or height > s.final):
        return s  # nothing ever compares it
    is_changed = deep != s.deep and height > s.deep
    return s._replace(account=s.account._replace(witness=height, is_changed=is_changed))


def close(b: Build, s: State, i: int, a: int, closed: str, *, steps: int, in_order: bool) -> State:
    """Close a nonce by attempt `a` (-1: by a stranger's transaction), and end its execution where that was the last (P2)."""
    row = s.rows[i]
    attempts = tuple(
        x._replace(status=FINAL if n == a else x.status if x.status == REFUSED else SUPERSEDED)
        for n, x in enumerate(row.attempts)
    )
    after = s._replace(rows=put(s.rows, i, row._replace(closed=closed, attempts=attempts)))
    return end_settled(b, after, execution_of(row.owner), steps, in_order)


def end_settled(b: Build, s: State, e: int, steps: int, in_order: bool) -> State:
    """End the execution if every reserved step is closed and no further one will be reserved: the first line of P2 that fits."""
    execution = s.executions[e]
    if execution.state != RUNNING:
        return s
    rows = reserved(s, owner_base(e, execution))
    closed = [row.closed for row in rows]
    if b.first_final_ends and EFFECT in closed:
        return end_as(s, e, SUCCEEDED)
    if "" in closed:
        return s
    owners = len({row.owner for row in rows})
    if owners < steps and not (in_order and (closed[-1] != EFFECT or (execution.cancel == 2 and b.cancel_stops_rest))):
        return s
    took_effect = closed.count(EFFECT)
    if BY_FOREIGN in closed:
        return end_as(s, e, PARKED)
    if took_effect >= steps:
        return end_as(s, e, SUCCEEDED)
    if took_effect:
        return end_as(s, e, PARTIAL)
    return end_as(s, e, REVERTED if REVERT in closed else CANCELLED)
