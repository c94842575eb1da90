"""G10 in the rows: what is final has its attempt, receipt and witness; an end is the one P2 asks for; history agrees (P1)."""

from executor.audit.reading import Check

_ARROWS = {
    "execution": """
        ('', 'PENDING'), ('', 'SKIPPED'),
        ('PENDING', 'PLANNED'), ('PENDING', 'SKIPPED'), ('PENDING', 'FAILED'), ('PENDING', 'CANCELLED'), ('PENDING', 'PARKED'),
        ('PLANNED', 'RUNNING'), ('PLANNED', 'SKIPPED'), ('PLANNED', 'FAILED'), ('PLANNED', 'CANCELLED'), ('PLANNED', 'PARKED'),
        ('RUNNING', 'SUCCEEDED'), ('RUNNING', 'PARTIAL'), ('RUNNING', 'REVERTED'), ('RUNNING', 'CANCELLED'), ('RUNNING', 'PARKED'),
        ('PARKED', 'PENDING'), ('PARKED', 'PLANNED'), ('PARKED', 'SKIPPED'), ('PARKED', 'PARTIAL'), ('PARKED', 'REVERTED'), ('PARKED', 'CANCELLED')
        """,
    "attempt": """
        ('', 'DRAFT'), ('DRAFT', 'SIGNED'), ('DRAFT', 'REFUSED'), ('DRAFT', 'SUPERSEDED'), ('SIGNED', 'SENT'),
        ('SIGNED', 'MINED'), ('SIGNED', 'SUPERSEDED'), ('SENT', 'MINED'), ('SENT', 'SUPERSEDED'), ('MINED', 'SENT'),
        ('MINED', 'FINAL'), ('MINED', 'SUPERSEDED')
        """,
}


def _history(kind: str, rows: str) -> Check:
    """The history of each row begins at birth, goes along arrows only and ends where the row stands."""
    return Check(
        "G10",
        f"{kind} {{subject}} is {{state}}, its history does not lead there along the arrows of P1: {{told}}",
        f"""
        SELECT subject, state, array_agg(from_state || ' → ' || to_state ORDER BY history_id) AS told FROM (
          SELECT s.subject, s.state, h.history_id, coalesce(h.from_state, '') AS from_state, h.to_state,
                 coalesce(lag(h.to_state) OVER w, '') AS before, last_value(h.to_state) OVER w AS last
            FROM ({rows}) s LEFT JOIN history h ON h.kind = '{kind}' AND h.subject = s.subject
          WINDOW w AS (PARTITION BY s.subject ORDER BY h.history_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)) walked
         GROUP BY subject, state
        HAVING bool_or(history_id IS NULL OR from_state <> before OR last <> state
                       OR (from_state, to_state) NOT IN (VALUES {_ARROWS[kind]}))
        """,  # noqa: S608  (constants of this page)
    )


