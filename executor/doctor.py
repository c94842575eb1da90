"""Looks at everything a worker stands on, one check after the other, and changes nothing."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from chain.client import ChainClient
from chain.errors import ChainError, Inconsistent, WrongChain
from chain.types import checksum
from executor import migration
from executor.config import ChainConfig, Config
from executor.database import EPOCH, Database
from executor.errors import ExecutorError
from executor.reports import WORKER_SECONDS, clock_trouble, marks_ahead
from executor.store import reports, sessions
from executor.store.reports import ClockReport, ServerReport, StandbyReport, StrategyReport
from executor.timezones import tzdata_version
from signer import secretfile
from signer.errors import SignerError

Verdict = Literal["ok", "warn", "bad", "unknown"]
PACKAGES: Final = ("chain", "signer", "executor", "devnet")
OLDEST_SERVER: Final = 150_000
CLOCK_SECONDS: Final = 2.0
LONG_SECONDS: Final = 5.0
"""How old a transaction that holds rows must be to be told; no transaction of ours is ever that old."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `unknown` means that it could not be asked."""

    name: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True)
class EndpointCheck:
    """One endpoint of a chain: the genesis hash it has, or what is wrong."""

    endpoint: str
    verdict: Verdict
    detail: str


def examine(config: Config, url: str | None, no_url: str) -> Iterator[Check]:
    """All checks, each as soon as it is done. `url` is the database's, or None with the reason in `no_url`."""
    yield from _installation()
    yield from _keys(config)
    for name, chain in config.chains.items():
        for found in check_endpoints(name, chain):
            yield Check(f"chain {name} {found.endpoint}", found.verdict, found.detail)
    if url is None:
        yield Check("database", "unknown", no_url)
        return
    yield from _database(config, url)


def check_endpoints(name: str, chain: ChainConfig, timeout_seconds: float = 10.0) -> list[EndpointCheck]:
    """Ask each endpoint of a chain for its id and genesis block; they must agree."""
    found: list[EndpointCheck] = []
    first: bytes | None = None
    for endpoint in chain.endpoints:
        client = ChainClient(name, chain.id, [endpoint.url.reveal()], chain.final, timeout_seconds=timeout_seconds)
        try:
            genesis = client.check_identity()
        except (WrongChain, Inconsistent) as error:
            found.append(EndpointCheck(endpoint.name, "bad", _without_label(endpoint.name, error)))
            continue
        except ChainError as error:
            found.append(
                EndpointCheck(endpoint.name, "unknown", _without_label(endpoint.name, error.__cause__ or error))
            )
            continue
        finally:
            client.close()
        first = first or genesis
        if genesis != first:
            found.append(EndpointCheck(endpoint.name, "bad", f"has another genesis block, 0x{genesis.hex()[:12]}…"))
        else:
            found.append(EndpointCheck(endpoint.name, "ok", f"chain {chain.id}, genesis 0x{genesis.hex()[:12]}…"))
    return found


def _without_label(label: str, error: BaseException) -> str:
    return str(error).removeprefix(label).strip()


def _installation() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    yield Check("python", "ok" if fits else "warn", version if fits else f"{version}; tested are 3.11 to 3.13")
    home = Path(__file__).resolve().parent.parent
    strangers = [name for name in PACKAGES if not _is_ours(name, home)]
    if strangers:
        what = f"{', '.join(strangers)} is another project's; install fenced-executor into an environment of its own"
        yield Check("packages", "bad", what)
    else:
        yield Check("packages", "ok", "all are of this installation")
    backend = _signing_backend()
    fast = backend == "CoinCurveECCBackend"
    yield Check("signatures", "ok" if fast else "bad", "coincurve" if fast else f"{backend}; install coincurve")
    yield Check("time zones", "ok", f"tzdata {tzdata_version()}")


def _is_ours(name: str, home: Path) -> bool:
    spec = find_spec(name)
    if spec is None:
        return name == "devnet"  # an extra
    return any(Path(place).resolve().parent == home for place in spec.submodule_search_locations or [])


def _signing_backend() -> str:
    try:
        from eth_keys.main import KeyAPI

        return type(KeyAPI().backend).__name__
    except (ImportError, ValueError):
        return "no backend"


def _keys(config: Config) -> Iterator[Check]:
    for name, account in config.accounts.items():
        try:
            secretfile.read(account.signer.path)
        except SignerError as error:
            yield Check(f"key of {name}", "bad", str(error))
        else:
            yield Check(
                f"key of {name}", "ok", f"{checksum(account.address)}, {account.signer.kind}, private to its owner"
            )


