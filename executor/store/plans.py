"""The intents: what an execution wants, written once and never changed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import text

from executor.database import Held, Rows, Tx, expect
from executor.records import Intent, access_list_from, access_list_json

_NEW = Rows(
    execution_id="text",
    step="int",
    once="text",
    recipient="bytea",
    creates="bool",
    value="uint256",
    data="bytea",
    access_list="text",
    gas="bigint",
    label="text",
    digest="bytea",
)
_INSERT = text(f"""
INSERT INTO intent (execution_id, step, account_id, once, recipient, creates, value, data, access_list, gas, label, digest, token)
SELECT r.execution_id, r.step, :account, r.once, r.recipient, r.creates, r.value, r.data, r.access_list::jsonb, r.gas, r.label, r.digest, :token
  FROM {_NEW.sql}
""")
# An ordered step is ready when the one before took effect for good, or is mined with success where the plan accepts that (P17).
_READY = text("""
SELECT e.execution_id, e.state, e.plan_order, e.steps, coalesce(e.expires_at <= (SELECT clock_timestamp()), false) AS expired, e.reason,
       i.step, i.once, i.recipient, i.creates, i.value, i.data, nullif(i.access_list, '[]'::jsonb) AS access_list, i.gas, i.digest
  FROM (SELECT * FROM execution WHERE account_id = :account AND (state = 'PLANNED' OR (state = 'RUNNING' AND plan_order <> 'together' AND stopped_at IS NULL))
         ORDER BY due_at, execution_id LIMIT :most) e
  CROSS JOIN LATERAL (SELECT * FROM intent w WHERE w.execution_id = e.execution_id OFFSET 0) i
 WHERE NOT EXISTS (SELECT 1 FROM nonce_reservation r WHERE (r.execution_id, r.step) = (i.execution_id, i.step))
   AND NOT EXISTS (SELECT 1 FROM already_paid p WHERE (p.execution_id, p.step) = (i.execution_id, i.step))
   AND (e.plan_order = 'together' OR i.step = 0
        OR EXISTS (SELECT 1 FROM already_paid p WHERE (p.execution_id, p.step) = (i.execution_id, i.step - 1))
        OR EXISTS (SELECT 1 FROM nonce_reservation r
                    LEFT JOIN attempt a ON (a.account_id, a.nonce) = (r.account_id, r.nonce) AND a.status = 'MINED' AND a.kind <> 'CANCEL'
                    LEFT JOIN receipt c ON (c.account_id, c.nonce, c.seq) = (a.account_id, a.nonce, a.seq) AND c.orphaned_at IS NULL
                    WHERE (r.execution_id, r.step) = (i.execution_id, i.step - 1)
                      AND (r.effect OR (e.plan_order = 'mined' AND c.status = 1))))
 ORDER BY e.due_at, e.execution_id, i.step
""")


def insert(held: Held, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the intents of plans that are being recorded."""
    if rows:
        full = [{**row, "access_list": json.dumps(access_list_json(row["access_list"]))} for row in rows]
        changed = held.tx.execute(
            _INSERT, {**_NEW.bind(full), "account": held.account_id, "token": held.token}
        ).rowcount
        expect(changed, len(rows), "intents")


def select_ready(tx: Tx, account_id: int, most: int) -> list[Intent]:
    """Intents that may get a nonce now, in order of their executions' due time."""
    rows = tx.execute(_READY, {"account": account_id, "most": most})
    return [
        Intent(
            row.execution_id,
            row.state,
            row.plan_order,
            row.steps,
            row.expired,
            row.reason,
            row.step,
            row.once,
            row.recipient,
            row.creates,
            row.value,
            row.data,
            access_list_from(row.access_list),
            row.gas,
            row.digest,
        )
        for row in rows
    ]
