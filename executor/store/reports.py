"""What `status`, `accounts`, `executions` and `doctor` read: plain selects, nothing locked, nothing written."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from executor.database import Tx

_SERVER = text("""
SELECT i.service, i.epoch_min, i.epoch_max,
       pg_is_in_recovery() AS in_recovery, current_setting('server_version_num')::int AS version,
       current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       (SELECT array_agg(coalesce('role ' || nullif(s.setrole, 0)::regrole, 'database ' || d.datname) ORDER BY s.setrole)
          FROM pg_db_role_setting s JOIN pg_database d ON d.datname = current_database()
         WHERE s.setdatabase IN (0, d.oid) AND 'synchronous_commit=off' = ANY (s.setconfig)) AS commits_unsynchronised,
       clock_timestamp() AS now,
       (SELECT count(*) FROM worker WHERE stopped_at IS NULL AND seen_at BETWEEN clock_timestamp() - make_interval(secs => :ttl) AND clock_timestamp()) AS live_workers
  FROM installation i
""")
_STANDBY_NAMES = text("SELECT current_setting('synchronous_standby_names')")
_STANDBYS = text("""
SELECT application_name, sync_state FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup' ORDER BY application_name
""")
_ACCOUNTS = text("""
SELECT a.name, a.chain_id, a.address, a.state, a.reason, a.attention, l.token,
       CASE WHEN l.expires_at > clock_timestamp() THEN l.holder END AS holder,
       CASE WHEN l.expires_at > clock_timestamp() THEN l.expires_at END AS held_until,
       o.open_nonces, o.in_flight, a.max_in_flight,
       coalesce(greatest((SELECT max(nonce) FROM nonce_reservation r WHERE r.account_id = a.account_id),
                         (SELECT max(nonce) FROM acknowledged_nonce k WHERE k.account_id = a.account_id)) + 1, a.first_nonce) AS next_nonce,
       o.oldest_open, a.reconciled_at, CASE WHEN is_moved(a.timeline, a.system_identifier) THEN moved_why(a.timeline, a.system_identifier) END AS moved_why,
       (SELECT count(*) FROM execution e WHERE e.account_id = a.account_id AND e.state = 'PENDING') AS pending,
       (SELECT count(*) FROM execution e WHERE e.account_id = a.account_id AND e.state IN ('PLANNED', 'RUNNING')) AS working,
       (SELECT count(*) FROM execution e WHERE e.account_id = a.account_id AND e.state = 'PARKED') AS parked,
       (SELECT e.reason FROM execution e WHERE e.account_id = a.account_id AND e.reason IS NOT NULL
           AND (e.state IN ('PLANNED', 'RUNNING') OR (e.state = 'PENDING' AND e.planning_attempts > 0 AND e.due_at <= clock_timestamp()))
         ORDER BY e.due_at LIMIT 1) AS waits_for,
       (SELECT count(*) FROM refused_write w WHERE w.account_id = a.account_id AND w.at > clock_timestamp() - interval '1 day') AS refused_writes
  FROM account a JOIN lease l USING (account_id)
  CROSS JOIN LATERAL (
    SELECT count(*) AS open_nonces, min(r.nonce) AS oldest_open,
           count(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM attempt m WHERE (m.account_id, m.nonce) = (r.account_id, r.nonce) AND m.status = 'MINED')) AS in_flight
      FROM nonce_reservation r WHERE r.account_id = a.account_id AND r.state = 'OPEN') o
 ORDER BY a.name
""")
_STRATEGIES = text("""
SELECT s.name, a.name AS account, s.plan, s.schedule, s.every_seconds, s.timezone, s.revision, s.next_due_at, s.high_water_mark, s.paused_at, s.paused_why,
       s.retired_at, e.execution_id AS last_execution, e.state AS last_state, e.reason AS last_reason,
       (SELECT count(*) FROM execution x WHERE x.strategy = s.name AND x.state IN ('PENDING', 'PLANNED', 'RUNNING', 'PARKED')) AS live
  FROM strategy s JOIN account a USING (account_id)
  LEFT JOIN LATERAL (SELECT x.execution_id, x.state, x.reason FROM execution x WHERE x.strategy = s.name ORDER BY x.created_at DESC LIMIT 1) e ON true
 ORDER BY s.name
