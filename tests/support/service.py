"""An installation under test: configuration, keys and strategies in a directory, worker processes, and the proxy before its node.

Waiting is polling the database or a process against a deadline. `finish` ends a test: no worker may stay frozen, every byte
that went out had been committed first (G4), each nonce saw one set of bytes, and the audit finds nothing.
"""

import os
import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import psycopg
from eth_account import Account
from psycopg.rows import dict_row

from chain.types import checksum
from executor import registration, triggering
from executor.audit import audit
from executor.config import Config, load
from executor.database import Database
from tests.support.devnet import NodeProcess
from tests.support.postgres import plain_connection
from tests.support.proxy import RecordingProxy
from tests.support.worker_process import WorkerProcess, wait_for

SERVICE = "payments-test"
CHAIN_ID = 31337
ETHER = 10**18
GWEI = 10**9
PATIENCE_SECONDS = 30.0
"""How long a test waits for what a slow machine may take long to do; what is timed says so itself."""
_ENVIRONMENT = threading.Lock()
"""Configurations name their database by the one environment of the process, whichever thread reads one."""
_HEAD = "import os, time\nfrom executor.strategy import Call, Context, Plan, in_order, nothing, together\n\n\n"


@dataclass(frozen=True)
class Wallet:
    """An account of the installation, with the key that only its signer and this test know."""

    name: str
    key: str

    @property
    def address(self) -> str:
        """With checksum."""
        return str(Account.from_key(self.key).address)

    @property
    def address_bytes(self) -> bytes:
        """20 bytes."""
        return bytes.fromhex(self.address[2:])

    def sign(self, nonce: int, to: str, value: int = 1, *, fee: int = 20 * GWEI, tip: int = 2 * GWEI) -> bytes:
        """A transfer signed behind the executor's back."""
        fields = {"chainId": CHAIN_ID, "nonce": nonce, "gas": 21_000, "to": to, "value": value}
        fields |= {"maxFeePerGas": fee, "maxPriorityFeePerGas": tip}
        return bytes(Account.sign_transaction(fields, self.key).raw_transaction)


def fresh_address() -> str:
    """An address nobody has used."""
    return checksum(os.urandom(20))


