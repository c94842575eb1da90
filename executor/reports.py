"""What people ask about the whole installation: first what needs a person, with the command to type, then the rest."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from executor.config import Config
from executor.database import Database, Tx
from executor.errors import ConfigError, NotFine
from executor.registration import revision_of
from executor.store import reports
from executor.store.reports import (
    AccountReport,
    ClockReport,
    ExecutionReport,
    RequestReport,
    ServerReport,
    StrategyReport,
)

MOST: Final = 10
WORKER_SECONDS: Final = 10.0
"""A worker is alive if it was seen within a lease's time, or this where leases are shorter."""
RECENT_SECONDS: Final = 86_400.0
STARVED: Final = 3
"""A strategy that missed its start deadline so often in a row needs a person."""
FAR_SECONDS: Final = 86_400.0
"""A high-water mark this far ahead of the clock was set by a clock that was wrong."""
STATES: Final = (
    "PENDING", "PLANNED", "RUNNING", "SUCCEEDED", "PARTIAL", "REVERTED", "CANCELLED", "PARKED", "SKIPPED", "FAILED",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Need:
    """Something that waits for a person: what it is about, what is the matter, and what to type."""

    subject: str
    what: str
    command: str


@dataclass(frozen=True, slots=True)
class Status:
    """The installation at one moment."""

    service: str | None
    live_workers: int
    needs: list[Need] = field(default_factory=list)
    accounts: list[AccountReport] = field(default_factory=list)
    strategies: list[StrategyReport] = field(default_factory=list)
    requests: list[RequestReport] = field(default_factory=list)


def status(database: Database, config: Config) -> Status:
    """The installation now, beside what this configuration says of the strategies."""
    worker_seconds = max(config.worker.lease_seconds, WORKER_SECONDS)
    with database.read() as tx:
        server = reports.server(tx, worker_seconds)
        _refuse_standby(server)
        accounts, strategies, requests = reports.accounts(tx), reports.strategies(tx), reports.requests(tx)
        needs = [
            *_worker_needs(server, accounts),
            *_clock_needs(reports.clock(tx)),
            *(need for account in accounts for need in _account_needs(account)),
            *_execution_needs(tx, sum(account.parked for account in accounts)),
            *_strategy_needs(strategies, config),
            *_mark_needs(server, strategies),
            *_request_needs(server, requests),
        ]
    shown = [strategy for strategy in strategies if strategy.retired_at is None or strategy.live]
    return Status(server.service, server.live_workers, needs, accounts, shown, requests)


def account_list(database: Database) -> list[AccountReport]:
    """All accounts by name."""
    with database.read() as tx:
        _refuse_standby(reports.server(tx, 0))
        return reports.accounts(tx)


def execution_list(
    database: Database, *, strategy: str | None = None, state: str | None = None, most: int = 50
) -> list[ExecutionReport]:
    """The newest executions, of one strategy or in one state where these are given."""
    with database.read() as tx:
        return reports.executions(tx, strategy, state, most)


def _refuse_standby(server: ServerReport) -> None:
    if server.in_recovery:
        raise NotFine("the database is a standby; point [database] url at the primary.")


def _worker_needs(server: ServerReport, accounts: list[AccountReport]) -> list[Need]:
    if accounts and not server.live_workers:
        return [Need("workers", "none is alive: nothing is planned, sent or confirmed", "fenced run")]
    return []


def clock_trouble(clock: ClockReport) -> str | None:
    """What is or lately was wrong with the database's clock, in one sentence."""
    if clock.anomaly is None or clock.anomaly_at is None:
        return None
    if not clock.is_settled:
        return f"{clock.anomaly}; until it runs evenly no lease is acquired and nothing new is begun"
    if abs((clock.now - clock.anomaly_at).total_seconds()) > RECENT_SECONDS:
        return None
    return f"{clock.anomaly} (seen {clock.anomalies} times in all); it is believed again, see to the server's time synchronisation"


def marks_ahead(now: datetime, strategies: list[StrategyReport]) -> list[StrategyReport]:
    """The strategies whose slots were looked at by a clock that was more than a day ahead: nothing of theirs is due until then."""
    return [
        strategy
        for strategy in strategies
        if strategy.retired_at is None
        and (strategy.schedule, strategy.every_seconds) != (None, None)
        and (strategy.high_water_mark - now).total_seconds() > FAR_SECONDS
    ]


def _clock_needs(clock: ClockReport) -> list[Need]:
    trouble = clock_trouble(clock)
    return [] if trouble is None else [Need("database clock", trouble, "fenced doctor")]


def _mark_needs(server: ServerReport, strategies: list[StrategyReport]) -> list[Need]:
    return [
        Need(
            strategy.name,
            f"no slot of it is due before {strategy.high_water_mark:%Y-%m-%d %H:%M}Z, since the database's clock was ahead; "
            "register it under another name to go on sooner",
            "fenced apply",
        )
        for strategy in marks_ahead(server.now, strategies)
    ]


def _account_needs(account: AccountReport) -> list[Need]:
    needs = []
    reopen = f'fenced reopen {account.name} --why "…"'
    if account.state == "halted":
        needs.append(Need(account.name, f"halted: {account.reason}", reopen))
    elif account.moved_why is not None:
        needs.append(Need(account.name, f"{account.moved_why}; its next holder halts it", reopen))
    if account.attention is not None:
        needs.append(Need(account.name, account.attention, f"fenced accounts, then {reopen}"))
    return needs


def _execution_needs(tx: Tx, parked: int) -> list[Need]:
    needs = [
        Need(one.execution_id, f"parked: {one.reason}", _resolve(one.execution_id)) for one in reports.parked(tx, MOST)
    ]
    if parked > MOST:
        needs.append(Need("executions", f"{parked - MOST} more are parked", "fenced executions --state PARKED"))
    for one in reports.orphaned_plans(tx, MOST):
        what = "was made for a revision that is no longer registered: no worker plans it, it ends at its deadline"
        needs.append(Need(one.execution_id, what, f"fenced show {one.execution_id}"))
    for name, missed in reports.starved(tx, STARVED):
        what = f"missed its start deadline {missed} times and has begun nothing since: raise start_deadline, or make its plan faster"
        needs.append(Need(name, what, f"fenced executions --strategy {name}"))
    for one in reports.failed(tx, RECENT_SECONDS, MOST):
        what = f"{one.state.lower()} within the last day" + (f": {one.reason}" if one.reason else "")
        needs.append(Need(one.execution_id, what, f"fenced show {one.execution_id}"))
    return needs


def _resolve(execution_id: str) -> str:
    return f'fenced show {execution_id}, then fenced resolve {execution_id} --paid HASH | --not-paid --why "…"'


def _strategy_needs(strategies: list[StrategyReport], config: Config) -> list[Need]:
    active = {strategy.name: strategy.revision for strategy in strategies if strategy.retired_at is None}
    needs = []
    for name in config.strategies:
        try:
            revision = revision_of(config, name)
        except ConfigError as error:
            needs.append(Need(name, str(error), "fenced validate"))
            continue
        if name not in active:
            needs.append(Need(name, "is in the configuration and not registered", "fenced apply"))
        elif active[name] != revision:
            what = (
                f"registered revision {active[name][:12]} is not this configuration's {revision[:12]}: "
                "a worker started here does not plan it"
            )
            needs.append(Need(name, what, "fenced apply"))
    unknown = "is registered and not in this configuration: nobody here plans it"
    needs.extend(Need(name, unknown, "fenced apply") for name in active if name not in config.strategies)
    return needs


def _request_needs(server: ServerReport, requests: list[RequestReport]) -> list[Need]:
    needs = []
    for one in requests:
        waited = (server.now - one.at).total_seconds()
        if waited > 60:
            what = f"request {one.request_id} ({one.kind}) has waited {waited:.0f} s: no worker holds the account"
            needs.append(Need(one.subject, what, "fenced run"))
    return needs