EXECUTIONS = (
    Check(
        "G10",
        "execution {execution_id} is {state}, but {why}",
        """
        WITH tally AS (
          SELECT e.execution_id, e.state, e.steps, e.steps_effective, e.plan_order, e.resolution IS NOT NULL AS resolved, count(r.nonce) AS reserved,
                 count(*) FILTER (WHERE r.state = 'OPEN') AS open,
                 count(*) FILTER (WHERE r.closed_as = 'foreign') AS others,
                 count(*) FILTER (WHERE a.kind <> 'CANCEL' AND c.status = 1) AS effective,
                 count(*) FILTER (WHERE a.kind <> 'CANCEL' AND c.status = 0) AS reverted,
                 (SELECT count(*) FROM already_paid p WHERE p.execution_id = e.execution_id) AS paid
            FROM execution e LEFT JOIN nonce_reservation r USING (execution_id)
            LEFT JOIN attempt a ON (a.account_id, a.nonce, a.seq) = (r.account_id, r.nonce, r.closed_seq)
            LEFT JOIN receipt c ON (c.account_id, c.nonce, c.seq) = (a.account_id, a.nonce, a.seq) AND c.orphaned_at IS NULL
           WHERE {range e.execution_id} AND e.state NOT IN ('PENDING', 'PLANNED', 'RUNNING', 'PARKED')
           GROUP BY e.execution_id, e.state, e.steps, e.steps_effective, e.plan_order, e.resolution),
        ruled AS (
          SELECT *, CASE WHEN reserved = 0 AND paid = 0 THEN NULL WHEN others > 0 AND NOT resolved THEN 'PARKED'
                         WHEN effective + paid = steps THEN 'SUCCEEDED' WHEN effective > 0 THEN 'PARTIAL'
                         WHEN reverted > 0 THEN 'REVERTED' ELSE 'CANCELLED' END AS ending FROM tally),
        judged AS (
          SELECT *, CASE
            WHEN open > 0 THEN open || ' of its nonces are open'
            WHEN reserved = 0 AND (state IN ('PARTIAL', 'REVERTED') OR (state = 'SUCCEEDED' AND paid = 0)) THEN 'it never owned a nonce'
            WHEN reserved > 0 AND plan_order = 'together' AND reserved + paid < steps THEN 'only ' || reserved || ' of its ' || steps || ' steps got a nonce'
            WHEN reserved > 0 AND state <> ending THEN 'its nonces make it ' || ending || ' (P2)'
            WHEN reserved = 0 AND state = 'SUCCEEDED' AND ending <> state THEN 'not all of its steps are paid'
            WHEN reserved > 0 AND steps_effective IS DISTINCT FROM effective
            THEN effective || ' steps took effect, not ' || coalesce(steps_effective::text, 'unknown') END AS why FROM ruled)
        SELECT execution_id, state, why, steps, steps_effective, reserved, effective, reverted, others, paid
          FROM judged WHERE why IS NOT NULL
        """,
    ),
    _history("execution", "SELECT execution_id AS subject, state FROM execution WHERE {range execution_id}"),
)
NONCES = (
    Check(
        "G10",
        "nonce {nonce} of account {account_id} is CLOSED, but {why}",
        """
        SELECT * FROM (
          SELECT r.account_id, r.nonce, r.execution_id, r.step, r.closed_seq, a.status, c.block_number, r.witness_number, CASE
            WHEN r.witness_number IS NULL OR r.witness_hash IS NULL OR coalesce(r.witness_rule, '') = ''
                 OR coalesce(cardinality(r.witness_endpoints), 0) = 0 THEN 'no final block was kept as its witness (P14)'
            WHEN r.closed_as = 'foreign' AND EXISTS (SELECT 1 FROM attempt o WHERE (o.account_id, o.nonce) = (r.account_id, r.nonce)
                 AND o.status IN ('MINED', 'FINAL')) THEN 'as foreign, though a transaction of ours was mined'
            WHEN r.closed_as = 'foreign' THEN NULL
            WHEN a.status IS DISTINCT FROM 'FINAL' THEN 'the attempt that closed it is not FINAL'
            WHEN c.status IS NULL THEN 'no receipt of its attempt is believed'
            WHEN r.effect IS DISTINCT FROM (a.kind <> 'CANCEL' AND c.status = 1) THEN 'its effect is not what the receipt says'
            WHEN r.witness_number < c.block_number THEN 'its witness is older than its receipt' END AS why
            FROM nonce_reservation r
            LEFT JOIN attempt a ON (a.account_id, a.nonce, a.seq) = (r.account_id, r.nonce, r.closed_seq)
            LEFT JOIN receipt c ON (c.account_id, c.nonce, c.seq) = (a.account_id, a.nonce, a.seq) AND c.orphaned_at IS NULL
           WHERE r.account_id = :account AND {range r.nonce} AND r.state = 'CLOSED') judged WHERE why IS NOT NULL
        """,
    ),
    Check(
        "G10",
        "attempt {seq} of nonce {nonce} of account {account_id} is {status}, but {why}",
        """
        SELECT * FROM (
          SELECT t.account_id, r.nonce, t.seq, t.status, CASE
            WHEN t.status = 'FINAL' AND (r.state <> 'CLOSED' OR r.closed_seq IS DISTINCT FROM t.seq) THEN 'it did not close its nonce'
            WHEN NOT EXISTS (SELECT 1 FROM receipt c WHERE (c.account_id, c.nonce, c.seq) = (t.account_id, t.nonce, t.seq)
                                AND c.orphaned_at IS NULL) THEN 'no receipt of it is believed'
            WHEN EXISTS (SELECT 1 FROM attempt o WHERE (o.account_id, o.nonce) = (t.account_id, t.nonce) AND o.seq < t.seq
                            AND o.status IN ('MINED', 'FINAL')) THEN 'another attempt of this nonce is mined too' END AS why
            FROM attempt t JOIN nonce_reservation r USING (account_id, nonce)
           WHERE r.account_id = :account AND {range r.nonce} AND t.status IN ('MINED', 'FINAL')) judged WHERE why IS NOT NULL
        """,
    ),
    _history(
        "attempt",
        "SELECT r.account_id || '/' || r.nonce || '/' || r.seq AS subject, r.status AS state FROM attempt r"
        " WHERE r.account_id = :account AND {range r.nonce}",
    ),
)
