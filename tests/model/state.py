"""What the model knows at one moment: rows, the signer's journal, the chain, and two workers. Values only, hashed and compared.

One account whose first nonce is 0. An *effect* is a step of an execution as a number, 10 · execution + step. The *owner*
of a nonce adds 100 for each reissue, so that two executions that would pay the same thing share an effect and nothing else.
"""

from typing import NamedTuple

CANCEL, FOREIGN = -1, -2
"""Payloads that are no effect: nothing to oneself, and what a stranger did with the key."""

# States of an execution
PENDING, RUNNING, SUCCEEDED, PARTIAL, REVERTED, CANCELLED, PARKED, FAILED = "P", "R", "S", "Q", "V", "C", "K", "F"
UNENDED = (PENDING, RUNNING)
"""PENDING stands for PENDING and PLANNED: planning is a pure function and changes no nonce."""

# States of an attempt
DRAFT, SIGNED, SENT, MINED, FINAL, SUPERSEDED, REFUSED = "D", "G", "T", "M", "F", "X", "R"
HAS_BYTES = (SIGNED, SENT, MINED)

# How a reservation stands
OPEN, EFFECT, NO_EFFECT, REVERT, BY_FOREIGN, ACKNOWLEDGED = "", "+", "-", "v", "f", "a"


class Tx(NamedTuple):
    """Signed bytes. `variant` tells apart what differs in fees: 0 is the SEND, +1 per attempt, +10 after a restore."""

    nonce: int
    payload: int
    variant: int


class Attempt(NamedTuple):
    """One variant of a reservation; its bytes are Tx(nonce, payload, variant) once signed."""

    payload: int
    variant: int
    status: str


class Row(NamedTuple):
    """A nonce reservation with its attempts, oldest first."""

    nonce: int
    owner: int
    closed: str
    attempts: tuple[Attempt, ...]


class Bound(NamedTuple):
    """What the signer's journal has about a nonce."""

    nonce: int
    owner: int
    cancelled: bool
    signed: tuple[Tx, ...]


class Execution(NamedTuple):
    """Where it stands; `cancel` is 0, 1 (asked for) or 2 (answered); `reissue` counts."""

    state: str
    cancel: int
    reissue: int


class Worker(NamedTuple):
    """`lease` is 0 (none), 1 (the current generation) or 2 (an older one); the rest is memory, lost in a crash.

    `may_sign` says that the signer's journal has seen no newer generation. `at` is () between two stages, else the
    boundary it stands at and what it remembers.
    """

    lease: int
    may_sign: bool
    at: tuple[object, ...]


class Account(NamedTuple):
    """`witness` is the final height that proved the newest closing; `is_changed` that another block stands there now.

    `expired` is only used where the scenario tells expiry and takeover apart.
    """

    halted: bool = False
    rewound: bool = False
    witness: int = 0
    is_changed: bool = False
    expired: bool = False


class Snapshot(NamedTuple):
    """A backup: rows, the journal where it shares the cluster, and who held the lease (-1: nobody who still has it)."""

    executions: tuple[Execution, ...]
    rows: tuple[Row, ...]
    journal: tuple[Bound, ...]
    account: Account
    holder: int


class State(NamedTuple):
    """One moment. `chain` is (transaction, succeeded) by nonce, of which `final` many stand for good.

    `made` and `outside` only observe: every signature ever made, and whether something happened that is not promised against.
    """

    executions: tuple[Execution, ...]
    rows: tuple[Row, ...]
    journal: tuple[Bound, ...]
    chain: tuple[tuple[Tx, bool], ...]
    final: int
    pool: frozenset[Tx]
    account: Account
    made: frozenset[Tx]
    outside: bool
    snapshot: Snapshot | None
    restored: bool
    deep: int
    """The height a reorg past finality went back to, -1 before there was one."""
    workers: tuple[Worker, Worker]

    def working(self, workers: tuple[Worker, Worker]) -> "State":
        """The same but for the workers: what changes most often, and so last and fast."""
        return State(*self[:-1], workers)


class Step(NamedTuple):
    """A transition: who (0 or 1, -1 for the world), what, about what, where to, and the promises this very step breaks."""

    actor: int
    name: str
    detail: str
    to: State
    broken: tuple[str, ...] = ()


IDLE = Worker(0, False, ())


def row_at(rows: tuple[Row, ...], nonce: int) -> int:
    """The place of a nonce's row, -1 without one."""
    for i, row in enumerate(rows):
        if row.nonce == nonce:
            return i
    return -1


def put(rows: tuple[Row, ...], i: int, row: Row) -> tuple[Row, ...]:
    """The rows with one of them changed."""
    return (*rows[:i], row, *rows[i + 1 :])


def with_status(row: Row, a: int, status: str) -> Row:
    """The row with the status of one attempt changed."""
    old = row.attempts[a]
    return row._replace(attempts=(*row.attempts[:a], Attempt(old.payload, old.variant, status), *row.attempts[a + 1 :]))


def execution_of(owner: int) -> int:
    """Which execution an owner or effect is of."""
    return owner % 100 // 10


def newest(row: Row) -> int:
    """The place of the newest attempt that is not superseded or refused, -1 without one."""
    for a in range(len(row.attempts) - 1, -1, -1):
        if row.attempts[a].status not in (SUPERSEDED, REFUSED):
            return a
    return -1


def next_nonce(rows: tuple[Row, ...]) -> int:
    """The nonce the next reservation gets."""
    return max((row.nonce for row in rows), default=-1) + 1
