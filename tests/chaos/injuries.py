"""How each fault of a scenario is done to workers, database and node, and how it ends.

An injury returns what ends it, if anything does; the run calls that when the fault's time is over. A node that cannot do a
fault is never asked to: a scenario for anvil names only what anvil can do.
"""

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import psycopg

from devnet.testing import RpcFailure
from tests.chaos.ground import ChaosService, Crew
from tests.chaos.scenario import Fault, Scenario
from tests.support.postgres import plain_connection

Relief = Callable[[], object]
_NODE_SECONDS = 20.0
_SPIKED_WEI = 10 * 10**9
_READS = ["eth_get*", "eth_blockNumber", "eth_feeHistory", "eth_estimateGas", "eth_maxPriorityFeePerGas", "eth_chainId"]
_METHODS = {"send": ["eth_sendRawTransaction"], "read": _READS, "receipt": ["eth_getTransactionReceipt"]}
_ARGUMENTS: dict[str, Callable[[Random], object]] = {
    "http": lambda rng: {"status": rng.choice([429, 500, 502, 503]), "retryAfter": 1},
    "delay": lambda rng: {"ms": rng.randrange(50, 1500)},
    "stale": lambda rng: {"blocks": rng.randrange(1, 4)},
    "error": lambda rng: {"code": rng.choice([-32000, -32005, -32603]), "message": "the node is not well"},
    "accept_as_error": lambda rng: rng.choice(["geth.nonce_too_low", "geth.underpriced", "geth.already_known"]),
}
_WORKERS_SESSIONS = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, 'worker-') ORDER BY pid
"""
_HELD = "SELECT account_id FROM lease WHERE holder = %s AND expires_at > clock_timestamp()"


@dataclass(frozen=True, slots=True)
class Kill:
    """A worker killed at a moment of the database's clock, and the accounts it held then."""

    at: float
    worker: str
    accounts: tuple[int, ...]


