"""What the world does between any two steps: leases pass on, processes die, the chain moves, operators and backups act."""

from collections.abc import Iterator

from tests.model import rules
from tests.model.build import Build, Scenario
from tests.model.state import (
    ACKNOWLEDGED,
    EFFECT,
    FOREIGN,
    IDLE,
    OPEN,
    PARKED,
    PENDING,
    SUCCEEDED,
    Account,
    Execution,
    Row,
    Snapshot,
    State,
    Step,
    Tx,
    Worker,
    next_nonce,
)

WORLD = -1
EVENTS = {
    "mined",
    "evicted",
    "final",
    "reorg",
    "reorg past finality",
    "dies",
    "the lease expires",
    "the key is used elsewhere",
    "an operator cancels",
    "an operator reissues",
    "parked on doubt",
    "a backup is taken",
    "the backup is restored",
    "reopened",
    "resolved as paid",
    "resolved as not paid",
}
"""What is no step of a worker, and so no crash point."""


def events(b: Build, c: Scenario, s: State) -> Iterator[Step]:
    """Everything that may happen now. A paused worker is one that does nothing for a while."""
    yield from _chain(c, s)
    if not c.threads:
        yield from _leases(b, c, s)
    if c.foreign and not s.outside:
        stranger = Tx(len(s.chain), FOREIGN, 0)
        yield Step(WORLD, "the key is used elsewhere", "", s._replace(pool=s.pool | {stranger}, outside=True))
    if c.cancel:
        for e, execution in enumerate(s.executions[: c.cancel]):
            if execution.cancel == 0 and execution.state in "PR":
                asked = rules.set_execution(s, e, execution._replace(cancel=1))
                yield Step(WORLD, "an operator cancels", f"E{e}", asked)
    if c.restore:
        yield from _backups(b, c, s)
    if c.reissue or c.reopen:
        yield from _operator(b, c, s)


def _chain(c: Scenario, s: State) -> Iterator[Step]:
    count = len(s.chain)
    for tx in s.pool:
        if tx.nonce == count:
            yield Step(WORLD, "mined", _told(tx), s._replace(chain=(*s.chain, (tx, True))))
            if c.revert and tx.payload >= 0:
                yield Step(WORLD, "mined", f"{_told(tx)}, reverted", s._replace(chain=(*s.chain, (tx, False))))
        if c.evict and tx.nonce >= s.final:
            yield Step(WORLD, "evicted", _told(tx), s._replace(pool=s.pool - {tx}))
    if s.final < count:
        pool = s.pool if c.deep else frozenset(tx for tx in s.pool if tx.nonce > s.final)
        yield Step(WORLD, "final", f"nonce {s.final}", s._replace(final=s.final + 1, pool=pool))
        if c.reorg:
            back = s._replace(chain=s.chain[:-1])
            if s.account.witness >= count:  # a witness that was not final
                back = back._replace(account=s.account._replace(is_changed=True))
            yield Step(WORLD, "reorg", f"nonce {count - 1}", back)
    if c.deep and s.deep < 0 and 0 < s.final == count:
        # One block deeper than what stands for good, so that everything above was taken back before.
        account = s.account._replace(is_changed=s.account.witness > count - 1)
        back = s._replace(chain=s.chain[:-1], final=count - 1, deep=count - 1, account=account, outside=True)
        yield Step(WORLD, "reorg past finality", f"nonce {count - 1}", back)


def _told(tx: Tx) -> str:
    what = {-1: "the cancel", FOREIGN: "a stranger's"}.get(
        tx.payload
    ) or f"step {tx.payload % 10} of E{tx.payload // 10}"
    return f"{what} at {tx.nonce} (variant {tx.variant})"


def _leases(b: Build, c: Scenario, s: State) -> Iterator[Step]:
    for w in range(c.workers):
        lease, _, at = s.workers[w]
        if lease or at:
            dead = s.working(rules.workers_with(s, w, IDLE))
            yield Step(w, "dies", "", dead if s.snapshot is None else dead._replace(snapshot=_left(s, w)))
        if not at and (not c.expiry or s.account.expired or all(x.lease != 1 for x in s.workers)):
            yield _takeover(b, s, w)
    if c.expiry and not s.account.expired:
        yield Step(WORLD, "the lease expires", "", s._replace(account=s.account._replace(expired=True)))


