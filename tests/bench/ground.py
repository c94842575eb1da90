"""What the figures stand on: a real PostgreSQL with fsync, a node that mines a block a second, workers as processes."""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from chain.types import checksum
from devnet.accounts import development_accounts
from executor import config, embedded, migration, registration
from executor.database import Database
from executor.demo import processes
from executor.demo.processes import Process
from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import ROOT, NodeProcess, start_devnet

CHAIN_ID = 31337
_CONFIG = """\
[service]
name = "bench"
[database]
url = "{database}"
[worker]
lease = "{lease}s"
listen = ""
[chains.local]
id = 31337
endpoints = ["{endpoint}"]
[accounts.payer]
chain = "local"
address = "{address}"
signer = {{ kind = "keyfile", path = "payer.key" }}
max_in_flight = 1000
[accounts.payer.policy]
max_fee_per_gas = "100 gwei"
[strategies.pay]
plan = "pay:plan"
account = "payer"
params = {{ to = "{to}" }}
{schedule}
"""
_PLAN = """\
from executor.strategy import Call, Context, Plan


def plan(ctx: Context) -> Plan:
    return Call(ctx.params["to"], 1, gas=21_000)
"""


@dataclass
class Site:
    """One installation: its own database, wallet and configuration, and the workers started for it."""

    folder: Path
    url: str
    endpoint: str
    workers: list[Process] = field(default_factory=list)

    def connect(self) -> psycopg.Connection[Any]:
        """An autocommit connection."""
        return psycopg.connect(self.url.replace("+psycopg", "", 1), autocommit=True)

    def start(self, name: str, **environment: str) -> Process:
        """Start a worker and wait until it has come up."""
        command = ["-m", "tests.bench.timed_worker", str(self.folder / "fenced.toml"), name]
        worker = processes.start(name, command, self.folder, {"PYTHONPATH": str(ROOT), **environment})
        self.workers.append(worker)
        with self.connect() as connection:
            seen = "SELECT 1 FROM worker WHERE name = %s AND stopped_at IS NULL"
            until(lambda: worker.ended or connection.execute(seen, (name,)).fetchone(), 60)
        if worker.ended:
            raise RuntimeError(f"{name} did not start: {worker.last_words()}")
        return worker

    def stop(self) -> dict[str, dict[str, Any]]:
        """End all workers; where each spent its time, by name."""
        processes.stop(self.workers, 15)
        names = [worker.name for worker in self.workers]
        self.workers.clear()
        files = {name: self.folder / f"{name}.json" for name in names}
        return {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}


@dataclass
class Ground:
    """The servers all figures share. `node_kind` is anvil or devnet, `node_why` says why it is not anvil."""

    folder: Path
    server: embedded.Server
    node: NodeProcess
    node_kind: str
    node_why: str

    @contextmanager
    def site(self, name: str, account: int, to: bytes, *, lease: float = 30, every: str = "") -> Iterator[Site]:
        """A fresh database with one wallet and one strategy, by trigger only unless `every`."""
        folder = self.folder / name
        (folder).mkdir()
        with psycopg.connect(self.server.conninfo("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        url = self.server.url(name)
        migration.upgrade(url)
        wallet = development_accounts(10)[account]
        schedule = f'every = "{every}"\nmisfire = "all"\noverlap = "allow"' if every else ""
        values = {"database": url.replace("+psycopg", "", 1), "lease": lease, "endpoint": self.node.url}
        values |= {"address": checksum(wallet.address), "to": checksum(to), "schedule": schedule}
        (folder / "fenced.toml").write_text(_CONFIG.format_map(values))
        (folder / "pay.py").write_text(_PLAN)
        (folder / "payer.key").touch(0o600)
        (folder / "payer.key").write_text(wallet.key.hex())
        database = Database(url, "bench", pool_size=1)
        try:
            registration.claim(database, "bench")
            registration.apply(database, config.load(folder / "fenced.toml"))
        finally:
            database.close()
        site = Site(folder, url, self.node.url)
        try:
            yield site
        finally:
            processes.stop(site.workers, 0)


@contextmanager
def opened() -> Iterator[Ground]:
    """Start PostgreSQL (fsync on) and anvil, or our devnet where there is no anvil; both end with this process."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="fenced-bench-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711 if os.geteuid() == 0 else 0o700)
        server = stack.enter_context(embedded.start(folder / "database", child=True, fsync=True))
        path, why = anvil_binary()
        start = start_devnet if path is None else start_anvil
        node = stack.enter_context(
            start("--block-time", "1", "--silent") if path is None else start("--block-time", "1")
        )
        yield Ground(folder, server, node, node.kind, why)


def until(look: Callable[[], Any], seconds: float, pause: float = 0.02) -> Any:
    """Look until there is something to see, every `pause` seconds. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s in vain")
        time.sleep(pause)
    return found
