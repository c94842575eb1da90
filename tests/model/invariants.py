"""The promises as predicates over one state, and where a search may come to rest."""

from tests.model import reconciling
from tests.model.build import Build, Scenario
from tests.model.state import (
    BY_FOREIGN,
    CANCELLED,
    FAILED,
    OPEN,
    PARTIAL,
    REVERTED,
    SUCCEEDED,
    UNENDED,
    Row,
    State,
    execution_of,
)

MEANING = {
    "I1": "an effect took place twice",
    "I1 silent": "an effect took place twice, and nothing will ever notice",
    "I2": "bytes were sent that were not committed",
    "I3": "two intents were signed for one nonce",
    "I5": "SUCCEEDED without the final effect of every step",
    "I6": "CANCELLED, FAILED or REVERTED with an effect, or PARTIAL without",
    "I7": "closed as foreign, and the effect is our own",
    "I8": "a nonce was reserved after the cancel was answered",
    "G2": "a step has two nonces",
    "G6": "a worker wrote under an older lease generation",
    "G7": "a hole between the nonces",
    "P17": "a step took place without the one before it",
    "false halt": "halted without a cause",
    "unnoticed": "an end is not what the chain says, and nothing will ever notice",
    "stuck": "some execution can never end, and nothing halts",
}


def broken(b: Build, c: Scenario, s: State) -> tuple[str, ...]:
    """The promises that this state breaks."""
    found: list[str] = []
    effects = [tx.payload for tx, succeeded in s.chain if succeeded and tx.payload >= 0]
    if len(set(effects)) < len(effects):
        found.append("I1")
        if is_at_rest(b, s):
            found.append("I1 silent")
    owners = [row.owner for row in s.rows if row.owner >= 0]
    if len(set(owners)) < len(owners):
        found.append("G2")
    if s.rows and [row.nonce for row in s.rows] != list(range(s.rows[-1].nonce + 1)):
        found.append("G7")
    if s.account.halted and not s.outside:
        found.append("false halt")
    if c.in_order and any(e % 10 and e - 1 not in effects for e in effects):
        found.append("P17")
    ends = _wrong_ends(c, s, effects)
    if any(_is_own(s, row) for row in s.rows if row.closed == BY_FOREIGN):
        ends.append("I7")
    if not c.deep:
        # A restored SUCCEEDED may be ahead of a chain that goes on; that it is not behind one is I1's business.
        found += [kind for kind in ends if not (s.restored and kind == "I5")]
    elif ends and is_at_rest(b, s):
        found.append("unnoticed")
    return tuple(found)


def _is_own(s: State, row: Row) -> bool:
    if row.nonce >= len(s.chain):
        return False
    tx, succeeded = s.chain[row.nonce]
    return succeeded and tx.payload == row.owner % 100


def _wrong_ends(c: Scenario, s: State, effects: list[int]) -> list[str]:
    """Ends that the chain does not bear out; final where the end claims something, at all where it denies it."""
    final = {tx.payload for tx, succeeded in s.chain[: s.final] if succeeded}
    found = []
    for e, execution in enumerate(s.executions):
        if execution.state in UNENDED:
            continue
        steps = range(e * 10, e * 10 + c.executions[e])
        if execution.state == SUCCEEDED and not final.issuperset(steps):
            found.append("I5")
        if execution.state in (CANCELLED, FAILED, REVERTED) and any(execution_of(x) == e for x in effects):
            found.append("I6")
        if execution.state == PARTIAL and sum(x in final for x in steps) not in range(1, len(steps)):
            found.append("I6")
    return found


def is_at_rest(b: Build, s: State) -> bool:
    """Whether nothing is left to happen and reconcile finds no ground: what is wrong now stays so and stays unknown."""
    if s.account.halted or s.final < len(s.chain) or any(tx.nonce >= s.final for tx in s.pool) or not is_ended(s):
        return False
    return not reconciling.ground(b, s, reconciling.evidence(b, s), s.rows)


def is_ended(s: State) -> bool:
    """Whether every execution has ended, or is PARKED, and every nonce is closed."""
    return all(x.state not in UNENDED for x in s.executions) and all(row.closed != OPEN for row in s.rows)


def is_goal(s: State) -> bool:
    """What every state must be able to reach."""
    return s.account.halted or is_ended(s)
