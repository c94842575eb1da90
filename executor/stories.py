"""One execution's whole story from the rows, found by its id, ACCOUNT/NONCE, a transaction hash or a `once` name."""

import re
from dataclasses import dataclass
from typing import Final

from executor.database import Database, Tx
from executor.errors import NotFine
from executor.store import stories
from executor.store.stories import Attempt, Event, Execution, Sighting, Step, Verdict

_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_NONCE: Final = re.compile(r"([a-z0-9][a-z0-9_-]{0,62})/([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to one execution. `fees_wei` is what its transactions cost, `value_wei` what they moved with effect."""

    execution: Execution
    steps: list[Step]
    attempts: list[Attempt]
    verdicts: list[Verdict]
    sightings: list[Sighting]
    events: list[Event]
    fees_wei: int
    value_wei: int
    next: str


def tell(database: Database, name: str) -> Story:
    """The story of what `name` names.

    Raises:
        NotFine: nothing of that name is known.
    """
    with database.read() as tx:
        found = _find(tx, name)
        if found is None:
            _raise_acknowledged(tx, name)
            raise NotFine(
                f'nothing is known as "{name[:80]}"; give an execution id, ACCOUNT/NONCE, a transaction hash or a once name.'
            )
        execution, steps = stories.execution(tx, found), stories.steps(tx, found)
        sightings = stories.sightings(tx, found)
        return Story(
            execution,
            steps,
            stories.attempts(tx, found),
            stories.verdicts(tx, found),
            sightings,
            stories.events(tx, found),
            sum(s.gas_used * s.gas_price_wei + (s.l1_fee_wei or 0) for s in sightings if s.orphaned_at is None),
            sum(step.value_wei for step in steps if step.effect),
            _next(execution, steps),
        )


def _raise_acknowledged(tx: Tx, name: str) -> None:
    """Tell a nonce or transaction that no row knows but an acknowledgement after a rewind."""
    nonce = _NONCE.fullmatch(name)
    account, number = (nonce[1], int(nonce[2])) if nonce else (None, None)
    found = stories.acknowledged(tx, account, number, bytes.fromhex(name[2:]) if _HASH.fullmatch(name) else None)
    if found is not None:
        by = "an unknown transaction" if found.hash is None else f"0x{found.hash.hex()}"
        bound = "" if found.execution_id is None else f" (the signer's journal had bound it to {found.execution_id})"
        raise NotFine(
            f"nonce {found.account}/{found.nonce} was used by {by}{bound}; no row knows it, {found.who} acknowledged it after a rewind: {found.why}."
        )


def _find(tx: Tx, name: str) -> str | None:
    found = stories.by_id(tx, name)
    nonce = _NONCE.fullmatch(name)
    if found is None and _HASH.fullmatch(name):
        found = stories.by_hash(tx, bytes.fromhex(name[2:]))
    if found is None and nonce is not None:
        found = stories.by_nonce(tx, nonce[1], int(nonce[2]))
    return found or stories.by_once(tx, name)


def _next(execution: Execution, steps: list[Step]) -> str:
    """What a person should do now, which is usually nothing."""
    if execution.account_state == "halted" and execution.ended_at is None and execution.state != "PARKED":
        return (
            f'the account is halted: find out why with fenced status, then fenced reopen {execution.account} --why "…"'
        )
    match execution.state:
        case "PENDING" if execution.revision != execution.registered_revision:
            return "nothing plans it, its revision is no longer registered; trigger another run if it is still wanted"
        case "PENDING" | "PLANNED" | "RUNNING":
            return f"nothing; it waits for: {execution.reason}" if execution.reason else "nothing; it is on its way"
        case "PARKED":
            return (
                f"look on chain whether it was paid, then fenced resolve {execution.execution_id} --paid HASH | --not-paid "
                + (
                    '--why "…"; a nonce of it is spent, so it ends either way and its once names stay taken'
                    if any(step.nonce is not None for step in steps)
                    else '--why "…"; with --not-paid it is sent, under this id'
                )
            )
        case "FAILED":
            return f"nothing was sent; correct {execution.strategy} and trigger it again under an --id of its own"
        case "REVERTED" | "PARTIAL":
            names = ", ".join(str(step.step) for step in steps if not step.effect and step.paid_execution_id is None)
            return f"steps without effect: {names}; see why they failed before anything is sent for them again"
        case _:
            return "nothing"
