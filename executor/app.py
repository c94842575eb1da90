"""The composition root: builds every object of a worker once, checks what must be so before anything is reserved, and runs it."""

import ctypes
import gc
import hashlib
import logging
import os
import queue
import resource
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Iterable

from chain.client import ChainClient
from chain.errors import ChainError, Unavailable
from executor import crashpoints, migration
from executor.config import AccountConfig, Config, KeyfileSigner
from executor.crashpoints import CrashPoint
from executor.database import EPOCH, Database, normalise
from executor.errors import ConfigError, Unreachable
from executor.http import Face
from executor.plan_process import PlanPool, module_source
from executor.records import Account
from executor.registration import release, revision_of
from executor.stages.plan import Definition
from executor.store import accounts, installation, strategies
from executor.telemetry import configure_logging
from executor.tenure import Identity, Tenure
from executor.worker import Served, Settings, Worker
from signer.backend import Backend
from signer.keyfile import KeyFileBackend
from signer.keystore import KeystoreBackend
from signer.policy import Policy
from signer.service import Signer

log = logging.getLogger("fenced.app")
_SPARE_CONNECTIONS = 8
"""Above the pool's own eight: a worker has at most 26 connections, so that three fit into PostgreSQL's default of 100 at their worst."""


def database_url(config: Config) -> str:
    """Where the database is; starts nothing.

    Raises:
        ConfigError: the embedded database is configured and not running.
    """
    if not config.database.embedded:
        if config.database.url is None:
            raise ConfigError("[database] needs url, or embedded = true.")
        return normalise(config.database.url.reveal())
    from executor import embedded

    server = embedded.status(config.database.state_dir)
    if server is None:
        raise ConfigError("the embedded database is not running: run `fenced db start`.")
    return server.url()


def ensure_database(config: Config) -> str:
    """Where the database is; starts the embedded one where that is configured and it is not running."""
    if config.database.embedded:
        from executor import embedded

        return embedded.start(config.database.state_dir, child=False).url()
    return database_url(config)


def open_chain(config: Config, chain: str) -> ChainClient:
    """A client for the chain of that name."""
    section = config.chains[chain]
    return ChainClient(chain, section.id, [endpoint.url.reveal() for endpoint in section.endpoints], section.final)


def open_backend(account: AccountConfig) -> Backend:
    """The key of an account. Raises SignerError in one sentence, without a secret in it."""
    if isinstance(account.signer, KeyfileSigner):
        return KeyFileBackend(account.signer.path, account.address)
    password = account.signer.password.reveal().encode()
    return KeystoreBackend(account.signer.path, password, account.address, allow_weak_kdf=account.signer.allow_weak_kdf)


def policy_of(account: AccountConfig) -> Policy:
    """What the signer enforces for an account."""
    section = account.policy
    return Policy(
        max_fee_per_gas_wei=section.max_fee_per_gas_wei,
        max_priority_fee_per_gas_wei=section.max_priority_fee_per_gas_wei,
        max_value_wei=section.max_value_wei,
        max_gas=section.max_gas,
        allowed_to=None if section.allow_to is None else frozenset(section.allow_to),
        allow_create=section.allow_create,
    )


def definitions_of(config: Config) -> dict[str, Definition]:
    """The strategies as this installation has them, each with its revision."""
    return {
        name: Definition(
            revision_of(config, name), section.plan, section.params, config.account_of(name).policy.allow_create
        )
        for name, section in config.strategies.items()
    }


def run_worker(config: Config, *, name: str | None = None) -> int:
    """Work until SIGTERM or SIGINT; the exit code.

    Raises:
        ConfigError: the database, its settings, a key file, a strategy or an account is not as it must be.
        Unreachable: the database or a chain does not answer at start.
    """
    _close_process()
    _look_for_garbage_seldom()
    name = name or f"{socket.gethostname()}-{os.getpid()}"
    configure_logging(sys.stderr, worker=name)
    url = ensure_database(config)
    migration.check(url)
    crash = crashpoints.hook_from(dict(os.environ))
    database = Database(url, name, overflow=_SPARE_CONNECTIONS)
    signer_database = Database(url, f"{name} signer", pool_size=4, overflow=2)
    lease_database = Database(url, f"{name} lease", pool_size=2, overflow=1)
    sources = {
        section.plan: hashlib.sha256(module_source(section.plan, config.directory)).hexdigest()
        for section in config.strategies.values()
    }
    pool = PlanPool(config.directory, sources=sources)
    clients = {chain: open_chain(config, chain) for chain in {account.chain for account in config.accounts.values()}}
    face: Face | None = None
    try:
        served = _serve(config, database, clients)
        signer = _signer(config, signer_database, crash)
        definitions = definitions_of(config)
        _warn_of_other_revisions(database, definitions)
        for strategy, failed in pool.warm({n: d.plan for n, d in definitions.items()}).items():
            raise ConfigError(f"strategies.{strategy}.plan: {failed.message}")
        section = config.worker
        settings = Settings(
            section.lease_seconds, section.tick_seconds, section.plan_timeout_seconds, section.rebroadcast_seconds
        )
        worker = Worker(name, database, signer, served, definitions, pool, settings, crash)
        tenure = Tenure(
            lease_database,
            Identity(uuid.uuid4(), name, release()),
            section.lease_seconds,
            list(served),
            lambda account_id: signer.current_fence(
                served[account_id].account.chain_id, served[account_id].account.address
            ),
            crash,
            worker.wake,
            worker.working,
        )
        if section.listen:
            face = Face(section.listen, worker.is_live, worker.is_ready)
        asked: queue.SimpleQueue[int] = queue.SimpleQueue()
        threading.Thread(target=_stop_when_asked, args=(asked, worker), name="signals", daemon=True).start()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Its put takes no lock of Python's; the events of `stop` do, and this thread may be inside one of them.
            signal.signal(number, lambda number, _: asked.put(number))
        log.info(
            "worker started",
            extra={"listen": face.address if face else None, "accounts": [s.account.name for s in served.values()]},
        )
        worker.run(tenure)
        log.info("worker ended")
        return 2 if worker.is_outdated else 0
    finally:
        pool.close()
        if face is not None:
            face.close()
        for client in clients.values():
            client.close()
        for opened in (database, signer_database, lease_database):
            opened.close()