class Injuries:
    """Does faults to an installation. `restart_database` is there where the run has a server of its own."""

    def __init__(
        self, service: ChaosService, crew: Crew, scenario: Scenario, restart_database: Callable[[], None] | None
    ) -> None:
        self.kills: list[Kill] = []
        self._service, self._crew, self._scenario, self._restart = service, crew, scenario, restart_database
        self._rules = 0

    def begin(self, fault: Fault) -> Relief | None:
        """Do a fault. Raises LookupError where nothing is there to strike just now."""
        rng = Random(fault.seed)
        group, _, kind = fault.kind.partition(".")
        if group in _METHODS:
            return self._rule(_METHODS[group], kind, rng)
        method: Callable[[Fault, Random], Relief | None] = getattr(self, f"_{fault.kind}")
        return method(fault, rng)

    def _place(self, fault: Fault, *, to_end: bool) -> int:
        place = self._crew.pick(fault.target, to_end=to_end)
        if place is None:
            raise LookupError("no worker runs")
        return place

    def _kill(self, fault: Fault, _: Random) -> None:
        place = self._place(fault, to_end=True)
        name = self._crew.members[place].name
        held = tuple(row["account_id"] for row in self._service.rows(_HELD, name))
        at = float(self._service.value("SELECT extract(epoch FROM clock_timestamp())"))
        self._crew.end(place, signal.SIGKILL, fault.seconds)
        self.kills.append(Kill(at, name, held))

    def _terminate(self, fault: Fault, _: Random) -> None:
        self._crew.end(self._place(fault, to_end=True), signal.SIGTERM, fault.seconds)

    def _freeze(self, fault: Fault, _: Random) -> Relief:
        member = self._crew.members[self._place(fault, to_end=False)]
        member.pause()

        def thaw() -> None:
            if member.exit_code is None:
                member.resume()

        return thaw

    def _cut_sessions(self, _: Fault, rng: Random) -> None:
        pids = [row["pid"] for row in self._service.rows(_WORKERS_SESSIONS)]
        struck = rng.sample(pids, min(len(pids), rng.randrange(1, 6)))
        self._service.rows("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", struck)

    def _lock_account(self, fault: Fault, _: Random) -> Relief:
        return self._lock("account", fault)

    def _lock_lease(self, fault: Fault, _: Random) -> Relief:
        return self._lock("lease", fault)

    def _lock(self, table: str, fault: Fault) -> Relief:
        account = self._account(fault)
        try:
            connection = plain_connection(self._service.database_url)
        except psycopg.OperationalError:
            raise LookupError("the database takes no connection just now") from None
        connection.execute("BEGIN")
        connection.execute("SET LOCAL lock_timeout = '2s'")
        with suppress(psycopg.OperationalError):
            connection.execute(f"SELECT FROM {table} WHERE account_id = %s FOR UPDATE", (account,))
        return connection.close

    def _database_restart(self, _: Fault, __: Random) -> None:
        if self._restart is None:
            raise LookupError("this run shares its server")
        self._restart()

    def _lost_replies(self, _: Fault, rng: Random) -> None:
        self._service.proxy.drop_replies(rng.randrange(1, 8))

    def _refused_sends(self, _: Fault, __: Random) -> Relief:
        self._service.proxy.refuse_sends()
        return self._service.proxy.allow_sends

    def _rule(self, methods: list[str], kind: str, rng: Random) -> Relief:
        self._rules += 1
        name = f"chaos-{self._rules}"
        rule = {"id": name, "kind": kind, "match": {"method": methods}, "p": rng.choice([0.2, 0.5, 0.9])}
        rule["seed"] = rng.randrange(1 << 32)
        if kind in _ARGUMENTS:
            rule["arg"] = _ARGUMENTS[kind](rng)
        self._order("devnet_fault", rule)
        return lambda: self._order("devnet_clearFaults", name)

    def _evict(self, fault: Fault, rng: Random) -> None:
        if self._service.node.kind == "devnet":
            self._order("devnet_evict", {"p": rng.choice([0.3, 1]), "seed": fault.seed})
        else:
            self._order("anvil_dropAllTransactions")

    def _reorg(self, fault: Fault, rng: Random) -> None:
        depth = rng.randrange(1, self._scenario.depth)
        with suppress(RpcFailure):  # a chain that is still too short
            if self._service.node.kind == "devnet":
                keep = rng.choice(["none", "all"])
                order = {"depth": depth, "keep": keep, "requeue": rng.choice([True, False])}
                self._order("devnet_reorg", order)
            else:
                self._order("anvil_reorg", depth, [])

    def _lagging_nodes(self, _: Fault, rng: Random) -> Relief:
        lag = [0, *(rng.randrange(1, 4) for _ in range(2))]
        order = {"n": 3, "lag": lag, "route": rng.choice(["rr", "seeded"]), "pool": "shared"}
        self._order("devnet_nodes", order)
        return lambda: self._order("devnet_nodes", {"n": 0})

    def _node_restart(self, _: Fault, rng: Random) -> None:
        self._order("devnet_restart", {"losePool": True, "downtimeMs": rng.randrange(100, 1500)})

    def _fee_spike(self, _: Fault, rng: Random) -> None:
        head: Any = self._order("eth_getBlockByNumber", "latest", False)
        if int(head["baseFeePerGas"], 16) > _SPIKED_WEI:
            raise LookupError("the one before is not over: spikes on top of one another never end")
        self._order("devnet_baseFee", {"spike": {"factor": 20, "blocks": rng.randrange(2, 6)}})

    def _order(self, method: str, *arguments: object) -> object:
        """Tell the node; told again while it restarts."""
        deadline = time.monotonic() + _NODE_SECONDS
        while True:
            try:
                return self._service.node.rpc(method, *arguments)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _account(self, fault: Fault) -> int:
        ids = [row["account_id"] for row in self._service.rows("SELECT account_id FROM account ORDER BY 1")]
        return int(ids[fault.target % len(ids)])
