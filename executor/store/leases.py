"""The lease rows: who may work for an account now (P10, P11). Lease time is the database's clock inside each statement."""

from collections.abc import Mapping, Sequence

from sqlalchemy import text

from executor.database import Rows, Tx
from executor.records import Lease

_FLOORS = Rows(account_id="int", floor="bigint", free_for="float8")
# An account whose row a stranger has locked is passed over: the foreign key of its new generation would wait for it, and
# all the others with it [B97].
_ACQUIRE = text(f"""
WITH wanted AS (SELECT * FROM {_FLOORS.sql}),
free AS (
  SELECT l.account_id FROM lease l JOIN account a USING (account_id) JOIN wanted w USING (account_id)
   WHERE l.expires_at <= (SELECT clock_timestamp()) - make_interval(secs => w.free_for)
     AND (SELECT i.system_identifier = c.system_identifier::text FROM installation i, pg_control_system() c)
   ORDER BY l.account_id LIMIT :most FOR UPDATE OF l SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED),
taken AS (
  UPDATE lease l SET token = 1 + greatest(l.token, a.fence, w.floor), lease_id = gen_random_uuid(), holder = :holder,
         acquired_at = clock_timestamp(), renewed_at = clock_timestamp(),
         expires_at = clock_timestamp() + make_interval(secs => :ttl)
    FROM free JOIN account a USING (account_id) JOIN wanted w USING (account_id)
   WHERE l.account_id = free.account_id
  RETURNING l.account_id, l.token, l.lease_id)
INSERT INTO lease_generation (account_id, token, lease_id, holder)
SELECT account_id, token, lease_id, :holder FROM taken RETURNING account_id, token, lease_id
""")

_FREE = text("""
SELECT account_id FROM lease WHERE account_id = ANY(:accounts) AND expires_at <= (SELECT clock_timestamp())
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


def select_free(tx: Tx, account_ids: Sequence[int]) -> list[int]:
    """Those of `account_ids` nobody holds now; a look, not a claim."""
    return list(tx.execute(_FREE, {"accounts": list(account_ids)}).scalars())


def acquire(
    tx: Tx, floors: Mapping[int, int], free_for: Mapping[int, float], holder: str, ttl_seconds: float, most: int
) -> list[Lease]:
    """Take up to `most` free accounts of `floors` (account → the signer's fence); expired leases are re-acquired, never renewed.

    `free_for` is how many seconds an account must have been free before this worker may take it (P18b).
    """
    if not floors or most < 1:
        return []
    rows = [{"account_id": a, "floor": f, "free_for": free_for.get(a, 0.0)} for a, f in floors.items()]
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