class Service:
    """Build with `account` and `strategy`, then `register`, then `start_worker`.

    `worker_database_url` is another way to the same database, for the workers alone.
    """

    def __init__(
        self,
        directory: Path,
        node: NodeProcess,
        database_url: str,
        *,
        lease: str = "2s",
        depth: int = 2,
        plan_timeout: str = "5s",
        rebroadcast: str = "1s",
        tick: str = "100ms",
        poll: float = 0.02,
        endpoints: int = 1,
        worker_database_url: str | None = None,
    ) -> None:
        self.directory, self.node, self.database_url = directory, node, database_url
        self.config_file = directory / "fenced.toml"
        self.workers: list[WorkerProcess] = []
        self._environment = {"FENCED_TEST_DATABASE": (worker_database_url or database_url).replace("+psycopg", "", 1)}
        self.expected_ends: set[int | None] = {None, 0, -9}
        """Exit codes of workers that do not end a wait: running, politely ended, killed."""
        self._poll = poll
        self._lock = threading.Lock()
        self._connection = self._connect()
        self.database = Database(database_url, "test", pool_size=20)
        self.proxies = [RecordingProxy(node.url, self._uncommitted) for _ in range(endpoints)]
        self.proxy = self.proxies[0]
        self._sections = [
            f'[service]\nname = "{SERVICE}"',
            '[database]\nurl = { env = "FENCED_TEST_DATABASE" }',
            "\n".join(
                [
                    f'[worker]\nlease = "{lease}"\ntick = "{tick}"\nlisten = ""',
                    f'plan_timeout = "{plan_timeout}"\nrebroadcast = "{rebroadcast}"',
                ]
            ),
            f"[chains.local]\nid = {CHAIN_ID}\nendpoints = {[proxy.url for proxy in self.proxies]}\nfinal = {{ depth = {depth} }}",
        ]

    # Building

    def account(self, name: str = "treasury", *, max_value: str = "10 ether", max_in_flight: int = 16) -> Wallet:
        """A funded account with a key of its own."""
        wallet = Wallet(name, "0x" + os.urandom(32).hex())
        key_file = self.directory / f"{name}.key"
        key_file.write_text(wallet.key)
        key_file.chmod(0o600)
        self.node.rpc("anvil_setBalance", wallet.address, hex(100 * ETHER))
        self._sections.append(
            f'[accounts.{name}]\nchain = "local"\naddress = "{wallet.address}"\nmax_in_flight = {max_in_flight}\n'
            f'signer = {{ kind = "keyfile", path = "{key_file.name}" }}\n'
            f'policy = {{ max_fee_per_gas = "50 gwei", max_value = "{max_value}" }}'
        )
        return wallet

    def strategy(self, name: str, body: str, *, account: str = "treasury", **settings: str | int) -> None:
        """A strategy whose `plan(ctx)` has this body; `settings` are keys of its section."""
        module = name.replace("-", "_")
        text = f"{_HEAD}def plan(ctx: Context) -> Plan:\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
        (self.directory / f"{module}.py").write_text(text)
        lines = [f'[strategies.{name}]\nplan = "{module}:plan"\naccount = "{account}"']
        lines += [
            f"{key} = {value}" if isinstance(value, int) else f'{key} = "{value}"' for key, value in settings.items()
        ]
        self._sections.append("\n".join(lines))

    def pays(
        self,
        name: str,
        *,
        value: int = ETHER // 100,
        once: str | None = None,
        account: str = "treasury",
        **settings: str | int,
    ) -> str:
        """A strategy that pays `value` to an address of its own, which is returned; `settings` as for `strategy`."""
        to = fresh_address()
        self.strategy(name, f"return Call({to!r}, {value}, once={once!r})", account=account, **settings)
        return to

    def register(self) -> None:
        """Write the configuration and bring it into the rows."""
        self.config_file.write_text("\n\n".join(self._sections) + "\n")
        registration.claim(self.database, SERVICE)
        registration.apply(self.database, self.config())

    def config(self) -> Config:
        """The configuration as a worker reads it."""
        with _ENVIRONMENT:
            os.environ.update(self._environment)
            return load(self.config_file)

    # Working

    def start_worker(
        self,
        name: str,
        crash: str | None = None,
        *,
        marker: Path | None = None,
        fresh: bool = False,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> WorkerProcess:
        """Start one more worker; `crash` is a crash point and an action, "sign.stored:kill"; `environment` is its own.

        It fires once, while there is no `marker` file; workers that share one fire once together.
        """
        changes = {**self._environment, **environment}
        worker = WorkerProcess(name, self.config_file, changes, crash=crash, marker=marker, fresh=fresh)
        self.workers.append(worker)
        return worker

    def start_pair(self, crash: str | None = None, *, fresh: bool = False) -> tuple[WorkerProcess, WorkerProcess]:
        """Two workers: `first` holds every lease and may crash, `second` is alive and has none."""
        first = self.start_worker("first", crash, fresh=fresh)
        self.wait_held_by("first")
        second = self.start_worker("second")
        self.wait(lambda: self.rows("SELECT FROM worker WHERE name = 'second'"), "the second worker reports itself")
        return first, second

    def trigger(self, strategy: str, key: str, payload: Any = triggering.REGISTERED) -> str:
        """Ask for a run; its execution id."""
        return triggering.trigger(self.database, strategy, key=key, payload=payload).execution_id

    # Reading

    def rows(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        """Rows of a statement, by name; where the server was restarted, asked again when it is back."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with self._lock:
                    if self._connection.broken:
                        self._connection = self._connect()
                    return self._connection.execute(sql, parameters).fetchall()  # type: ignore[arg-type,return-value]
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def execute(self, sql: str) -> None:
        """A statement without rows."""
        with self._lock:
            self._connection.execute(sql)  # type: ignore[arg-type]  # only literal text is well typed

    def value(self, sql: str, *parameters: object) -> Any:
        """The first value of the first row, None without one."""
        found = self.rows(sql, *parameters)
        return next(iter(found[0].values())) if found else None

    def execution(self, execution_id: str) -> dict[str, Any]:
        """One execution row."""
        (found,) = self.rows("SELECT * FROM execution WHERE execution_id = %s", execution_id)
        return found

    def state(self, execution_id: str) -> str:
        """Where an execution stands."""
        return str(self.execution(execution_id)["state"])

    def reservations(self, execution_id: str) -> list[dict[str, Any]]:
        """The nonces of an execution, by step."""
        return self.rows("SELECT * FROM nonce_reservation WHERE execution_id = %s ORDER BY step", execution_id)

    def attempts(self, execution_id: str) -> list[dict[str, Any]]:
        """The attempts of an execution, in order."""
        return self.rows(
            "SELECT t.* FROM attempt t JOIN nonce_reservation USING (account_id, nonce) WHERE execution_id = %s"
            " ORDER BY nonce, seq",
            execution_id,
        )

    def verdicts(self, execution_id: str) -> list[str]:
        """What the endpoints said about an execution's bytes."""
        found = self.rows(
            "SELECT verdict FROM broadcast JOIN nonce_reservation USING (account_id, nonce) WHERE execution_id = %s",
            execution_id,
        )
        return [row["verdict"] for row in found]

    def account_row(self, name: str = "treasury") -> dict[str, Any]:
        """One account row."""
        (found,) = self.rows("SELECT * FROM account WHERE name = %s", name)
        return found

    def refused(self) -> list[dict[str, Any]]:
        """The stale writes that were refused."""
        return self.rows("SELECT * FROM refused_write ORDER BY refused_id")

    def balance(self, address: str) -> int:
        """What an address has on chain, in wei."""
        return int(self.node.rpc("eth_getBalance", address, "latest"), 16)

    def nonce(self, address: str) -> int:
        """How many transactions of an address are mined."""
        return int(self.node.rpc("eth_getTransactionCount", address, "latest"), 16)

    def mine(self, blocks: int) -> None:
        """Let a node that works on order make blocks, once it has every transaction that is on its way to it."""
        for proxy in self.proxies:
            proxy.wait_delivered()
        self.node.rpc("anvil_mine", hex(blocks))

    # Waiting

    def wait(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Poll until `condition` is true. Raises AssertionError that shows where everything stands.

        Does not wait on when a worker has ended in a way that no test asks for.
        """

        def is_met_or_lost() -> object:
            return condition() or any(worker.exit_code not in self.expected_ends for worker in self.workers)

        try:
            wait_for(is_met_or_lost, seconds, what, self._poll)
            assert condition(), f"a worker failed while waiting: {what}"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.describe()}") from None

    def wait_state(self, execution_id: str, *states: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until an execution is in one of `states`; which."""
        self.wait(lambda: self.state(execution_id) in states, f"{execution_id} is {' or '.join(states)}", seconds)
        return self.state(execution_id)

    def wait_attempt(self, execution_id: str, status: str) -> None:
        """Wait until the newest attempt of an execution has this status."""
        self.wait(
            lambda: [row["status"] for row in self.attempts(execution_id)][-1:] == [status],
            f"the attempt of {execution_id} is {status}",
        )

    def wait_held_by(self, worker: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until a worker holds every lease."""
        free = "SELECT count(*) FROM lease WHERE holder IS DISTINCT FROM %s OR expires_at <= clock_timestamp()"
        self.wait(lambda: self.value(free, worker) == 0, f"{worker} holds every lease", seconds)

    def wait_renewals(self, count: int = 2) -> None:
        """Wait until every lease was renewed `count` times more: the holder had the time to do what it should not."""
        for _ in range(count):
            before = self.value("SELECT max(renewed_at) FROM lease")
            self.wait(lambda b=before: self.value("SELECT min(renewed_at) FROM lease") > b, "leases are renewed")

    def describe(self) -> str:
        """Where everything stands, for a failed wait."""
        tables: Mapping[str, str] = {
            "executions": "SELECT execution_id, state, reason FROM execution ORDER BY created_at",
            "reservations": "SELECT account_id, nonce, execution_id, step, state, closed_as FROM nonce_reservation",
            "attempts": "SELECT account_id, nonce, seq, kind, status, reason FROM attempt ORDER BY 1, 2, 3",
            "accounts": "SELECT name, state, reason, attention, fence FROM account",
            "leases": "SELECT account_id, token, holder, expires_at > clock_timestamp() AS live FROM lease",
            "refused": "SELECT constraint_name, stage, worker, detail FROM refused_write",
            "verdicts": "SELECT account_id, nonce, seq, verdict, detail, count FROM broadcast",
        }
        told = [f"{name}: {[tuple(row.values()) for row in self.rows(sql)]}" for name, sql in tables.items()]
        for worker in self.workers:
            told.append(f"worker {worker.name}: exit {worker.exit_code}, frozen {worker.is_frozen}")
            told.append(textwrap.indent(worker.log[-2500:], "    "))
        return "\n".join(told)

    # Judging

    def assert_paid_once(self, execution_id: str, to: str, value: int = ETHER // 100) -> None:
        """The single call of an execution took effect exactly once: in the rows, in the bytes sent, on the chain."""
        self.wait_state(execution_id, "SUCCEEDED")
        (reservation,) = self.reservations(execution_id)
        (attempt,) = self.attempts(execution_id)
        assert (reservation["step"], reservation["state"], reservation["effect"]) == (0, "CLOSED", True)
        assert attempt["status"] == "FINAL"
        sender = self.value("SELECT address FROM account WHERE account_id = %s", reservation["account_id"])
        assert self.proxy.raws_by_nonce()[sender, reservation["nonce"]] == {attempt["raw"]}
        assert self.balance(to) == value
        receipt = self.node.rpc("eth_getTransactionReceipt", "0x" + attempt["hash"].hex())
        assert receipt["status"] == "0x1"

    def finish(self) -> None:
        """Judge the whole run, after the workers have ended politely; those that a test froze are killed."""
        for worker in self.workers:
            if worker.is_frozen:
                worker.kill()
            elif worker.exit_code is None:
                worker.terminate()
        for worker in self.workers:
            worker.wait_ended()
        assert [complaint for proxy in self.proxies for complaint in proxy.complaints] == []
        stored = {
            (bytes(row["address"]), row["nonce"]): set(row["raws"])
            for row in self.rows(
                "SELECT address, nonce, array_agg(raw) FILTER (WHERE raw IS NOT NULL) AS raws"
                " FROM attempt JOIN account USING (account_id) GROUP BY address, nonce HAVING count(raw) > 0"
            )
        }
        for key, raws in [item for proxy in self.proxies for item in proxy.raws_by_nonce().items()]:
            assert raws <= stored[key], f"bytes that are not stored went out for nonce {key[1]}"
        report = audit(self.database_url, {CHAIN_ID: [self.node.url]})
        assert report.clean, report.violations

    def close(self) -> None:
        """End everything, whatever state it is in."""
        for worker in self.workers:
            worker.kill()
        for proxy in self.proxies:
            proxy.close()
        self.database.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()

    def _connect(self) -> psycopg.Connection:
        connection = plain_connection(self.database_url)
        connection.row_factory = dict_row  # type: ignore[assignment]  # rows by name
        # A reader's eyes: it sees no more and waits for no standby.
        connection.execute("SET synchronous_commit = local")
        return connection

    def _uncommitted(self, raws: Sequence[bytes]) -> list[str]:
        """Complaints about bytes that are not in the attempts table when they arrive, seen from another connection (G4)."""
        found = self.rows("SELECT raw FROM attempt WHERE raw = ANY(%s)", list(raws))
        committed = {bytes(row["raw"]) for row in found}
        return [f"0x{raw.hex()} was sent before it was committed" for raw in raws if raw not in committed]
