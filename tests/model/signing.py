"""The signer and its journal, and the stage that asks it (P6, P7)."""

from collections.abc import Iterator

from tests.model import rules
from tests.model.build import Build, Scenario
from tests.model.state import (
    CANCEL,
    DRAFT,
    FAILED,
    OPEN,
    REFUSED,
    SENT,
    SIGNED,
    Attempt,
    Bound,
    State,
    Step,
    Tx,
    Worker,
    execution_of,
    put,
)


def decide(b: Build, journal: tuple[Bound, ...], owner: int, tx: Tx) -> tuple[str, tuple[Bound, ...]]:
    """The rule of one nonce, one intent: "sign", "replay" or "guard", and the journal afterwards."""
    bound = next((entry for entry in journal if entry.nonce == tx.nonce), None)
    is_elsewhere = any(entry.owner == owner and entry.nonce != tx.nonce for entry in journal)
    # Row 38 takes P7's word that a nonce never seen may be cancelled, whatever the step is bound to.
    is_let = b.guard_refusal == "cancel" and tx.payload == CANCEL and bound is None
    if b.journal_keys_step and is_elsewhere and not is_let:
        return "guard", journal
    if bound is None:
        if tx.payload == CANCEL and not b.cancels_unseen:
            return "no slot", journal
        entry = Bound(tx.nonce, owner, tx.payload == CANCEL, (tx,))
        return "sign", tuple(sorted((*journal, entry)))
    if bound.owner != owner:
        return "guard", journal
    if tx in bound.signed:
        return "replay", journal
    if tx.payload != CANCEL and (
        bound.cancelled or tx.payload != owner % 100 or (tx.variant % 10 == 0 and bound.signed)
    ):
        return "guard", journal
    entry = Bound(tx.nonce, owner, bound.cancelled or tx.payload == CANCEL, tuple(sorted((*bound.signed, tx))))
    return "sign", tuple(entry if old is bound else old for old in journal)


def raise_fence(s: State, w: int) -> tuple[Worker, Worker]:
    """The journal learns the generation of worker `w`; an older one is refused from now on."""
    mine, other = s.workers[w], s.workers[1 - w]
    if mine.lease != 1 or other.lease == 1:
        return s.workers
    return rules.workers_with(s, 1 - w, Worker(other.lease, False, other.at))


def sign(b: Build, c: Scenario, s: State, w: int, owner: int, tx: Tx) -> list[tuple[str, State, tuple[str, ...]]]:
    """Ask for a signature: each possible outcome, with the state after it and what it breaks."""
    if b.journal and not s.workers[w].may_sign:
        return [("stale", s, ())]
    outcome, journal = decide(b, s.journal, owner, tx) if b.journal else ("sign", s.journal)
    raised = s.working(raise_fence(s, w)) if b.journal else s
    found: list[tuple[str, State, tuple[str, ...]]] = []
    is_new = outcome == "sign" and tx not in s.made
    if c.policy and is_new and tx.payload != CANCEL:
        found.append(("policy", raised, ()))
    if outcome in ("sign", "replay"):
        # What was signed before a rewind that took the journal along is remembered by nobody.
        is_known = tx.payload != CANCEL and not (s.restored and c.shared_journal)
        broken = is_known and any(old.nonce == tx.nonce and old.payload not in (CANCEL, tx.payload) for old in s.made)
        after = raised._replace(journal=journal, made=s.made | {tx})
        found.append(("signed", after, ("I3",) if broken else ()))
    else:
        found.append((outcome, raised, ()))
    return found


