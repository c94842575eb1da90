"""G2, G2b and G7 in the rows: one step one nonce, one `once` one payment, no hole in the nonces of an account."""

from executor.audit.reading import Check
from executor.audit.report import Kind

PRESENT = """(SELECT nonce FROM nonce_reservation WHERE account_id = :account
              UNION ALL SELECT nonce FROM acknowledged_nonce k WHERE account_id = :account)"""
"""The nonces of an account that are accounted for: reserved, or acknowledged as used elsewhere. The only place that says so."""

WHOLE = (
    Check(
        """
        SELECT execution_id, step, count(*) AS found, array_agg(account_id ORDER BY account_id, nonce) AS accounts,
               array_agg(nonce ORDER BY account_id, nonce) AS nonces
          FROM nonce_reservation GROUP BY execution_id, step HAVING count(*) > 1
        """,
        Kind(
            "G2",
            "step-twice",
            "step {step} of execution {execution_id} owns {found} nonces ({nonces}) where one is allowed, so that it may be paid {found} times",
            ("nonce_reservation account_id=accounts nonce=nonces",),
        ),
    ),
    Check(
        """
        SELECT once, count(*) AS found, array_agg(execution_id ORDER BY execution_id, step) AS ids,
               array_agg(step ORDER BY execution_id, step) AS steps
          FROM nonce_reservation WHERE once IS NOT NULL AND effect IS NOT FALSE GROUP BY once HAVING count(*) > 1
        """,
        Kind(
            "G2b",
            "once-twice",
            "{once} is spent by {found} living or effective steps, so that it may be paid {found} times",
            ("nonce_reservation execution_id=ids step=steps",),
        ),
    ),
)
ACCOUNT = (
    Check(
        f"""
        SELECT a.account_id, before + 1 AS low, p.nonce - 1 AS high, p.nonce FROM (
          SELECT nonce, lag(nonce) OVER (ORDER BY nonce) AS before FROM {PRESENT} present) p
          JOIN account a ON a.account_id = :account
         WHERE p.nonce > coalesce(before, a.first_nonce - 1) + 1
        """,  # noqa: S608  (a constant)
        Kind(
            "G7",
            "hole",
            "account {account} has a hole below nonce {nonce}: the nonces before it are not reserved, and nothing above can ever be mined",
            ("nonce_reservation account_id nonce",),
        ),
    ),
    Check(
        f"""
        SELECT a.account_id, min(p.nonce) AS nonce, a.first_nonce FROM {PRESENT} p JOIN account a ON a.account_id = :account
         WHERE a.first_nonce IS NULL OR p.nonce < a.first_nonce GROUP BY a.account_id, a.first_nonce
        """,  # noqa: S608  (a constant)
        Kind(
            "G7",
            "below-first",
            "account {account} reserved nonce {nonce}, below its first nonce {first_nonce}: the nonce was spent before this installation began",
            ("nonce_reservation account_id nonce", "account account_id"),
        ),
    ),
    Check(
        f"""
        SELECT a.account_id, p.nonce FROM {PRESENT} p JOIN account a ON a.account_id = :account
         GROUP BY a.account_id, p.nonce HAVING count(*) > 1
        """,  # noqa: S608  (a constant)
        Kind(
            "G7",
            "nonce-twice",
            "nonce {nonce} of account {account} is accounted for twice, reserved and acknowledged: a step waits for a nonce that was used elsewhere",
            ("nonce_reservation account_id nonce",),
        ),
    ),
)
NONCES = (
    Check(
        """
        SELECT * FROM (
          SELECT r.account_id, r.nonce, r.execution_id, r.step, r.once, i.once AS wanted,
                 CASE WHEN i.account_id IS DISTINCT FROM r.account_id OR e.account_id IS DISTINCT FROM r.account_id THEN 'nonce-of-nobody'
                      WHEN r.once IS DISTINCT FROM i.once THEN 'once-forgotten' END AS fault
            FROM (SELECT * FROM nonce_reservation n WHERE n.account_id = :account AND {range n.nonce} OFFSET 0) r
            LEFT JOIN LATERAL (SELECT account_id, once FROM intent i WHERE (i.execution_id, i.step) = (r.execution_id, r.step) OFFSET 0) i ON true
            LEFT JOIN LATERAL (SELECT account_id FROM execution e WHERE e.execution_id = r.execution_id OFFSET 0) e ON true) judged
         WHERE fault IS NOT NULL
        """,
        Kind(
            "G2",
            "nonce-of-nobody",
            "nonce {nonce} of account {account} is reserved for step {step} of {execution_id}, which is no intent of this account: nobody planned what it pays",
            ("nonce_reservation account_id nonce",),
        ),
        Kind(
            "G2b",
            "once-forgotten",
            "nonce {nonce} of account {account} carries once {once}, its intent says {wanted}: the name for what is paid guards nothing",
            ("nonce_reservation account_id nonce", "intent execution_id step"),
        ),
    ),
    Check(
        """
        SELECT * FROM (
          SELECT r.account_id, r.nonce, r.execution_id, r.step,
                 CASE WHEN t.attempts = 0 THEN 'nonce-without-attempt'
                      WHEN t.refused IS NOT NULL AND t.cancel IS NULL THEN 'refused-without-cancel'
                      WHEN t.usable = 0 AND r.state = 'OPEN' AND a.state = 'open' AND a.attention IS NULL THEN 'dead-nonce' END AS fault
            FROM (SELECT * FROM nonce_reservation n WHERE n.account_id = :account AND {range n.nonce} OFFSET 0) r
            JOIN account a ON a.account_id = :account
           CROSS JOIN LATERAL (
             SELECT count(*) AS attempts, count(*) FILTER (WHERE t.status IN ('DRAFT', 'SIGNED', 'SENT', 'MINED', 'FINAL')) AS usable,
                    max(t.seq) FILTER (WHERE t.status = 'REFUSED' AND t.kind <> 'CANCEL') AS refused,
                    max(t.seq) FILTER (WHERE t.kind = 'CANCEL') AS cancel
               FROM attempt t WHERE (t.account_id, t.nonce) = (r.account_id, r.nonce) OFFSET 0) t) judged
         WHERE fault IS NOT NULL
        """,
        Kind(
            "G7",
            "nonce-without-attempt",
            "nonce {nonce} of account {account} is reserved for step {step} of {execution_id} and has no attempt: nothing will ever use it, and everything above waits",
            ("nonce_reservation account_id nonce",),
        ),
        Kind(
            "G7",
            "refused-without-cancel",
            "nonce {nonce} of account {account} was refused by the signer and has no cancel: nothing will ever use it, and everything above waits (P6)",
            ("nonce_reservation account_id nonce",),
        ),
        Kind(
            "G7",
            "dead-nonce",
            "nonce {nonce} of account {account} is open, nothing of it can be sent, and the account does not say why: everything above waits",
            ("nonce_reservation account_id nonce",),
        ),
    ),
)
EXECUTIONS = (
    Check(
        """
        SELECT * FROM (
          SELECT p.execution_id, p.step, p.once, p.paid_execution_id, p.paid_step, p.paid_hash,
                 CASE WHEN r.effect IS NOT TRUE THEN 'paid-without-effect'
                      WHEN r.once IS DISTINCT FROM p.once OR i.once IS DISTINCT FROM p.once THEN 'paid-under-another-name'
                      WHEN a.hash IS DISTINCT FROM p.paid_hash THEN 'paid-by-another-transaction'
                      WHEN EXISTS (SELECT 1 FROM nonce_reservation o WHERE (o.execution_id, o.step) = (p.execution_id, p.step))
                      THEN 'paid-and-reserved' END AS fault
            FROM already_paid p LEFT JOIN nonce_reservation r ON (r.execution_id, r.step) = (p.paid_execution_id, p.paid_step)
            LEFT JOIN attempt a ON (a.account_id, a.nonce, a.seq) = (r.account_id, r.nonce, r.closed_seq)
            LEFT JOIN intent i ON (i.execution_id, i.step) = (p.execution_id, p.step)
           WHERE {range p.execution_id}) judged WHERE fault IS NOT NULL
        """,
        Kind(
            "G2b",
            "paid-without-effect",
            "step {step} of {execution_id} counts as paid by step {paid_step} of {paid_execution_id}, which took no effect: {once} is not paid",
            ("already_paid execution_id step", "nonce_reservation execution_id=paid_execution_id step=paid_step"),
        ),
        Kind(
            "G2b",
            "paid-under-another-name",
            "step {step} of {execution_id} counts as paid by step {paid_step} of {paid_execution_id}, which does not carry the same name {once}: another thing was paid",
            ("already_paid execution_id step", "nonce_reservation execution_id=paid_execution_id step=paid_step"),
        ),
        Kind(
            "G2b",
            "paid-by-another-transaction",
            "step {step} of {execution_id} counts as paid in {paid_hash}, which is not the transaction that closed step {paid_step} of {paid_execution_id}",
            ("already_paid execution_id step", "nonce_reservation execution_id=paid_execution_id step=paid_step"),
        ),
        Kind(
            "G2b",
            "paid-and-reserved",
            "step {step} of {execution_id} counts as paid by step {paid_step} of {paid_execution_id} and owns a nonce all the same: {once} may be paid twice",
            ("already_paid execution_id step", "nonce_reservation execution_id step"),
        ),
    ),
)
