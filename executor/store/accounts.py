"""The account rows: what an account is, its state, and evidence about refused writes."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text

from executor.database import Held, Tx, expect
from executor.records import Account

_COLUMNS = (
    "account_id, name, chain_id, address, cancel_digest, genesis_hash, first_nonce, state, reason, attention, max_in_flight, "
    "is_moved(timeline, system_identifier) AS is_rewound"
)
_LOAD = text(f"SELECT {_COLUMNS} FROM account WHERE name = ANY(:names) ORDER BY account_id")
_GET = text(f"SELECT {_COLUMNS} FROM account WHERE account_id = :account")
_WORK = text("""
SELECT a.account_id FROM account a WHERE a.account_id = ANY(:accounts)
   AND (EXISTS (SELECT 1 FROM execution e WHERE e.account_id = a.account_id AND e.state IN ('PLANNED', 'RUNNING'))
        OR EXISTS (SELECT 1 FROM request r WHERE r.account_id = a.account_id AND r.answered_at IS NULL)
        OR (a.state <> 'halted' AND is_moved(a.timeline, a.system_identifier)))
""")
_SEED = text("""
UPDATE account SET genesis_hash = coalesce(genesis_hash, :genesis), first_nonce = coalesce(first_nonce, :first_nonce),
       reconciled_at = clock_timestamp() WHERE account_id = :account
""")
_HALT = text("UPDATE account SET state = 'halted', reason = :reason WHERE account_id = :account AND state <> 'halted'")
_DRAIN = text("UPDATE account SET state = 'draining', reason = :reason WHERE account_id = :account AND state = 'open'")
_HALT_MOVED = text("""
UPDATE account SET state = 'halted', reason = moved_why(timeline, system_identifier)
 WHERE account_id = ANY(:accounts) AND state <> 'halted' AND is_moved(timeline, system_identifier) RETURNING name, reason
""")
_OPEN = text("""
UPDATE account SET state = 'open', reason = NULL, attention = NULL WHERE account_id = :account
""")
_REOPEN = text("""
UPDATE account SET state = 'open', reason = NULL, attention = NULL, timeline = current_timeline(),
       system_identifier = current_system_identifier(), reopened_at = greatest(reopened_at, :until) WHERE account_id = :account
""")
# New accounts begin under this identity: while another account is not reopened yet, they wait for their reopening too.
_SETTLED = text("""
UPDATE installation SET timeline = current_timeline(), system_identifier = current_system_identifier()
 WHERE is_moved(timeline, system_identifier)
   AND NOT EXISTS (SELECT 1 FROM account a WHERE is_moved(a.timeline, a.system_identifier))
""")
_ATTENTION = text(
    "UPDATE account SET attention = :attention WHERE account_id = :account AND attention IS DISTINCT FROM :attention"
)
_REFUSED = text("""
INSERT INTO refused_write (account_id, constraint_name, stage, token, worker, detail)
VALUES (:account, :constraint, :stage, :token, :worker, :detail)
""")


def load(tx: Tx, names: Sequence[str]) -> list[Account]:
    """The accounts of these configuration names."""
    return [Account(*row) for row in tx.execute(_LOAD, {"names": list(names)})]


def get(tx: Tx, account_id: int) -> Account:
    """One account as it stands now."""
    return Account(*tx.execute(_GET, {"account": account_id}).one())


def with_work(tx: Tx, account_ids: Sequence[int]) -> list[int]:
    """Those of `account_ids` that have something to reserve, send, watch or answer; idle accounts cost nothing more."""
    return list(tx.execute(_WORK, {"accounts": list(account_ids)}).scalars())


def record_reconciled(held: Held, genesis: bytes, first_nonce: int) -> None:
    """Note a passed reconcile; genesis and first nonce are written once and never change."""
    expect(
        held.tx.execute(_SEED, {"account": held.account_id, "genesis": genesis, "first_nonce": first_nonce}).rowcount,
        1,
        "account",
    )


def halt(tx: Tx, account_id: int, reason: str) -> bool:
    """Stop an account (P16). Needs no fence: it only ever stops work (P21). False when it was halted already."""
    return tx.execute(_HALT, {"account": account_id, "reason": reason[:500]}).rowcount == 1


def drain(tx: Tx, account_id: int, reason: str) -> bool:
    """Let an account finish what is reserved and reserve nothing new."""
    return tx.execute(_DRAIN, {"account": account_id, "reason": reason[:500]}).rowcount == 1


def halt_moved(tx: Tx, account_ids: Sequence[int]) -> list[tuple[str, str]]:
    """Stop those of the accounts that were last opened on another timeline or in another cluster (P13); name and reason of each."""
    return [(row.name, row.reason) for row in tx.execute(_HALT_MOVED, {"accounts": list(account_ids)})]


def record_opened(held: Held) -> None:
    """Open an account again; its holder does this after a passed reconcile, where nothing was rewound."""
    expect(held.tx.execute(_OPEN, {"account": held.account_id}).rowcount, 1, "account")


def record_reopened(held: Held, until: datetime) -> None:
    """Open an account after a rewind, under the database's present identity: what was due up to `until` runs by release only."""
    expect(held.tx.execute(_REOPEN, {"account": held.account_id, "until": until}).rowcount, 1, "account")
    held.tx.execute(_SETTLED)


def note_attention(tx: Tx, account_id: int, attention: str | None) -> None:
    """What a person should look at; shown by status, decides nothing."""
    tx.execute(_ATTENTION, {"account": account_id, "attention": attention and attention[:500]})


def note_refused(tx: Tx, account_id: int, constraint: str, stage: str, token: int, worker: str, detail: str) -> None:
    """Evidence of a write the database refused."""
    tx.execute(
        _REFUSED,
        {
            "account": account_id,
            "constraint": constraint,
            "stage": stage,
            "token": token,
            "worker": worker,
            "detail": detail[:500],
        },
    )
