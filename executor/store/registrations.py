"""What `apply` and `migrate` write: whose database this is, its accounts with their lease rows, its strategies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import text

from executor.database import Tx, expect

_APPLYING = text("SELECT set_config('lock_timeout', '10s', true), pg_advisory_xact_lock(hashtext('fenced apply'))")
_NOW = text("SELECT clock_timestamp()")
_NOTIFY = text("NOTIFY fenced")
_SERVICE = text("SELECT service FROM installation")
_CLAIM = text("UPDATE installation SET service = :service WHERE service IS NULL")
_ACCOUNTS = text("""
SELECT a.account_id, a.name, a.chain_id, a.address, a.max_in_flight,
       (SELECT count(*) FROM nonce_reservation r WHERE r.account_id = a.account_id AND r.state = 'OPEN') AS open_nonces
  FROM account a ORDER BY a.name
""")
_NEW_ACCOUNT = text("""
INSERT INTO account (name, chain_id, address, cancel_digest, timeline, max_in_flight)
VALUES (:name, :chain_id, :address, :cancel_digest, (SELECT timeline FROM installation), :max_in_flight) RETURNING account_id
""")
_NEW_LEASE = text("INSERT INTO lease (account_id, lease_id) VALUES (:account, gen_random_uuid())")
_IN_FLIGHT = text("UPDATE account SET max_in_flight = :most WHERE account_id = :account")
_COLUMNS = (
    "account_id, plan, schedule, every_seconds, timezone, misfire, overlap, start_deadline_seconds, inclusion_deadline_seconds, "
    "params, input, revision"
)
_STRATEGIES = text(f"""
SELECT name, high_water_mark, paused_at IS NOT NULL AS paused, retired_at IS NOT NULL AS retired, {_COLUMNS}
  FROM strategy ORDER BY name FOR NO KEY UPDATE
""")
_VALUES = (
    ":account_id, :plan, :schedule, :every_seconds, :timezone, :misfire, :overlap, :start_deadline_seconds, "
    ":inclusion_deadline_seconds, CAST(:params AS jsonb), CAST(:input AS jsonb), :revision"
)
_NEW_STRATEGY = text(f"""
INSERT INTO strategy (name, high_water_mark, next_due_at, {_COLUMNS}) VALUES (:name, :mark, :next_due_at, {_VALUES})
""")
_CHANGE = text(f"""
UPDATE strategy SET ({_COLUMNS}) = ({_VALUES}), high_water_mark = greatest(high_water_mark, :mark), next_due_at = :next_due_at,
       retired_at = NULL
 WHERE name = :name
""")
_INPUT = text("UPDATE strategy SET input = CAST(:input AS jsonb) WHERE name = :name")
_PENDING = text("SELECT count(*) FROM execution WHERE strategy = :name AND state = 'PENDING'")
_RETIRE = text("UPDATE strategy SET retired_at = clock_timestamp() WHERE name = :name AND retired_at IS NULL")


@dataclass(frozen=True, slots=True)
class RegisteredAccount:
    """An account that has rows."""

    account_id: int
    name: str
    chain_id: int
    address: bytes
    max_in_flight: int
    open_nonces: int


@dataclass(frozen=True, slots=True)
class Settings:
    """What the configuration says about one strategy, as its row keeps it."""

    account_id: int
    plan: str
    schedule: str | None
    every_seconds: float | None
    timezone: str
    misfire: str
    overlap: str
    start_deadline_seconds: float | None
    inclusion_deadline_seconds: float | None
    params: Any
    input: Any
    revision: str


@dataclass(frozen=True, slots=True)
class RegisteredStrategy:
    """A strategy that has a row, retired or not."""

    name: str
    high_water_mark: datetime
    paused: bool
    retired: bool
    settings: Settings


def service(tx: Tx) -> str | None:
    """The service this database belongs to, None before the first `migrate` of one."""
    found: str | None = tx.scalar(_SERVICE)
    return found


def claim(tx: Tx, name: str) -> bool:
    """Give the database to the service `name` if it belongs to none; whether it did not before."""
    return tx.execute(_CLAIM, {"service": name}).rowcount == 1


def begin_apply(tx: Tx) -> datetime:
    """Wait for another apply to end, ten seconds at most; the database's clock after that."""
    tx.execute(_APPLYING)
    now: datetime = tx.execute(_NOW).scalar_one()
    return now


def notify(tx: Tx) -> None:
    """Wake the workers: a hint that rows have changed, polling is the truth."""
    tx.execute(_NOTIFY)


def accounts(tx: Tx) -> dict[str, RegisteredAccount]:
    """All accounts by name."""
    return {row.name: RegisteredAccount(*row) for row in tx.execute(_ACCOUNTS)}


def insert_account(tx: Tx, name: str, chain_id: int, address: bytes, cancel_digest: bytes, max_in_flight: int) -> int:
    """A new account and its lease row; its id."""
    new = {
        "name": name,
        "chain_id": chain_id,
        "address": address,
        "cancel_digest": cancel_digest,
        "max_in_flight": max_in_flight,
    }
    account_id = int(tx.execute(_NEW_ACCOUNT, new).scalar_one())
    tx.execute(_NEW_LEASE, {"account": account_id})
    return account_id


def change_max_in_flight(tx: Tx, account_id: int, most: int) -> None:
    """How many nonces the account may have in flight from now on."""
    expect(tx.execute(_IN_FLIGHT, {"account": account_id, "most": most}).rowcount, 1, "account")


def strategies(tx: Tx) -> dict[str, RegisteredStrategy]:
    """All strategies by name, locked until the transaction ends."""
    names = [field.name for field in fields(Settings)]
    found = {}
    for row in tx.execute(_STRATEGIES).mappings():
        settings = Settings(**{name: row[name] for name in names})
        found[row["name"]] = RegisteredStrategy(
            row["name"], row["high_water_mark"], row["paused"], row["retired"], settings
        )
    return found


def insert_strategy(tx: Tx, name: str, settings: Settings, mark: datetime, next_due_at: datetime | None) -> None:
    """A new strategy; slots at or below `mark` are never looked at."""
    tx.execute(_NEW_STRATEGY, {"name": name, "mark": mark, "next_due_at": next_due_at, **_bound(settings)})


def change_strategy(tx: Tx, name: str, settings: Settings, mark: datetime, next_due_at: datetime | None) -> None:
    """Other settings from now on; the high-water mark grows to `mark` and a retired strategy comes back."""
    bound = {"name": name, "mark": mark, "next_due_at": next_due_at, **_bound(settings)}
    expect(tx.execute(_CHANGE, bound).rowcount, 1, f"strategy {name}")


def change_input(tx: Tx, name: str, settings: Settings) -> None:
    """Another input for the executions made from now on; the revision stays."""
    expect(tx.execute(_INPUT, {"name": name, "input": _bound(settings)["input"]}).rowcount, 1, f"strategy {name}")


def pending(tx: Tx, name: str) -> int:
    """How many executions of the strategy wait for a plan."""
    return int(tx.execute(_PENDING, {"name": name}).scalar_one())


def retire(tx: Tx, name: str) -> None:
    """A strategy without new slots; its row stays, so that its name never comes back with a lower mark (P20)."""
    expect(tx.execute(_RETIRE, {"name": name}).rowcount, 1, f"strategy {name}")


def _bound(settings: Settings) -> Mapping[str, Any]:
    bound: dict[str, Any] = {field.name: getattr(settings, field.name) for field in fields(Settings)}
    bound["params"] = json.dumps(settings.params)
    bound["input"] = None if settings.input is None else json.dumps(settings.input)
    return bound
