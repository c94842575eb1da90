"""What the configuration says, brought into the rows: accounts with their leases, strategies with their revisions.

Nothing here is retroactive: a strategy that is new, changed or back starts at the database's present time, and a due slot
that no worker had looked at before a change is named, so that a person can trigger it. Rows are never removed.
"""

from dataclasses import dataclass, fields, replace
from datetime import datetime
from importlib import metadata
from typing import Final

from chain.transaction import cancel_digest
from chain.types import checksum
from executor.config import Config, strategy_digest
from executor.database import Database, Tx
from executor.errors import ConfigError, ExecutorError, NotFine
from executor.plan_source import module_source
from executor.recurrence import Cron, Every, slot_text
from executor.store import registrations
from executor.store.registrations import RegisteredAccount, RegisteredStrategy, Settings

DISTRIBUTION: Final = "fenced-executor"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing apply did, or a note about one thing it left alone."""

    kind: str
    name: str
    what: str
    done: bool = True


def release() -> str:
    """The version of this program, part of every revision."""
    return metadata.version(DISTRIBUTION)


def revisions(config: Config) -> dict[str, str]:
    """The revision that this configuration, its strategies' files and this release make of each strategy.

    Raises:
        ConfigError: a strategy's module is not there.
    """
    return {name: revision_of(config, name) for name in config.strategies}


def revision_of(config: Config, name: str) -> str:
    """The revision of one strategy. Raises ConfigError, naming the key, if its module is not there."""
    try:
        source = module_source(config.strategies[name].plan, config.directory)
    except ConfigError as error:
        raise ConfigError(f"strategies.{name}.plan: {error}") from None
    return strategy_digest(config, name, source, release())


def claim(database: Database, service: str) -> bool:
    """Give the database to `service`, once; whether it was given now.

    Raises:
        ConfigError: it belongs to another service.
    """

    def write(tx: Tx) -> bool:
        claimed = registrations.claim(tx, service)
        _refuse_other(registrations.service(tx), service)
        return claimed

    return database.write(write)


def check_service(database: Database, service: str) -> None:
    """Raises ConfigError unless the database belongs to `service`."""
    with database.read() as tx:
        _refuse_other(registrations.service(tx), service)


def apply(database: Database, config: Config) -> list[Change]:
    """Bring accounts and strategies of `config` into the rows, all or nothing; what was changed, in order.

    Raises:
        ConfigError: an account's name or address is registered as another, or a strategy's module or input is missing.
        NotFine: an account with open nonces is no longer in the configuration.
    """
    wanted = revisions(config)
    inputs = {name: None if s.input is None else s.input.read() for name, s in config.strategies.items()}

    def write(tx: Tx) -> list[Change]:
        now = registrations.begin_apply(tx)
        changes, account_ids = _apply_accounts(tx, config)
        return changes + _apply_strategies(tx, config, account_ids, now, wanted, inputs)

    changes = database.write(write)
    if any(change.done for change in changes):
        wake(database)
    return changes


def wake(database: Database) -> None:
    """Tell the workers to look now. A hint: that it cannot be given is no error."""
    try:
        with database.read() as tx:
            registrations.notify(tx)
    except ExecutorError:
        return


def _refuse_other(found: str | None, service: str) -> None:
    if found is None:
        raise ConfigError("the database belongs to no service yet: run fenced migrate.")
    if found != service:
        raise ConfigError(
            f'the database belongs to the service "{found}", and [service] name is "{service}": '
            "use that name, or a database of your own."
        )


def _apply_accounts(tx: Tx, config: Config) -> tuple[list[Change], dict[str, int]]:
    stored = registrations.accounts(tx)
    owners = {(account.chain_id, account.address): account.name for account in stored.values()}
    changes: list[Change] = []
    ids: dict[str, int] = {}
    for name, account in config.accounts.items():
        chain_id = config.chain_of(name).id
        known = stored.get(name)
        if known is None:
            owner = owners.get((chain_id, account.address))
            if owner is not None:
                raise ConfigError(
                    f"accounts.{name}.address: is registered as the account {owner}: keep that name, "
                    "an account is never renamed."
                )
            digest = cancel_digest(chain_id, account.address)
            ids[name] = registrations.insert_account(tx, name, chain_id, account.address, digest, account.max_in_flight)
            changes.append(Change("account", name, f"registered: {checksum(account.address)} on chain {chain_id}"))
            continue
        _refuse_moved(known, chain_id, account.address)
        ids[name] = known.account_id
        if known.max_in_flight != account.max_in_flight:
            registrations.change_max_in_flight(tx, known.account_id, account.max_in_flight)
            what = f"max_in_flight {known.max_in_flight} → {account.max_in_flight}"
            changes.append(Change("account", name, what))
    return changes + _dropped(stored, ids), ids


def _dropped(stored: dict[str, RegisteredAccount], ids: dict[str, int]) -> list[Change]:
    dropped = [account for name, account in stored.items() if name not in ids]
    for account in dropped:
        if account.open_nonces:
            raise NotFine(
                f"the account {account.name} is not in the configuration and has {account.open_nonces} open nonces: put it "
                f"back, run fenced halt --drain {account.name}, and drop it when nothing is open."
            )
    what = "stays registered, and no worker of this configuration serves it"
    return [Change("account", account.name, what, done=False) for account in dropped]


def _refuse_moved(known: RegisteredAccount, chain_id: int, address: bytes) -> None:
    if (known.chain_id, known.address) != (chain_id, address):
        raise ConfigError(
            f"accounts.{known.name}: is registered as {checksum(known.address)} on chain {known.chain_id}, and the "
            f"configuration says {checksum(address)} on chain {chain_id}: give the new one a name of its own."
        )


def _apply_strategies(
    tx: Tx,
    config: Config,
    account_ids: dict[str, int],
    now: datetime,
    wanted: dict[str, str],
    inputs: dict[str, object],
) -> list[Change]:
    stored = registrations.strategies(tx)
    changes: list[Change] = []
    for name, strategy in config.strategies.items():
        settings = Settings(
            account_ids[strategy.account],
            strategy.plan,
            strategy.schedule,
            strategy.every_seconds,
            strategy.timezone,
            strategy.misfire or "skip",
            strategy.overlap,
            strategy.start_deadline_seconds,
            strategy.inclusion_deadline_seconds,
            strategy.params,
            inputs[name],
            wanted[name],
        )
        changes += _apply_strategy(tx, name, settings, stored.get(name), strategy.recurrence(), now)
    for name, known in stored.items():
        if name not in config.strategies and not known.retired:
            registrations.retire(tx, name)
            changes.append(Change("strategy", name, "retired: it is not in the configuration any more"))
    return changes


def _apply_strategy(
    tx: Tx,
    name: str,
    settings: Settings,
    known: RegisteredStrategy | None,
    recurrence: Cron | Every | None,
    now: datetime,
) -> list[Change]:
    keeps_slots = known is not None and not known.retired and _slots_of(known.settings) == _slots_of(settings)
    # A changed schedule is never retroactive; one that stayed keeps what it missed for its misfire policy.
    mark = (
        known.high_water_mark
        if known is not None and keeps_slots
        else max(now, known.high_water_mark if known else now)
    )
    upcoming = None if recurrence is None else recurrence.next(mark)
    when = "by trigger only" if upcoming is None else f"first run {slot_text(upcoming)}"
    if known is None:
        registrations.insert_strategy(tx, name, settings, mark, upcoming)
        return [Change("strategy", name, f"registered, revision {settings.revision[:12]}, {when}")]
    if known.settings == settings and not known.retired:
        return []
    if replace(known.settings, input=settings.input) == settings and not known.retired:
        registrations.change_input(tx, name, settings)
        return [Change("strategy", name, "input read anew, for the executions made from now on")]
    registrations.change_strategy(tx, name, settings, mark, upcoming)
    if known.retired:
        return [Change("strategy", name, f"back, revision {settings.revision[:12]}, {when}")]
    what = f"revision {known.settings.revision[:12]} → {settings.revision[:12]} ({_differences(known.settings, settings)}), {when}"
    return [
        Change("strategy", name, what),
        *_left_behind(tx, name),
        *([] if keeps_slots else _passed_over(name, known, now)),
    ]


def _slots_of(settings: Settings) -> tuple[str | None, float | None, str]:
    """What decides which instants are slots."""
    return settings.schedule, settings.every_seconds, settings.timezone


def _differences(old: Settings, new: Settings) -> str:
    names = [f.name for f in fields(Settings) if f.name != "revision" and getattr(old, f.name) != getattr(new, f.name)]
    plain = [name.removesuffix("_seconds").removesuffix("_id") for name in names]
    return ", ".join(plain) or "its file or this release changed"


def _left_behind(tx: Tx, name: str) -> list[Change]:
    """Executions that nobody plans any more, because they were made for the old revision."""
    pending = registrations.pending(tx, name)
    if not pending:
        return []
    keeps = "execution keeps" if pending == 1 else "executions keep"
    what = f"{pending} pending {keeps} the old revision: no worker plans it any more; see fenced status"
    return [Change("strategy", name, what, done=False)]


def _passed_over(name: str, known: RegisteredStrategy, now: datetime) -> list[Change]:
    """Slots that were due under the old settings and that no worker had looked at."""
    old = known.settings
    if known.paused or (old.schedule is None and old.every_seconds is None):
        return []
    recurrence = Every(old.every_seconds) if old.every_seconds is not None else Cron(str(old.schedule), old.timezone)
    changes = []
    for slot in map(slot_text, recurrence.due(known.high_water_mark, now, 3)):
        what = f"slot {slot} was due and is passed over; if it must run: fenced trigger {name} --slot {slot}"
        changes.append(Change("strategy", name, what, done=False))
    return changes