""")
_CLOCK = text("""
SELECT clock_timestamp() AS now, max_seen, anomalies, anomaly, anomaly_at, is_settled FROM clock_guard
""")
_LISTED = """
SELECT e.execution_id, e.strategy, a.name AS account, e.state, e.reason, e.due_at, e.created_at, e.ended_at, e.steps, e.steps_effective,
       (SELECT sum(c.gas_used * c.effective_gas_price + coalesce(c.l1_fee, 0)) FROM nonce_reservation r JOIN receipt c USING (account_id, nonce)
         WHERE r.execution_id = e.execution_id AND c.orphaned_at IS NULL) AS fees_wei
  FROM execution e JOIN account a USING (account_id)
"""
_EXECUTIONS = text(f"""{_LISTED}
 WHERE (CAST(:strategy AS text) IS NULL OR e.strategy = :strategy) AND (CAST(:state AS text) IS NULL OR e.state = :state)
 ORDER BY e.created_at DESC, e.execution_id DESC LIMIT :most
""")
_PARKED = text(f"{_LISTED} WHERE e.state = 'PARKED' ORDER BY e.due_at LIMIT :most")
_FAILED = text(f"""{_LISTED}
 WHERE e.state IN ('FAILED', 'REVERTED', 'PARTIAL') AND e.ended_at > clock_timestamp() - make_interval(secs => :seconds)
 ORDER BY e.ended_at DESC LIMIT :most
""")
_ORPHANED_PLANS = text(f"""{_LISTED} JOIN strategy s ON s.name = e.strategy
 WHERE e.state = 'PENDING' AND e.due_at <= clock_timestamp() AND e.revision <> s.revision ORDER BY e.due_at LIMIT :most
""")
_STARVED = text("""
SELECT s.name, count(*) AS missed FROM strategy s JOIN execution e ON e.strategy = s.name
 WHERE s.retired_at IS NULL AND s.paused_at IS NULL AND e.state = 'SKIPPED' AND e.reason LIKE 'start deadline%'
   AND e.created_at > coalesce((SELECT max(x.created_at) FROM execution x WHERE x.strategy = s.name
                                   AND x.state NOT IN ('SKIPPED', 'PENDING', 'PLANNED')), '-infinity')
 GROUP BY s.name HAVING count(*) >= :least ORDER BY s.name
""")
_REQUESTS = text("""
SELECT r.request_id, r.kind, coalesce(r.execution_id, r.strategy, a.name) AS subject, r.why, r.who, r.at
  FROM request r LEFT JOIN account a USING (account_id) WHERE r.answered_at IS NULL ORDER BY r.request_id
""")


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The database as its workers meet it. `commits_unsynchronised`: roles and databases that turn synchronous_commit off."""

    service: str | None
    epoch_min: int
    epoch_max: int
    in_recovery: bool
    version: int
    fsync: str
    full_page_writes: str
    synchronous_commit: str
    commits_unsynchronised: list[str] | None
    now: datetime
    live_workers: int


@dataclass(frozen=True, slots=True)
class StandbyReport:
    """A standby that is attached; `sync_state` is None where this role may not see it."""

    name: str
    sync_state: str | None


@dataclass(frozen=True, slots=True)
class AccountReport:
    """An account, who holds it, and what it has open. `in_flight` counts open nonces without a mined attempt (P18)."""

    name: str
    chain_id: int
    address: bytes
    state: str
    reason: str | None
    attention: str | None
    token: int
    holder: str | None
    held_until: datetime | None
    open_nonces: int
    in_flight: int
    max_in_flight: int
    next_nonce: int | None
    oldest_open: int | None
    reconciled_at: datetime | None
    moved_why: str | None
    pending: int
    working: int
    parked: int
    waits_for: str | None
    refused_writes: int


