"""One account's tick by hand: real database, real devnet mined by hand, the real signer; each stage called alone."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chain.client import ChainClient
from chain.transaction import intent_digest
from chain.types import ChainView
from executor import app, config, registration
from executor.crashpoints import inert
from executor.database import Database, Held
from executor.records import Account
from executor.stages import broadcast, confirm, finalize, reconcile, reserve, sign
from executor.store import accounts, executions, leases, plans
from executor.turn import Turn
from signer.policy import Policy
from signer.service import Signer
from tests.support.devnet import Devnet, start_devnet

ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
PAYEE = bytes.fromhex("70997970C51812dc3A010C7d01b50e0d17dc79C8")
CONFIG = """
[service]
name = "stages"
[database]
url = {{ env = "STAGES_DATABASE" }}
[chains.local]
id = 31337
endpoints = ["{url}"]
final = {{ depth = 2 }}
[accounts.treasury]
chain = "local"
address = "{address}"
signer = {{ kind = "keyfile", path = "key" }}
max_in_flight = 4
[accounts.treasury.policy]
max_fee_per_gas = "100 gwei"
max_value = "5 ether"
[strategies.pay]
plan = "pay:plan"
account = "treasury"
"""


@dataclass
class Line:
    """The straight line of one account, stage by stage."""

    devnet: Devnet
    database: Database
    client: ChainClient
    signer: Signer
    turn: Turn
    numbers: list[int] = field(default_factory=list)

    @property
    def account_id(self) -> int:
        return self.turn.account.account_id

    def view(self) -> ChainView:
        return self.client.view(self.turn.account.address)

    def account(self) -> Account:
        with self.database.read() as tx:
            return accounts.get(tx, self.account_id)

    def execution(
        self, name: str, *calls: dict[str, Any], order: str = "together", expires_in: float | None = 3600.0
    ) -> str:
        """A PLANNED execution with these calls, by the product's own stores."""
        execution_id = f"pay/id/{name}"
        due = datetime.now(UTC) - timedelta(seconds=100 - len(self.numbers))
        self.numbers.append(1)
        rows = [
            {
                "execution_id": execution_id,
                "strategy": "pay",
                "trigger_key": name,
                "input": None,
                "state": "PENDING",
                "due_at": due,
                "expires_at": None if expires_in is None else datetime.now(UTC) + timedelta(seconds=expires_in),
            }
        ]
        head = self.view().head
        account = self.turn.account
        with self.database.transaction() as tx:
            assert executions.insert(tx, rows) == [execution_id]
            revision = tx.exec_driver_sql(
                "SELECT revision FROM execution WHERE execution_id = %s", (execution_id,)
            ).scalar_one()
        intents = []
        for step, call in enumerate(calls):
            row = {
                "step": step,
                "once": None,
                "recipient": PAYEE,
                "creates": False,
                "value": 1,
                "data": b"",
                "access_list": (),
                "gas": 21_000,
                "label": None,
                **call,
            }
            digest = intent_digest(account.chain_id, account.address, row["recipient"], row["value"], row["data"], ())
            intents.append({"execution_id": execution_id, **row, "digest": digest})
        planned = {"execution_id": execution_id, "revision": revision, "plan_order": order, "steps": len(calls)}

        def write(held: Held) -> None:
            plans.insert(held, intents)
            executions.record_planned(held, [planned], head.number, head.hash)

        self.turn.record(write)
        return execution_id

    def reserve(self) -> int:
        return reserve.run(self.turn, self.client, self.view())

    def sign(self, *, halted: bool = False) -> int:
        return sign.run(self.turn, self.signer, self.view(), halted)

    def broadcast(self, *, halted: bool = False) -> int:
        return broadcast.run(self.turn, self.client, halted)

    def send(self) -> None:
        self.reserve()
        self.sign()
        self.broadcast()

    def settle(self) -> dict[str, str]:
        view = self.view()
        confirm.run(self.turn, self.client, view)
        return finalize.run(self.turn, self.client, view)

    def mine(self, blocks: int = 1) -> None:
        for _ in range(blocks):
            self.devnet.rpc("evm_mine")

    def finish(self) -> dict[str, str]:
        """Mine until everything sent is final."""
        self.mine(3)
        return self.settle()

    def state(self, execution_id: str) -> tuple[str, str | None]:
        row = self.one("SELECT state, reason FROM execution WHERE execution_id = %s", execution_id)
        return row[0], row[1]

    def rows(self, statement: str, *parameters: Any) -> Sequence[Any]:
        with self.database.read() as tx:
            return tx.exec_driver_sql(statement, parameters or None).all()

    def one(self, statement: str, *parameters: Any) -> Any:
        (row,) = self.rows(statement, *parameters)
        return row

    def with_policy(self, policy: Policy) -> None:
        self.turn = replace(self.turn, policy=policy)


@pytest.fixture(scope="module")
def devnet() -> Iterator[Devnet]:
    with start_devnet("--no-mining") as node:
        yield node


@pytest.fixture
def line(devnet: Devnet, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """An account that has been taken over and reconciled; nothing pends on the chain."""
    monkeypatch.setenv("STAGES_DATABASE", database_url.replace("postgresql+psycopg", "postgresql"))
    devnet.rpc("evm_mine")
    (tmp_path / "pay.py").write_text("def plan(ctx):\n    raise SystemExit\n")
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text(KEY)
    settings = config.parse(CONFIG.format(url=devnet.url, address=ADDRESS), tmp_path, environment=os.environ)
    database = Database(database_url, "stages")
    registration.claim(database, settings.service.name)
    registration.apply(database, settings)
    section = settings.accounts["treasury"]
    client = app.open_chain(settings, "local")
    policy = app.policy_of(section)
    signer = Signer(
        database.engine, {(31337, section.address): app.open_backend(section)}, {(31337, section.address): policy}
    )
    with database.transaction() as tx:
        (account,) = accounts.load(tx, ["treasury"])
        (lease,) = leases.acquire(tx, {account.account_id: 0}, {}, "stages", 600.0, 1)
    turn = Turn(
        database,
        account,
        policy,
        client.finality,
        tuple(client.labels),
        lease.token,
        lease.lease_id,
        inert,
        12.0,
        Random(0),
    )
    assert reconcile.run(turn, client, signer) is None
    yield Line(devnet, database, client, signer, turn)
    client.close()
    database.close()