def _database(config: Config, url: str) -> Iterator[Check]:
    try:
        migration.check(url)
    except ExecutorError as error:
        yield Check("database", "unknown" if error.exit_code == 3 else "bad", str(error))
        return
    yield Check("migration", "ok", migration.HEAD)
    database = Database(url, "fenced doctor", pool_size=1)
    try:
        begun = datetime.now(UTC)
        with database.read() as tx:
            server = reports.server(tx, max(config.worker.lease_seconds, WORKER_SECONDS))
            ended = datetime.now(UTC)
            holders = sessions.holders(tx, LONG_SECONDS)
            accounts = [] if server.in_recovery else reports.accounts(tx)
            names, standbys = reports.standbys(tx)
            shared, strategies = reports.clock(tx), reports.strategies(tx)
    except ExecutorError as error:
        yield Check("database", "unknown", str(error))
        return
    finally:
        database.close()
    yield from _between(database.is_pooled, holders)
    yield from _server(config, server)
    yield _clock(server.now, begun, ended)
    yield _server_clock(shared)
    yield _marks(server.now, strategies)
    moved = [account for account in accounts if account.moved_why is not None]
    for account in moved:
        what = f'{account.name}: {account.moved_why}; look what was lost, then fenced reopen {account.name} --why "…"'
        yield Check("identity", "bad", what)
    if not moved and not server.in_recovery:
        yield Check("identity", "ok", "cluster and timeline are those all accounts were last opened in")
    yield _replication(names, standbys)
    # The journal is in this very database in every installation of this release.
    what = (
        "in this cluster: a restore or lossy promotion rewinds it with the rows, so accounts halt and a person decides"
    )
    yield Check("signer's journal", "warn", what)
    alive = server.live_workers
    yield Check(
        "workers", "ok" if alive else "warn", f"{alive} alive" if alive else "none is alive; start one with fenced run"
    )


def _between(is_pooled: bool, holders: Sequence[sessions.Holder]) -> Iterator[Check]:
    """What stands between us and our rows: a pooler, or somebody's open transaction."""
    if is_pooled:
        what = "in between: prepared statements are off, and workers poll instead of hearing NOTIFY; both are fine"
        yield Check("connection pooler", "ok", what)
    for holder in holders:
        yield Check("locks", "warn", holder.told)


def _server(config: Config, server: ServerReport) -> Iterator[Check]:
    name = config.service.name
    rules: Sequence[tuple[str, bool, str, str]] = (
        ("server", server.version >= OLDEST_SERVER, _version(server.version), "PostgreSQL 15 or newer is needed"),
        ("service", server.service == name, str(server.service), f"[service] name is {name}"),
        ("primary", not server.in_recovery, "not in recovery", "a standby; point [database] url at the primary"),
        ("fsync", server.fsync == "on", server.fsync, "a crash of the server may lose what was promised; turn it on"),
        (
            "full_page_writes",
            server.full_page_writes == "on",
            server.full_page_writes,
            "a power cut may tear a page and rows with it; turn it on",
        ),
        (
            "synchronous_commit",
            server.synchronous_commit != "off" and not server.commits_unsynchronised,
            "off for " + ", ".join(server.commits_unsynchronised)
            if server.commits_unsynchronised
            else server.synchronous_commit,
            "a crash of the server may lose commits; set it to on for the server, and ALTER ROLE or ALTER DATABASE … RESET it",
        ),
        (
            "schema epoch",
            server.epoch_min <= EPOCH <= server.epoch_max,
            f"{EPOCH} within {server.epoch_min} to {server.epoch_max}",
            f"this release has epoch {EPOCH}; install another release",
        ),
    )
    for what, fine, found, remedy in rules:
        yield Check(what, "ok" if fine else "bad", found if fine else f"{found}: {remedy}")


def _replication(names: str, standbys: Sequence[StandbyReport]) -> Check:
    """Whether the promotion of a standby can lose commits."""
    behind = [one.name for one in standbys if one.sync_state in ("async", "potential")]
    synchronous = [one.name for one in standbys if one.sync_state in ("sync", "quorum")]
    if any(one.sync_state is None for one in standbys):
        what = "this role may not see what the standbys are; GRANT pg_monitor to it"
        return Check("standbys", "warn", what)
    if not names:
        if behind:
            what = f"{', '.join(behind)} follows asynchronously: its promotion loses commits; set synchronous_standby_names"
            return Check("standbys", "warn", what)
        return Check("standbys", "ok", "none is attached")
    if not synchronous:
        what = f"synchronous_standby_names is {names} and nobody is there: every COMMIT waits; attach the standby or reset it"
        return Check("standbys", "warn", what)
    return Check("standbys", "ok", f"{', '.join(synchronous)} has every commit: promote that one")


def _version(number: int) -> str:
    return f"PostgreSQL {number // 10_000}.{number % 10_000}"


def _clock(there: datetime, begun: datetime, ended: datetime) -> Check:
    """How far this machine's clock is from the database's; it decides nothing, but logs are read beside each other."""
    off = max((begun - there).total_seconds(), (there - ended).total_seconds(), 0.0)
    if off > CLOCK_SECONDS:
        return Check("clock", "warn", f"{off:.1f} s away from the database's; set up time synchronisation")
    return Check("clock", "ok", "agrees with the database's")


def _server_clock(shared: ClockReport) -> Check:
    """Whether the database's own clock runs evenly, as its workers saw it."""
    behind = (shared.max_seen - shared.now).total_seconds()
    trouble = clock_trouble(shared)
    if trouble is None and behind > CLOCK_SECONDS:
        trouble = (
            f"{behind:.1f} s behind what a worker has seen; the next worker notices and waits until it runs evenly"
        )
    return Check("database clock", "ok" if trouble is None else "warn", trouble or "runs evenly")


def _marks(now: datetime, strategies: Sequence[StrategyReport]) -> Check:
    """Whether a clock that was ahead has looked at slots of another day."""
    ahead = marks_ahead(now, list(strategies))
    if not ahead:
        return Check("slots", "ok", "no high-water mark lies ahead")
    told = ", ".join(f"{one.name} until {one.high_water_mark:%Y-%m-%d %H:%M}Z" for one in ahead)
    return Check(
        "slots", "warn", f"looked at by a clock that was ahead: nothing is due of {told}; see the runbook on clocks"
    )