def _takeover(b: Build, s: State, w: int) -> Step:
    """Acquire: a new generation; whoever held the one before is stale and does not know it."""
    other = s.workers[1 - w]
    stale = Worker(2, other.may_sign, other.at) if other.lease else other
    mine = Worker(1, b.journal, ("acquired",) if b.reconciles_at_takeover else ())
    workers = (mine, stale) if w == 0 else (stale, mine)
    taken = s.working(workers)
    if s.snapshot is not None or s.account.expired:
        taken = taken._replace(account=s.account._replace(expired=False), snapshot=_left(s, w))
    return Step(w, "lease.acquired", "", taken)


def _left(s: State, w: int) -> Snapshot | None:
    """The snapshot, after worker `w` gave up the generation that it may have had in it."""
    if s.snapshot is None or s.snapshot.holder != w:
        return s.snapshot
    return s.snapshot._replace(holder=-1)


def _backups(b: Build, c: Scenario, s: State) -> Iterator[Step]:
    if s.snapshot is None and not s.restored:
        holder = next((w for w, worker in enumerate(s.workers) if worker.lease == 1), -1)
        kept = Snapshot(s.executions, s.rows, s.journal if c.shared_journal else (), s.account, holder)
        yield Step(WORLD, "a backup is taken", "", s._replace(snapshot=kept))
    elif s.snapshot is not None:
        executions, rows, journal, account, holder = s.snapshot
        leases = [Worker(1 if w == holder else 2 if x.lease else 0, x.may_sign, x.at) for w, x in enumerate(s.workers)]
        if c.restore == "timeline" and b.timeline_halts:
            account = Account(halted=True, rewound=True)
        back = s._replace(
            executions=executions,
            rows=rows,
            journal=journal if c.shared_journal else s.journal,
            account=account,
            workers=(leases[0], leases[1]),
            snapshot=None,
            restored=True,
            outside=True,
        )
        yield Step(WORLD, "the backup is restored", "", back)


def _operator(b: Build, c: Scenario, s: State) -> Iterator[Step]:
    for e, execution in enumerate(s.executions):
        if execution.state != PARKED:
            if b.parks_on_doubt and execution.state == "R" and execution.reissue == 0:
                yield Step(WORLD, "parked on doubt", f"E{e}", rules.end_as(s, e, PARKED))
            continue
        rows = rules.reserved(s, rules.owner_base(e, execution))
        if c.reissue and execution.reissue == 0 and rows:
            is_dead = all(row.closed not in (OPEN, EFFECT) for row in rows)
            if is_dead or b.parks_on_doubt:
                again = Execution(PENDING, 0, 1)
                yield Step(WORLD, "an operator reissues", f"E{e}", rules.set_execution(s, e, again))
        if c.reopen and not rows and not s.account.halted:
            yield from _resolve(b, c, s, e)
    if c.reopen and s.account.rewound:
        yield from _reopen(s)


def _resolve(b: Build, c: Scenario, s: State, e: int) -> Iterator[Step]:
    """`--paid` or `--not-paid`; the word is true, or the scenario says that it may be wrong."""
    execution = s.executions[e]
    is_paid = any(tx.payload // 10 == e for tx, _ in s.chain if tx.payload >= 0)
    may_be = is_paid or any(tx.payload >= 0 and tx.payload // 10 == e for tx in s.made)
    if is_paid:
        yield Step(WORLD, "resolved as paid", f"E{e}", rules.end_as(s, e, SUCCEEDED))
    if (not may_be) or c.wrong_word:
        reissue = execution.reissue if b.release_keeps_id else execution.reissue + 1
        released = execution._replace(state=PENDING, reissue=reissue)
        yield Step(WORLD, "resolved as not paid", f"E{e}", rules.set_execution(s, e, released))


def _reopen(s: State) -> Iterator[Step]:
    """Nonces above the rows that are final on chain are acknowledged; nothing may be left above them."""
    following = next_nonce(s.rows)
    if s.final < len(s.chain) or any(entry.nonce >= len(s.chain) and entry.nonce >= following for entry in s.journal):
        return
    lost = tuple(Row(n, -1, ACKNOWLEDGED, ()) for n in range(following, len(s.chain)))
    executions = tuple(x._replace(state=PARKED) if x.state == PENDING else x for x in s.executions)
    account = s.account._replace(halted=False, rewound=False)
    yield Step(WORLD, "reopened", "", s._replace(rows=s.rows + lost, executions=executions, account=account))