@dataclass(frozen=True, slots=True)
class StrategyReport:
    """A strategy, its next slot and its newest execution."""

    name: str
    account: str
    plan: str
    schedule: str | None
    every_seconds: float | None
    timezone: str
    revision: str
    next_due_at: datetime | None
    high_water_mark: datetime
    paused_at: datetime | None
    paused_why: str | None
    retired_at: datetime | None
    last_execution: str | None
    last_state: str | None
    last_reason: str | None
    live: int


@dataclass(frozen=True, slots=True)
class ClockReport:
    """The database's clock, the newest instant a worker believed, and the last step that one saw, if any."""

    now: datetime
    max_seen: datetime
    anomalies: int
    anomaly: str | None
    anomaly_at: datetime | None
    is_settled: bool


@dataclass(frozen=True, slots=True)
class ExecutionReport:
    """One line about an execution; `fees_wei` is what its transactions cost beside their values."""

    execution_id: str
    strategy: str
    account: str
    state: str
    reason: str | None
    due_at: datetime
    created_at: datetime
    ended_at: datetime | None
    steps: int | None
    steps_effective: int | None
    fees_wei: int | None


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A request nobody has answered yet."""

    request_id: int
    kind: str
    subject: str
    why: str
    who: str
    at: datetime


def server(tx: Tx, ttl_seconds: float) -> ServerReport:
    """The server's settings, and the workers seen within `ttl_seconds`."""
    return ServerReport(*tx.execute(_SERVER, {"ttl": ttl_seconds}).one())


def clock(tx: Tx) -> ClockReport:
    """What the workers have noted about the database's clock."""
    return ClockReport(*tx.execute(_CLOCK).one())


def accounts(tx: Tx) -> list[AccountReport]:
    """All accounts by name."""
    return [AccountReport(*row) for row in tx.execute(_ACCOUNTS)]


def standbys(tx: Tx) -> tuple[str, list[StandbyReport]]:
    """`synchronous_standby_names`, and the standbys that are attached."""
    names = str(tx.execute(_STANDBY_NAMES).scalar_one())
    return names, [StandbyReport(row.application_name, row.sync_state) for row in tx.execute(_STANDBYS)]


def strategies(tx: Tx) -> list[StrategyReport]:
    """All strategies by name, retired ones too."""
    return [StrategyReport(*row) for row in tx.execute(_STRATEGIES)]


def executions(tx: Tx, strategy: str | None, state: str | None, most: int) -> list[ExecutionReport]:
    """The newest executions, of one strategy or in one state where these are given."""
    rows = tx.execute(_EXECUTIONS, {"strategy": strategy, "state": state, "most": most})
    return [ExecutionReport(*row) for row in rows]


def parked(tx: Tx, most: int) -> list[ExecutionReport]:
    """Executions that wait for an operator's decision, oldest first."""
    return [ExecutionReport(*row) for row in tx.execute(_PARKED, {"most": most})]


def failed(tx: Tx, seconds: float, most: int) -> list[ExecutionReport]:
    """Executions that ended without their whole effect within the last `seconds`."""
    return [ExecutionReport(*row) for row in tx.execute(_FAILED, {"seconds": seconds, "most": most})]


def orphaned_plans(tx: Tx, most: int) -> list[ExecutionReport]:
    """Due executions of a revision that is no longer registered: no worker plans them."""
    return [ExecutionReport(*row) for row in tx.execute(_ORPHANED_PLANS, {"most": most})]


def starved(tx: Tx, least: int) -> list[tuple[str, int]]:
    """Strategies that missed the start deadline `least` times or more and have begun nothing since; how often."""
    return [(row.name, row.missed) for row in tx.execute(_STARVED, {"least": least})]


def requests(tx: Tx) -> list[RequestReport]:
    """Requests that wait for the holder of their account."""
    return [RequestReport(*row) for row in tx.execute(_REQUESTS)]
