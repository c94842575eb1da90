"""G2, G2b and G7 in the rows: one step one nonce, one `once` one payment, no hole in the nonces of an account."""

from executor.audit.reading import Check

WHOLE = (
    Check(
        "G2",
        "step {step} of execution {execution_id} owns {found} nonces: {nonces}",
        """
        SELECT execution_id, step, count(*) AS found, array_agg(account_id || '/' || nonce ORDER BY nonce) AS nonces
          FROM nonce_reservation GROUP BY execution_id, step HAVING count(*) > 1
        """,
    ),
    Check(
        "G2b",
        "{once} is spent by {found} living or effective steps: {steps}",
        """
        SELECT once, count(*) AS found, array_agg(execution_id || ' step ' || step ORDER BY execution_id, step) AS steps
          FROM nonce_reservation WHERE once IS NOT NULL AND effect IS NOT FALSE GROUP BY once HAVING count(*) > 1
        """,
    ),
)
ACCOUNT = (
    Check(
        "G7",
        "account {account} has a hole: nonces {low} to {high} are not reserved, {nonce} is",
        """
        SELECT name AS account, before + 1 AS low, nonce - 1 AS high, nonce FROM (
          SELECT a.name, r.nonce, coalesce(lag(r.nonce) OVER (ORDER BY r.nonce), a.first_nonce - 1) AS before
            FROM (SELECT account_id, nonce FROM nonce_reservation UNION ALL SELECT account_id, nonce FROM acknowledged_nonce) r
            JOIN account a USING (account_id) WHERE account_id = :account) numbered
         WHERE nonce > before + 1
        """,
    ),
    Check(
        "G2",
        "nonce {nonce} of account {account} is acknowledged as used by others and belongs to step {step} of {execution_id} too",
        """
        SELECT a.name AS account, k.nonce, r.execution_id, r.step FROM acknowledged_nonce k
          JOIN nonce_reservation r USING (account_id, nonce) JOIN account a USING (account_id) WHERE account_id = :account
        """,
    ),
    Check(
        "G2",
        "account {account} reserved nonce {nonce}, below its first nonce {first_nonce}",
        """
        SELECT a.name AS account, r.nonce, a.first_nonce FROM nonce_reservation r JOIN account a USING (account_id)
         WHERE account_id = :account AND (a.first_nonce IS NULL OR r.nonce < a.first_nonce) ORDER BY r.nonce LIMIT 1
        """,
    ),
)
NONCES = (
    Check(
        "G2",
        "nonce {nonce} of account {account_id} belongs to step {step} of {execution_id}, its history says: {told}",
        """
        SELECT r.account_id, r.nonce, r.execution_id, r.step, array_agg(h.why ORDER BY h.history_id) AS told
          FROM nonce_reservation r LEFT JOIN history h
               ON h.kind = 'nonce' AND h.subject = r.account_id || '/' || r.nonce AND h.from_state IS NULL
         WHERE r.account_id = :account AND {range r.nonce} GROUP BY r.account_id, r.nonce, r.execution_id, r.step, r.token
        HAVING array_agg(h.why) <> ARRAY[r.execution_id || ' step ' || r.step]
            OR array_agg(h.token) IS DISTINCT FROM ARRAY[r.token]
        """,
    ),
    Check(
        "G2",
        "nonce {nonce} of account {account_id} is {state}, its history ends with {told}",
        """
        SELECT r.account_id, r.nonce, r.state, h.to_state AS told FROM nonce_reservation r LEFT JOIN LATERAL (
          SELECT to_state FROM history WHERE kind = 'nonce' AND subject = r.account_id || '/' || r.nonce
           ORDER BY history_id DESC LIMIT 1) h ON true
         WHERE r.account_id = :account AND {range r.nonce} AND h.to_state IS NOT NULL AND h.to_state <> r.state
        """,
    ),
    Check(
        "G2",
        "nonce {nonce} of account {account_id} points to step {step} of {execution_id}, which is no intent of this account",
        """
        SELECT r.account_id, r.nonce, r.execution_id, r.step FROM nonce_reservation r
          LEFT JOIN intent i USING (execution_id, step) LEFT JOIN execution e USING (execution_id)
         WHERE r.account_id = :account AND {range r.nonce}
           AND (i.account_id IS DISTINCT FROM r.account_id OR e.account_id IS DISTINCT FROM r.account_id)
        """,
    ),
    Check(
        "G2b",
        "nonce {nonce} of account {account_id} carries once {once}, its intent {wanted}",
        """
        SELECT r.account_id, r.nonce, r.execution_id, r.step, r.once, i.once AS wanted
          FROM nonce_reservation r JOIN intent i USING (execution_id, step)
         WHERE r.account_id = :account AND {range r.nonce} AND r.once IS DISTINCT FROM i.once
        """,
    ),
    Check(
        "G7",
        "nonce {nonce} of account {account_id} is open, nothing of it can be sent, and nothing says why",
        """
        SELECT r.account_id, r.nonce, r.execution_id, r.step FROM nonce_reservation r JOIN account a USING (account_id)
         WHERE r.account_id = :account AND {range r.nonce} AND r.state = 'OPEN' AND a.state = 'open' AND a.attention IS NULL
           AND NOT EXISTS (SELECT 1 FROM attempt t WHERE (t.account_id, t.nonce) = (r.account_id, r.nonce)
                              AND t.status IN ('DRAFT', 'SIGNED', 'SENT', 'MINED', 'FINAL'))
        """,
    ),
)
EXECUTIONS = (
    Check(
        "G1",
        "step {step} of {execution_id} is also step {step} of {earlier}, which {why} (P4)",
        """
        SELECT i.execution_id, i.step, o.execution_id AS earlier,
               CASE WHEN r.effect THEN 'took effect' ELSE 'is not over' END AS why
          FROM intent i JOIN execution e USING (execution_id)
          JOIN execution o ON o.strategy = e.strategy AND o.reissue_no < e.reissue_no AND (o.slot = e.slot OR o.trigger_key = e.trigger_key)
          LEFT JOIN nonce_reservation r ON (r.execution_id, r.step) = (o.execution_id, i.step)
         WHERE {range e.execution_id} AND e.reissue_no > 0 AND (r.effect OR r.state = 'OPEN' OR o.state IN ('PENDING', 'PLANNED', 'RUNNING'))
        """,
    ),
    Check(
        "G2b",
        "step {step} of {execution_id} counts as paid by step {paid_step} of {paid_execution_id}, which {why}",
        """
        SELECT * FROM (
          SELECT p.execution_id, p.step, p.once, p.paid_execution_id, p.paid_step, p.paid_hash,
                 CASE WHEN r.effect IS NOT TRUE THEN 'took no effect'
                      WHEN r.once IS DISTINCT FROM p.once OR i.once IS DISTINCT FROM p.once THEN 'has another name for what is paid'
                      WHEN a.hash IS DISTINCT FROM p.paid_hash THEN 'was paid by another transaction'
                      WHEN EXISTS (SELECT 1 FROM nonce_reservation o WHERE (o.execution_id, o.step) = (p.execution_id, p.step))
                      THEN 'did not keep this step from getting a nonce of its own' END AS why
            FROM already_paid p LEFT JOIN nonce_reservation r ON (r.execution_id, r.step) = (p.paid_execution_id, p.paid_step)
            LEFT JOIN attempt a ON (a.account_id, a.nonce, a.seq) = (r.account_id, r.nonce, r.closed_seq)
            LEFT JOIN intent i ON (i.execution_id, i.step) = (p.execution_id, p.step)
           WHERE {range p.execution_id}) judged WHERE why IS NOT NULL
        """,
    ),
)
