"""The lease rows: who may work for an account now (P10, P11). Lease time is the database's clock inside each statement.

That clock may be set back, and then leases lie in the future. One whose renewal lies there, and that stayed unchanged while
the asking worker counted its whole length, is free too: its holder has neither renewed nor released it. To take it is safe
whatever the clocks say, because identity is the fence and time only decides when somebody may try (P8).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import text

from executor.database import Rows, Tx
from executor.records import Lease

REWOUND_TOKENS = 1_000_000
"""How far a token jumps over those that a rewound database may have forgotten: none of them comes back [B95]."""
_FLOORS = Rows(account_id="int", floor="bigint", free_for="float8", unchanged="timestamptz")
# An account whose row a stranger has locked is passed over: the foreign key of its new generation would wait for it, and
# all the others with it [B97].
_ACQUIRE = text(f"""
WITH wanted AS (SELECT * FROM {_FLOORS.sql}),
free AS (
  SELECT l.account_id FROM lease l JOIN account a USING (account_id) JOIN wanted w USING (account_id)
   WHERE (l.expires_at <= (SELECT clock_timestamp()) - make_interval(secs => w.free_for) OR l.renewed_at = w.unchanged)
   ORDER BY l.account_id LIMIT :most FOR UPDATE OF l SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED),
taken AS (
  UPDATE lease l SET token = 1 + greatest(l.token, a.fence, w.floor)
           + CASE WHEN is_moved(a.timeline, a.system_identifier) THEN {REWOUND_TOKENS} ELSE 0 END, lease_id = gen_random_uuid(), holder = :holder,
         acquired_at = clock_timestamp(), renewed_at = clock_timestamp(),
         expires_at = clock_timestamp() + make_interval(secs => :ttl)
    FROM free JOIN account a USING (account_id) JOIN wanted w USING (account_id)
   WHERE l.account_id = free.account_id
  RETURNING l.account_id, l.token, l.lease_id)
INSERT INTO lease_generation (account_id, token, lease_id, holder)
SELECT account_id, token, lease_id, :holder FROM taken RETURNING account_id, token, lease_id
""")

_TAKEABLE = text("""
SELECT account_id, CASE WHEN expires_at > now THEN renewed_at END AS ahead,
       CASE WHEN expires_at > now THEN CAST(extract(epoch FROM expires_at - renewed_at) AS float8) ELSE 0 END AS length_seconds
  FROM lease, (SELECT clock_timestamp() AS now OFFSET 0) c
 WHERE account_id = ANY(:accounts) AND (expires_at <= now OR renewed_at > now)
""")
_HELD = Rows(account_id="int", token="bigint", lease_id="uuid")
_RENEW = text(f"""
WITH mine AS (
  SELECT l.account_id FROM lease l JOIN {_HELD.sql} USING (account_id, token, lease_id)
   WHERE l.expires_at > clock_timestamp() ORDER BY l.account_id FOR NO KEY UPDATE OF l SKIP LOCKED)
UPDATE lease l SET renewed_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => :ttl)
  FROM mine WHERE l.account_id = mine.account_id RETURNING l.account_id
""")
_STANDING = text(f"""
SELECT l.account_id FROM lease l JOIN {_HELD.sql} USING (account_id, token, lease_id) WHERE l.expires_at > clock_timestamp()
""")
_RELEASE = text(f"""
UPDATE lease l SET lease_id = gen_random_uuid(), holder = NULL, expires_at = clock_timestamp()
  FROM {_HELD.sql} WHERE (l.account_id, l.token, l.lease_id) = (r.account_id, r.token, r.lease_id)
""")


@dataclass(frozen=True, slots=True)
class Takeable:
    """An account that is free, or (`ahead`, when it was renewed) whose lease of `length_seconds` lies in the future."""

    account_id: int
    ahead: datetime | None
    length_seconds: float


def select_takeable(tx: Tx, account_ids: Sequence[int]) -> list[Takeable]:
    """Those of `account_ids` nobody holds now, and those that only the clock says are held; a look, not a claim."""
    return [Takeable(*row) for row in tx.execute(_TAKEABLE, {"accounts": list(account_ids)})]


def acquire(
    tx: Tx,
    floors: Mapping[int, int],
    free_for: Mapping[int, float],
    holder: str,
    ttl_seconds: float,
    most: int,
    unchanged: Mapping[int, datetime] = MappingProxyType({}),
) -> list[Lease]:
    """Take up to `most` free accounts of `floors` (account → the signer's fence); expired leases are re-acquired, never renewed.

    `free_for` is how many seconds an account must have been free before this worker may take it (P18b). `unchanged` names
    accounts whose lease lies in the future and when it was renewed: taken if that is still so.
    """
    if not floors or most < 1:
        return []
    rows = [
        {"account_id": a, "floor": f, "free_for": free_for.get(a, 0.0), "unchanged": unchanged.get(a)}
        for a, f in floors.items()
    ]
    found = tx.execute(_ACQUIRE, {**_FLOORS.bind(rows), "holder": holder, "ttl": ttl_seconds, "most": most})
    return [Lease(row.account_id, row.token, row.lease_id) for row in found]


def renew(tx: Tx, leases: Sequence[Lease], ttl_seconds: float) -> set[int]:
    """Extend what is still ours and not locked by somebody else at this moment; the accounts renewed."""
    found = tx.execute(_RENEW, {**_HELD.bind([_row(lease) for lease in leases]), "ttl": ttl_seconds})
    return set(found.scalars())


def standing(tx: Tx, leases: Sequence[Lease]) -> set[int]:
    """Those of `leases` that are still ours and not expired."""
    return set(tx.execute(_STANDING, _HELD.bind([_row(lease) for lease in leases])).scalars())


def release(tx: Tx, leases: Sequence[Lease]) -> None:
    """Give leases back at once. A new lease id is written, so that a hold of the released holder fails."""
    if leases:
        tx.execute(_RELEASE, _HELD.bind([_row(lease) for lease in leases]))


def _row(lease: Lease) -> dict[str, object]:
    return {"account_id": lease.account_id, "token": lease.token, "lease_id": lease.lease_id}