def _look_for_garbage_seldom() -> None:
    """What was imported is never garbage, and batches make many short-lived rows: the defaults cost a twentieth of the rate."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _close_process() -> None:
    """No core dump, and no reading of this process's memory or environment by others of the same user (strategies run as one)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pr_set_dumpable = 4
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_dumpable, 0, 0, 0, 0)


def _stop_when_asked(asked: "queue.SimpleQueue[int]", worker: Worker) -> None:
    asked.get()
    worker.stop()


def _serve(config: Config, database: Database, clients: dict[str, ChainClient]) -> dict[int, Served]:
    """The configured accounts, after the checks that must pass before anything is reserved."""
    with database.read() as tx:
        facts = installation.read(tx)
    check_installation(config, facts)
    with database.read() as tx:
        rows = {account.name: account for account in accounts.load(tx, list(config.accounts))}
    _halt_moved(database, rows.values())
    for client in clients.values():
        try:
            client.check_identity()
        except Unavailable as error:
            raise Unreachable(f"chains.{client.name}.endpoints: {error}; check that a node listens there.") from None
        except ChainError as error:
            raise ConfigError(f"chains.{client.name}: {error}.") from None
    served = {}
    for name, section in config.accounts.items():
        row = rows.get(name)
        chain = config.chains[section.chain]
        if row is None or (row.chain_id, row.address) != (chain.id, section.address):
            raise ConfigError(f"accounts.{name} is not registered as configured: run `fenced apply`.")
        served[row.account_id] = Served(
            row, policy_of(section), clients[section.chain], chain.endpoints[0].url.reveal()
        )
    return served


def _halt_moved(database: Database, rows: Iterable[Account]) -> None:
    """On a restored, promoted or copied database every account is halted at once; the worker runs to answer requests (P13)."""
    if not any(account.is_rewound for account in rows):
        return
    with database.transaction() as tx:
        halted = accounts.halt_moved(tx, [account.account_id for account in rows])
    for name, why in halted:
        log.critical(
            "account halted: nothing is planned, reserved, signed or first sent until it is reopened",
            extra={"account": name, "why": why, "todo": f'fenced reopen {name} --why "…"; see the runbook on restores'},
        )


def check_installation(config: Config, facts: installation.Installation) -> None:
    """Refuse a database of another service, a standby, and settings that void the promises (P12).

    Raises:
        ConfigError: with what to change.
    """
    if facts.service is not None and facts.service != config.service.name:
        raise ConfigError(
            f"the database belongs to the service {facts.service}, this configuration is {config.service.name}: use its own database."
        )
    if facts.in_recovery:
        raise ConfigError("the database is a standby: connect to the primary.")
    if facts.fsync != "on":
        raise ConfigError("the database runs with fsync = off, which can lose what was promised: turn it on.")
    if facts.full_page_writes != "on":
        raise ConfigError("the database runs with full_page_writes = off, which a power cut can break: turn it on.")
    if facts.synchronous_commit == "off":
        raise ConfigError(
            "synchronous_commit is off for this role or database, which can lose what was promised: turn it on."
        )
    if not facts.epoch_min <= EPOCH <= facts.epoch_max:
        raise ConfigError(
            f"this release's schema epoch {EPOCH} is outside {facts.epoch_min} to {facts.epoch_max}: install a matching release."
        )


def _signer(config: Config, database: Database, crash: crashpoints.CrashHook) -> Signer:
    backends, policies = {}, {}
    for section in config.accounts.values():
        key = (config.chains[section.chain].id, section.address)
        backends[key], policies[key] = open_backend(section), policy_of(section)

    return Signer(database.engine, backends, policies, crash=lambda point: crash(CrashPoint(point)))


def _warn_of_other_revisions(database: Database, definitions: dict[str, Definition]) -> None:
    with database.read() as tx:
        registered = strategies.revisions(tx)
    for name, definition in definitions.items():
        if registered.get(name) != definition.revision:
            log.warning(
                "the registered revision is another: this worker does not plan it; run `fenced apply`",
                extra={"strategy": name},
            )