def ask(b: Build, c: Scenario, s: State, w: int, at: tuple[object, ...]) -> Iterator[Step]:
    """The call: journal committed, key touched, bytes kept and handed back."""
    _, nonce, owner, a, tx = at
    assert isinstance(owner, int)
    assert isinstance(tx, Tx)
    for outcome, after, broken in sign(b, c, s, w, owner, tx):
        if outcome == "stale":
            yield Step(w, "sign.signed", "the signer has seen a newer lease", rules.drop(s, w))
        elif outcome == "no slot":
            yield Step(w, "sign.signed", f"nonce {nonce}: nothing to cancel", rules.move(after, w, ()))
        else:
            yield Step(
                w,
                "sign.signed",
                f"nonce {nonce}: {outcome}",
                rules.move(after, w, ("signed", owner, a, tx, outcome)),
                broken,
            )


def store(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """Record what the signer said."""
    _, owner, a, tx, outcome = s.workers[w].at
    assert isinstance(owner, int)
    assert isinstance(a, int)
    assert isinstance(tx, Tx)
    idle = rules.move(s, w, ())
    if outcome == "guard" and b.guard_refusal != "cancel":
        if b.guard_refusal == "halt":
            yield Step(w, "sign.halted", f"nonce {tx.nonce}: the journal refuses", rules.halt(idle))
        else:
            yield Step(w, "sign.stored", f"nonce {tx.nonce}: the journal refuses", idle)
        return
    if b.sends_from == "memory" and outcome == "signed" and len(s.chain) <= tx.nonce and tx not in s.pool:
        early = () if rules.is_stored(s, tx) else ("I2",)
        yield Step(w, "broadcast.sent", f"nonce {tx.nonce} from memory", s._replace(pool=s.pool | {tx}), early)
    passes, broken = rules.fenced(b, s, w, "attempt")
    if not passes:
        yield Step(w, "sign.stored", "refused by the fence", rules.drop(s, w))
        return
    found = rules.find(s, tx, a, (DRAFT,))
    if found is None or (found[1].owner != owner):
        yield Step(w, "sign.stored", "nothing to change", idle)
        return
    i, row = found
    if outcome == "signed":
        attempts = (*row.attempts[:a], Attempt(tx.payload, tx.variant, SIGNED), *row.attempts[a + 1 :])
        after = idle._replace(rows=put(s.rows, i, row._replace(attempts=attempts)))
        yield Step(w, "sign.stored", f"nonce {tx.nonce}", after, broken)
        return
    attempts = (*row.attempts[:a], Attempt(tx.payload, tx.variant, REFUSED), *row.attempts[a + 1 :])
    if b.refusal == "fail":
        failed = idle._replace(rows=put(s.rows, i, row._replace(attempts=attempts)))
        yield Step(w, "sign.stored", "refused", rules.end_as(failed, execution_of(owner), FAILED), broken)
        return
    if tx.payload == CANCEL:
        yield Step(w, "sign.stored", "refused", idle._replace(rows=put(s.rows, i, row._replace(attempts=attempts))))
        return
    cancels = (*attempts, Attempt(CANCEL, tx.variant + 1, DRAFT))
    after = idle._replace(rows=put(s.rows, i, row._replace(attempts=cancels)))
    yield Step(w, "sign.stored", f"nonce {tx.nonce}: refused, to be cancelled", after, broken)


def store_sent_bump(b: Build, c: Scenario, s: State, w: int) -> Iterator[Step]:
    """Row 18 only: the bump is out, now it is stored."""
    _, tx = s.workers[w].at
    assert isinstance(tx, Tx)
    passes, broken = rules.fenced(b, s, w, "attempt")
    if not passes:
        yield Step(w, "sign.stored", "refused by the fence", rules.drop(s, w))
        return
    idle = rules.move(s, w, ())
    for i, row in enumerate(s.rows):
        if row.nonce == tx.nonce and row.closed == OPEN:
            stored = row._replace(attempts=(*row.attempts, Attempt(tx.payload, tx.variant, SENT)))
            yield Step(w, "sign.stored", f"nonce {tx.nonce}", idle._replace(rows=put(s.rows, i, stored)), broken)
            return
    yield Step(w, "sign.stored", "nothing to change", idle)
