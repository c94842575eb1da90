"""What the rows and the node say, asked apart from each other so that one can be held against the other."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from chain.rpc import Rpc
from executor.database import Database

_HOLDER = text("SELECT holder FROM lease WHERE expires_at > clock_timestamp()")
_READY = text("SELECT EXISTS (SELECT 1 FROM worker WHERE name = :name)")
_LINES = text("""
SELECT e.execution_id, e.slot, e.strategy, e.state, e.reason, r.nonce, a.hash, a.raw, a.status, c.block_number,
       p.holder AS planned_by, g.holder AS signed_by, g.token AS signed_token, s.holder AS sent_by
  FROM execution e
  LEFT JOIN nonce_reservation r USING (execution_id)
  LEFT JOIN attempt a ON (a.account_id, a.nonce) = (r.account_id, r.nonce) AND a.seq = 0
  LEFT JOIN receipt c ON (c.account_id, c.nonce, c.seq) = (a.account_id, a.nonce, a.seq) AND c.orphaned_at IS NULL
  LEFT JOIN lease_generation p ON (p.account_id, p.token) = (e.account_id, e.token)
  LEFT JOIN lease_generation g ON (g.account_id, g.token) = (a.account_id, a.signed_token)
  LEFT JOIN lease_generation s ON (s.account_id, s.token) = (a.account_id, a.sent_token)
 ORDER BY e.slot, r.nonce, e.strategy
""")
_REFUSALS = text("SELECT worker, constraint_name, stage, token, detail FROM refused_write ORDER BY refused_id")
_LIVE = text("SELECT count(*) FROM execution WHERE state IN ('PENDING', 'PLANNED', 'RUNNING')")
_BALANCE_OF = "0x70a08231"


@dataclass(frozen=True, slots=True)
class Line:
    """One execution with its transaction, as the rows have it."""

    execution_id: str
    slot: datetime
    strategy: str
    state: str
    reason: str | None
    nonce: int | None
    hash: bytes | None
    raw: bytes | None
    status: str | None
    block_number: int | None
    planned_by: str | None
    signed_by: str | None
    signed_token: int | None
    sent_by: str | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A stale write that the database refused."""

    worker: str
    constraint: str
    stage: str
    token: int
    detail: str


class Rows:
    """The database's side."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def holder(self) -> str | None:
        """The name of who holds the wallet's lease now."""
        with self._database.read() as tx:
            found: str | None = tx.scalar(_HOLDER)
        return found

    def ready(self, name: str) -> bool:
        """Whether a worker of this name has come up."""
        with self._database.read() as tx:
            return bool(tx.scalar(_READY, {"name": name}))

    def lines(self) -> list[Line]:
        """Every execution, in the order of slots."""
        with self._database.read() as tx:
            return [Line(*row) for row in tx.execute(_LINES)]

    def refusals(self) -> list[Refusal]:
        """Every refused write, in order."""
        with self._database.read() as tx:
            return [Refusal(*row) for row in tx.execute(_REFUSALS)]

    def live(self) -> int:
        """How many executions have not ended."""
        with self._database.read() as tx:
            return int(tx.scalar(_LIVE) or 0)


class Ledger:
    """The node's side: everything it was ever handed, and what people own."""

    def __init__(self, rpc: Rpc, wallet: str) -> None:
        self._rpc, self._wallet = rpc, wallet

    def received(self) -> Mapping[int, Sequence[bytes]]:
        """By nonce, the raw transactions of the wallet as they arrived, repeats included."""
        found: dict[int, list[bytes]] = defaultdict(list)
        for item in self._rpc.call("devnet_submissions", [{"sender": self._wallet}]):
            found[int(item["nonce"], 16)].append(bytes.fromhex(item["raw"][2:]))
        return found

    def balance(self, address: str) -> int:
        """What an address has, in wei."""
        return int(self._rpc.call("eth_getBalance", [address, "latest"]), 16)

    def tokens(self, token: str, address: str) -> int:
        """What an address has of the token, in smallest units."""
        data = _BALANCE_OF + address[2:].lower().rjust(64, "0")
        return int(self._rpc.call("eth_call", [{"to": token, "data": data}, "latest"]), 16)
