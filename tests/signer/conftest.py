"""A signer over a real journal: the schema from the migration's own files, in a database of its own."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from chain.transaction import UnsignedTransaction, cancel_digest, intent_digest
from signer.key import Key
from signer.policy import Policy
from signer.request import Fence, Kind, SignRequest
from signer.service import Signer
from tests.support.postgres import empty_database, postgres_server  # noqa: F401  (fixtures)

CHAIN_ID = 31337
GWEI = 10**9
LEASE = uuid.UUID(int=1)
SQL = Path(__file__).parents[2] / "migrations" / "sql" / "0001"


class LocalKey:
    """A backend over a key in memory; the count tells how often the key was touched."""

    def __init__(self, secret: bytes = b"\x07" * 32) -> None:
        self.key = Key(secret)
        self.touched = 0

    @property
    def address(self) -> bytes:
        return self.key.address

    def sign(self, transaction: UnsignedTransaction) -> bytes:
        self.touched += 1
        return self.key.sign(transaction)


@dataclass
class World:
    """One account with its journal; `signer` may be replaced by further ones over the same rows."""

    engine: Engine
    key: LocalKey
    signer: Signer
    policy: Policy

    @property
    def address(self) -> bytes:
        return self.key.address

    def another(self, crash: Callable[[str], None] = lambda _: None, key: Any = None) -> Signer:
        account = (CHAIN_ID, self.address)
        return Signer(self.engine, {account: key or self.key}, {account: self.policy}, crash=crash)

    def fence(self, token: int = 1, lease_id: uuid.UUID = LEASE) -> Fence:
        return Fence(CHAIN_ID, self.address, token, lease_id)

    def request(
        self, kind: Kind = Kind.SEND, nonce: int = 0, execution: str = "pay/1", step: int = 0, **fields: Any
    ) -> SignRequest:
        transaction = UnsignedTransaction(
            **{
                "chain_id": CHAIN_ID,
                "nonce": nonce,
                "type": 2,
                "to": b"\x11" * 20,
                "value_wei": 5,
                "data": b"",
                "gas": 50_000,
                "max_fee_wei": 10 * GWEI,
                "tip_wei": GWEI,
            }
            | fields
        )
        digest = intent_digest(
            CHAIN_ID,
            self.address,
            transaction.to,
            transaction.value_wei,
            transaction.data,
            transaction.access_list,
        )
        if kind is Kind.CANCEL:
            transaction = replace(transaction, to=self.address, value_wei=0, data=b"", gas=21_000)
            digest = cancel_digest(CHAIN_ID, self.address)
        return SignRequest(execution, step, kind, transaction, digest)


@pytest.fixture
def world(empty_database: str) -> Iterator[World]:  # noqa: F811
    engine = create_engine(empty_database, pool_size=20)
    with engine.begin() as connection:
        for name in ("signer_tables", "signer_functions", "signer_triggers"):
            connection.exec_driver_sql((SQL / f"{name}.sql").read_text())
    key, policy = LocalKey(), Policy()
    account = (CHAIN_ID, key.address)
    yield World(engine, key, Signer(engine, {account: key}, {account: policy}), policy)
    engine.dispose()
