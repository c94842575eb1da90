"""G10 in the rows: what is final has its attempt, receipt and witness; an end is the one that P2 asks for."""

from executor.audit.reading import Check
from executor.audit.report import Kind

_NONCE = ("nonce_reservation account_id nonce",)
_CLOSING = (*_NONCE, "attempt account_id nonce seq=closed_seq")
_KEY = ("attempt account_id nonce seq",)
NONCES = (
    Check(
        """
        SELECT * FROM (
          SELECT r.account_id, r.nonce, r.execution_id, r.step, r.closed_seq, a.status, c.block_number, r.witness_number, CASE
            WHEN r.witness_number IS NULL OR r.witness_hash IS NULL OR coalesce(r.witness_rule, '') = ''
                 OR coalesce(cardinality(r.witness_endpoints), 0) = 0 THEN 'closed-without-witness'
            WHEN r.closed_as = 'foreign' THEN CASE WHEN a.mined > 0 THEN 'foreign-though-ours' END
            WHEN a.status IS DISTINCT FROM 'FINAL' THEN 'closed-before-final'
            WHEN c.status IS NULL THEN 'final-without-receipt'
            WHEN r.effect IS DISTINCT FROM (a.kind <> 'CANCEL' AND c.status = 1) THEN 'effect-denied'
            WHEN r.witness_number < c.block_number THEN 'witness-too-old' END AS fault
            FROM (SELECT * FROM nonce_reservation n WHERE n.account_id = :account AND {range n.nonce} AND n.state = 'CLOSED' OFFSET 0) r
            LEFT JOIN LATERAL (
              SELECT max(t.status) FILTER (WHERE t.seq = r.closed_seq) AS status, max(t.kind) FILTER (WHERE t.seq = r.closed_seq) AS kind,
                     count(*) FILTER (WHERE t.status IN ('MINED', 'FINAL')) AS mined
                FROM attempt t WHERE (t.account_id, t.nonce) = (r.account_id, r.nonce) OFFSET 0) a ON true
            LEFT JOIN LATERAL (
              SELECT status, block_number FROM receipt c
               WHERE (c.account_id, c.nonce, c.seq) = (r.account_id, r.nonce, r.closed_seq) AND c.orphaned_at IS NULL OFFSET 0) c ON true) judged
         WHERE fault IS NOT NULL
        """,
        Kind(
            "G10",
            "closed-without-witness",
            "nonce {nonce} of account {account} is CLOSED and no final block was kept as its witness: that it is final cannot be proved (P14)",
            _NONCE,
        ),
        Kind(
            "G10",
            "foreign-though-ours",
            "nonce {nonce} of account {account} is CLOSED as used by somebody else, though a transaction of ours was mined at it: a step that took effect may be paid again (P5)",
            _NONCE,
        ),
        Kind(
            "G10",
            "closed-before-final",
            "nonce {nonce} of account {account} is CLOSED by attempt {closed_seq}, which is {status} and not FINAL: its end was declared early",
            _CLOSING,
        ),
        Kind(
            "G10",
            "final-without-receipt",
            "nonce {nonce} of account {account} is CLOSED by attempt {closed_seq} and no receipt of it is believed: its end has no evidence",
            _CLOSING,
        ),
        Kind(
            "G10",
            "effect-denied",
            "nonce {nonce} of account {account} is CLOSED with an effect that its receipt denies: a step counts as paid or unpaid wrongly",
            _CLOSING,
        ),
        Kind(
            "G10",
            "witness-too-old",
            "nonce {nonce} of account {account} is CLOSED with block {witness_number} as witness, older than block {block_number} of its receipt: it was not final",
            _CLOSING,
        ),
    ),
    Check(
        """
        SELECT * FROM (
          SELECT t.account_id, t.nonce, t.seq, t.status, CASE
            WHEN t.status = 'FINAL' AND (r.state <> 'CLOSED' OR r.closed_seq IS DISTINCT FROM t.seq) THEN 'final-at-open-nonce'
            WHEN t.status IN ('MINED', 'FINAL') AND c.believed = 0 AND r.closed_seq IS DISTINCT FROM t.seq THEN 'mined-without-receipt'
            WHEN t.status NOT IN ('MINED', 'FINAL') AND c.believed > 0 THEN 'receipt-of-unmined'
            WHEN c.believed > 1 THEN 'receipts-overlap'
            WHEN t.status IN ('MINED', 'FINAL') AND o.mined > 1 THEN 'mined-twice' END AS fault
            FROM (SELECT account_id, nonce, seq, status FROM attempt n WHERE n.account_id = :account AND {range n.nonce} OFFSET 0) t
            LEFT JOIN LATERAL (SELECT state, closed_seq FROM nonce_reservation r WHERE (r.account_id, r.nonce) = (t.account_id, t.nonce) OFFSET 0) r ON true
            LEFT JOIN LATERAL (SELECT count(*) AS believed FROM receipt c
               WHERE (c.account_id, c.nonce, c.seq) = (t.account_id, t.nonce, t.seq) AND c.orphaned_at IS NULL OFFSET 0) c ON true
            LEFT JOIN LATERAL (SELECT count(*) AS mined FROM attempt o
               WHERE (o.account_id, o.nonce) = (t.account_id, t.nonce) AND o.status IN ('MINED', 'FINAL') OFFSET 0) o ON true) judged
         WHERE fault IS NOT NULL
        """,
        Kind(
            "G10",
            "final-at-open-nonce",
            "attempt {seq} of nonce {nonce} of account {account} is FINAL and did not close its nonce: the step may be offered again",
            _KEY,
        ),
        Kind(
            "G10",
            "mined-without-receipt",
            "attempt {seq} of nonce {nonce} of account {account} is {status} and no receipt of it is believed: that it was mined has no evidence",
            _KEY,
        ),
        Kind(
            "G10",
            "receipt-of-unmined",
            "attempt {seq} of nonce {nonce} of account {account} is {status} though a receipt of it is believed: an effect on chain is not counted (P23)",
            _KEY,
        ),
        Kind(
            "G10",
            "receipts-overlap",
            "attempt {seq} of nonce {nonce} of account {account} is believed to stand in two blocks at once (P23)",
            _KEY,
        ),
        Kind(
            "G10",
            "mined-twice",
            "attempt {seq} of nonce {nonce} of account {account} is {status}, and so is another attempt of the nonce: a chain mines one",
            _KEY,
        ),
    ),
)
