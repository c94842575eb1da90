"""Legal rows for tests: each is written the way a holder writes it, under hold, one short transaction each."""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from eth_hash.auto import keccak

from chain.transaction import AccessList, cancel_digest, intent_digest

EPOCH = 2
ADDRESS = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
PAYEE = bytes.fromhex("70997970c51812dc3a010c7d01b50e0d17dc79c8")
FIRST_SLOT = datetime(2026, 9, 2, 10, 0, tzinfo=UTC)
BLOCK = keccak(b"a block")


@dataclass(frozen=True, slots=True)
class Lane:
    """An account and the lease generation this test holds it with."""

    account_id: int
    chain_id: int
    address: bytes
    token: int
    lease_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class Call:
    """One wanted call, before it is a row."""

    recipient: bytes | None = PAYEE
    value: int = 1
    data: bytes = b""
    access_list: AccessList = ()
    once: str | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where a transaction stands on chain."""

    number: int = 10
    hash: bytes = BLOCK
    status: int = 1
    gas_used: int = 21_000
    price: int = 10


class Rows:
    """Writes rows through one autocommit connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._slots = 0

    def run(self, sql: str, *parameters: object) -> int:
        """Execute one statement; how many rows it touched."""
        return self.connection.execute(sql, parameters or None).rowcount

    def value(self, sql: str, *parameters: object) -> Any:
        """The first column of the first row."""
        row = self.connection.execute(sql, parameters or None).fetchone()
        return None if row is None else row[0]

    def account(
        self, name: str = "treasury", *, address: bytes = ADDRESS, chain_id: int = 31337, first_nonce: int = 0
    ) -> Lane:
        """A new open account with its lease taken."""
        account_id = self.value(
            "INSERT INTO account (name, chain_id, address, cancel_digest, timeline, max_in_flight)"
            " VALUES (%s, %s, %s, %s, current_timeline(), 16) RETURNING account_id",
            name,
            chain_id,
            address,
            cancel_digest(chain_id, address),
        )
        self.run("INSERT INTO lease (account_id, lease_id) VALUES (%s, %s)", account_id, uuid.uuid4())
        lane = self.take_over(Lane(account_id, chain_id, address, 0, uuid.uuid4()))
        with self.held(lane):
            self.run("UPDATE account SET first_nonce = %s WHERE account_id = %s", first_nonce, account_id)
        return lane

    def take_over(self, lane: Lane, holder: str = "worker") -> Lane:
        """The next generation of the lease, as an acquisition makes it."""
        lease_id = uuid.uuid4()
        with self.connection.transaction():
            self.run("SELECT 1 FROM lease WHERE account_id = %s FOR UPDATE", lane.account_id)
            token = self.value(
                "UPDATE lease l SET token = 1 + greatest(l.token, a.fence), lease_id = %s, holder = %s,"
                " acquired_at = clock_timestamp(), renewed_at = clock_timestamp(), expires_at = clock_timestamp() + '30 s'"
                " FROM account a WHERE a.account_id = l.account_id AND l.account_id = %s RETURNING l.token",
                lease_id,
                holder,
                lane.account_id,
            )
            self.run(
                "INSERT INTO lease_generation (account_id, token, lease_id, holder) VALUES (%s, %s, %s, %s)",
                lane.account_id,
                token,
                lease_id,
                holder,
            )
        return replace(lane, token=token, lease_id=lease_id)

    def hold(self, lane: Lane) -> str:
        """Call hold inside the transaction that is open."""
        return str(self.value("SELECT hold(%s, %s, %s, %s)", lane.account_id, lane.token, lane.lease_id, EPOCH))

    @contextmanager
    def held(self, lane: Lane) -> Iterator[None]:
        """One record transaction."""
        with self.connection.transaction():
            self.hold(lane)
            yield

    def strategy(self, lane: Lane, name: str = "payroll") -> str:
        """A registered strategy whose high-water mark is far ahead of every slot made here."""
        self.run(
            "INSERT INTO strategy (name, account_id, plan, schedule, timezone, misfire, overlap, params, revision,"
            " high_water_mark) VALUES (%s, %s, 'm:plan', '0 10 * * *', 'UTC', 'latest', 'skip', '{}', 'r1', %s)",
            name,
            lane.account_id,
            FIRST_SLOT + timedelta(days=40_000),
        )
        return name

    def pending(self, lane: Lane, strategy: str = "payroll", *, key: str | None = None) -> str:
        """An execution of the next slot, or of a trigger with a key."""
        slot = None if key is not None else FIRST_SLOT + timedelta(days=self._slots)
        self._slots += key is None
        execution_id = f"{strategy}/id/{key}" if slot is None else f"{strategy}/{slot:%Y-%m-%dT%H:%MZ}"
        self.run(
            "INSERT INTO execution (execution_id, strategy, slot, trigger_key, account_id, revision, payload_digest, state,"
            " due_at) VALUES (%s, %s, %s, %s, %s, 'r1', %s, 'PENDING', %s)",
            execution_id,
            strategy,
            slot,
            key,
            lane.account_id,
            keccak(b"payload"),
            slot or FIRST_SLOT,
        )
        return execution_id

    def intents(self, lane: Lane, execution_id: str, calls: Sequence[Call]) -> None:
        """The intents of a plan, inside a transaction that holds."""
        for step, call in enumerate(calls):
            self.run(
                "INSERT INTO intent (execution_id, step, account_id, once, recipient, creates, value, data, access_list, digest,"
                " token) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                execution_id,
                step,
                lane.account_id,
                call.once,
                call.recipient,
                call.recipient is None,
                call.value,
                call.data,
                json.dumps([["0x" + a.hex(), ["0x" + k.hex() for k in keys]] for a, keys in call.access_list]),
                intent_digest(lane.chain_id, lane.address, call.recipient, call.value, call.data, call.access_list),
                lane.token,
            )

    def plan(self, lane: Lane, execution_id: str, calls: Sequence[Call] = (Call(),), order: str = "together") -> None:
        """PENDING → PLANNED."""
        with self.held(lane):
            self.intents(lane, execution_id, calls)
            self.run(
                "UPDATE execution SET state = 'PLANNED', steps = %s, plan_order = %s, planned_at = clock_timestamp(),"
                " token = %s WHERE execution_id = %s",
                len(calls),
                order,
                lane.token,
                execution_id,
            )

    def reserve(self, lane: Lane, execution_id: str, steps: Sequence[int] | None = None, kind: int = 2) -> list[int]:
        """PLANNED → RUNNING: the next nonces for these steps (all by default), each with a SEND draft."""
        with self.held(lane):
            if steps is None:
                steps = range(self.value("SELECT steps FROM execution WHERE execution_id = %s", execution_id))
            nonces = [self.reserve_step(lane, execution_id, step, kind) for step in steps]
            for nonce in nonces:
                self.draft(lane, nonce)
            self.run(
                "UPDATE execution SET state = 'RUNNING' WHERE execution_id = %s AND state = 'PLANNED'", execution_id
            )
        return nonces

    def next_nonce(self, lane: Lane) -> int:
        """The nonce that is reserved next."""
        return int(
            self.value(
                "SELECT coalesce((SELECT max(nonce) + 1 FROM nonce_reservation WHERE account_id = a.account_id), first_nonce)"
                " FROM account a WHERE account_id = %s",
                lane.account_id,
            )
        )

    def reserve_step(self, lane: Lane, execution_id: str, step: int = 0, kind: int = 2) -> int:
        """One reservation, inside a transaction that holds."""
        nonce = self.next_nonce(lane)
        self.run(
            "INSERT INTO nonce_reservation (account_id, nonce, execution_id, step, intent_digest, once, transaction_type, token)"
            " SELECT account_id, %s, execution_id, step, digest, once, %s, %s FROM intent WHERE execution_id = %s AND step = %s",
            nonce,
            kind,
            lane.token,
            execution_id,
            step,
        )
        return nonce

    def draft(
        self, lane: Lane, nonce: int, seq: int = 0, kind: str = "SEND", fees: tuple[int, int, int] = (21_000, 100, 10)
    ) -> None:
        """A DRAFT attempt with (gas, max fee, tip), inside a transaction that holds."""
        self.run(
            "INSERT INTO attempt (account_id, nonce, seq, kind, intent_digest, cancel_digest, gas, max_fee, tip, token)"
            " SELECT n.account_id, n.nonce, %s, %s, CASE WHEN %s THEN NULL ELSE n.intent_digest END,"
            " CASE WHEN %s THEN a.cancel_digest END, %s, %s, %s, %s"
            " FROM nonce_reservation n JOIN account a USING (account_id) WHERE n.account_id = %s AND n.nonce = %s",
            seq,
            kind,
            kind == "CANCEL",
            kind == "CANCEL",
            *fees,
            lane.token,
            lane.account_id,
            nonce,
        )
