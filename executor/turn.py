"""What every stage of one account's tick is given: the account, the lease that speaks for it, and the way to the rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar
from uuid import UUID

from chain.types import Depth, FinalityRule
from executor.crashpoints import CrashHook, CrashPoint
from executor.database import Database, Held, Refused, repeat
from executor.records import Account
from executor.store import accounts
from signer.policy import Policy
from signer.request import Fence

Row = TypeVar("Row")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Turn:
    """One account under one lease generation. `crash` is inert but in fault tests; durations in seconds."""

    database: Database
    account: Account
    policy: Policy
    finality: FinalityRule
    endpoints: tuple[str, ...]
    token: int
    lease_id: UUID
    crash: CrashHook
    rebroadcast_seconds: float
    dice: Random

    @property
    def fence(self) -> Fence:
        """The lease generation, as the signer wants it."""
        return Fence(self.account.chain_id, self.account.address, self.token, self.lease_id)

    @property
    def finality_rule(self) -> str:
        """The chain's finality rule, as a witness names it."""
        return f"depth {self.finality.depth}" if isinstance(self.finality, Depth) else self.finality.tag

    def record(self, write: Callable[[Held], Result]) -> Result:
        """One record transaction of this account: hold, `write`, COMMIT. What `write` returned.

        `write` only puts rows that were decided before, so that a transaction the database gave up (deadlock, serialization,
        a lock or an answer not had in time) is tried again whole, eight times at most; acts are never repeated here.

        Raises:
            FenceRefused: the lease has passed to another holder (G6).
            CommitUnknown: whether the COMMIT took effect is unknown (P12); never tried again here.
            Busy: given up each time; the next tick looks again.
        """
        return repeat(lambda: self._record(write))

    def halt(self, why: str) -> None:
        """Halt the account, with the reason that a person is told (P15). Needs no fence: it only stops."""
        with self.database.transaction() as tx:
            accounts.halt(tx, self.account.account_id, why)

    def note_attention(self, why: str) -> None:
        """What a person should look at; decides nothing."""
        with self.database.transaction() as tx:
            accounts.note_attention(tx, self.account.account_id, why)

    def _record(self, write: Callable[[Held], Result]) -> Result:
        with self.database.hold(self.account.account_id, self.token, self.lease_id) as held:
            self.crash(CrashPoint.RECORD_HELD)
            written = write(held)
            self.crash(CrashPoint.RECORD_WRITTEN)
        self.crash(CrashPoint.RECORD_COMMITTED)
        return written


def record_in_halves(
    rows: Sequence[Row], record: Callable[[Sequence[Row]], None], offend: Callable[[Row, Refused], None]
) -> int:
    """Record a batch; where a constraint refuses it, record it in halves, so that one bad row does not hold up the others.

    `offend` is called with each row that is refused alone. Returns how many rows were recorded.
    """
    if not rows:
        return 0
    try:
        record(rows)
    except Refused as refusal:
        if len(rows) == 1:
            offend(rows[0], refusal)
            return 0
        middle = len(rows) // 2
        return record_in_halves(rows[:middle], record, offend) + record_in_halves(rows[middle:], record, offend)
    return len(rows)
