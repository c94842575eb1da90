"""An operator's switches. They write rows and wake the workers; nothing here plans, signs or sends.

What only stops work (pause, halt) is done at once; what lets work go on again (resume, reopen, resolve) is a request that
the holder of the account carries out after it has reconciled (P21).
"""

import time
from dataclasses import dataclass

from executor.database import Database, Tx
from executor.errors import ConfigError, NotFine
from executor.records import Account
from executor.registration import wake
from executor.store import accounts, operations
from executor.store.operations import Answer, Triggerable


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was recorded, or None as its id when there was nothing to ask for."""

    request_id: int | None
    said: str


def pause(database: Database, name: str, why: str) -> bool:
    """Let no new slot of a strategy run; what has been planned goes on. False when it was paused already."""

    def write(tx: Tx) -> bool:
        strategy_named(tx, name)
        return operations.pause(tx, name, why)

    return database.write(write)


def ask_resume(database: Database, name: str, why: str, who: str) -> Asked:
    """Ask the holder to let a paused strategy make slots again, from then on."""

    def write(tx: Tx) -> int | None:
        strategy = strategy_named(tx, name)
        if strategy.retired:
            raise NotFine(f"{name} is retired; put it back into the configuration and run fenced apply.")
        return operations.ask(tx, "resume", strategy.account_id, name, why, who) if strategy.paused else None

    asked = database.write(write)
    if asked is None:
        return Asked(None, f"{name} is not paused: nothing to do")
    wake(database)
    return Asked(asked, f"request {asked}: resume {name}")


def halt(database: Database, name: str, why: str, *, drain: bool) -> bool:
    """Stop an account now (P16), or with `drain` once what is reserved has ended. False when that was so already.

    Raises:
        NotFine: a drain was asked for and the account is halted.
    """

    def write(tx: Tx) -> bool:
        account = account_named(tx, name)
        if drain and account.state == "halted":
            raise NotFine(f"{name} is halted, which stops more than draining; fenced reopen {name} comes first.")
        change = accounts.drain if drain else accounts.halt
        return change(tx, account.account_id, why)

    changed = database.write(write)
    wake(database)
    return changed


def ask_reopen(database: Database, name: str, why: str, who: str) -> Asked:
    """Ask the holder to open a halted or draining account, after a reconcile that finds nothing."""

    def write(tx: Tx) -> int | None:
        account = account_named(tx, name)
        is_fine = account.state == "open" and account.attention is None and not account.is_rewound
        return None if is_fine else operations.ask(tx, "reopen", account.account_id, None, why, who)

    asked = database.write(write)
    if asked is None:
        return Asked(None, f"{name} is open: nothing to do")
    wake(database)
    return Asked(asked, f"request {asked}: reopen {name}")


def ask_resolve(database: Database, execution_id: str, paid_hash: bytes | None, why: str, who: str) -> Asked:
    """Ask the holder to let a PARKED execution go on (not paid) or end (paid by the transaction `paid_hash`).

    Raises:
        ConfigError: there is no such execution.
        NotFine: it is not PARKED, or its account is halted.
    """
    with database.transaction() as tx:
        found = operations.resolvable(tx, execution_id)
        if found is None:
            raise ConfigError(
                f'no execution is called "{execution_id[:80]}"; fenced executions --state PARKED lists what can be resolved.'
            )
        if found.state != "PARKED":
            raise NotFine(f"{execution_id} is {found.state}, not PARKED: there is nothing to resolve.")
        if found.account_state == "halted":
            raise NotFine(
                f'the account {found.account} is halted: fenced reopen {found.account} --why "…" comes first.'
            )
        asked = operations.ask_resolve(tx, found.account_id, execution_id, paid_hash, why, who)
    wake(database)
    return Asked(asked, f"request {asked}: resolve {execution_id}")


def wait_for_answer(database: Database, request_id: int, seconds: float) -> Answer | None:
    """The holder's answer, or None if none came within `seconds`."""
    until = time.monotonic() + seconds
    while True:
        with database.read() as tx:
            found = operations.answer(tx, request_id)
        if found is not None or time.monotonic() > until:
            return found
        time.sleep(0.2)


def strategy_named(tx: Tx, name: str) -> Triggerable:
    """The registered strategy of this name. Raises ConfigError, naming those there are."""
    found = operations.strategy(tx, name)
    if found is None:
        known = ", ".join(operations.strategy_names(tx)) or "none"
        raise ConfigError(f'no strategy is registered as "{name}"; known are: {known} (fenced apply registers them).')
    return found


def account_named(tx: Tx, name: str) -> Account:
    """The registered account of this name. Raises ConfigError."""
    found = accounts.load(tx, [name])
    if not found:
        raise ConfigError(
            f'no account is registered as "{name}"; fenced accounts lists them, fenced apply registers them.'
        )
    return found[0]
