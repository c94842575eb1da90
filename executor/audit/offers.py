"""G3, G4 and G5 in the rows of attempts: what was offered for a nonce, in which order, and that nothing left without stored bytes."""

from executor.audit.reading import Check
from executor.audit.report import Kind

_KEY = ("attempt account_id nonce seq",)
WHOLE = (
    Check(
        """
        SELECT hash, count(*) AS found, array_agg(account_id ORDER BY account_id, nonce, seq) AS accounts,
               array_agg(nonce ORDER BY account_id, nonce, seq) AS nonces, array_agg(seq ORDER BY account_id, nonce, seq) AS seqs
          FROM attempt WHERE hash IS NOT NULL GROUP BY hash HAVING count(*) > 1
        """,
        Kind(
            "G5",
            "hash-twice",
            "the transaction {hash} is stored as {found} attempts: one of them says what was never signed for it",
            ("attempt account_id=accounts nonce=nonces seq=seqs",),
        ),
    ),
)
NONCES = (
    Check(
        """
        WITH offered AS (
          SELECT t.account_id, t.nonce, t.seq, t.kind, t.status, t.raw IS NOT NULL AS has_bytes, t.hash IS NOT NULL AS has_hash,
                 t.gas, t.max_fee, t.tip, t.sent_token, t.sent_at,
                 row_number() OVER w - 1 AS place, first_value(t.kind) OVER w AS first_kind,
                 max(t.max_fee::numeric) FILTER (WHERE t.raw IS NOT NULL) OVER earlier AS before_fee,
                 max(t.tip::numeric) FILTER (WHERE t.raw IS NOT NULL) OVER earlier AS before_tip,
                 max(t.gas) FILTER (WHERE t.raw IS NOT NULL) OVER earlier AS before_gas,
                 coalesce(bool_or(t.kind = 'CANCEL' AND t.raw IS NOT NULL) OVER earlier, false) AS cancelled
            FROM attempt t WHERE t.account_id = :account AND {range t.nonce}
          WINDOW w AS (PARTITION BY t.nonce ORDER BY t.seq),
                 earlier AS (PARTITION BY t.nonce ORDER BY t.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        SELECT * FROM (
          SELECT *, CASE
            WHEN status IN ('SIGNED', 'SENT', 'MINED', 'FINAL') AND NOT (has_bytes AND has_hash) THEN 'sent-without-bytes'
            WHEN status IN ('DRAFT', 'REFUSED') AND has_bytes THEN 'draft-with-bytes'
            WHEN status IN ('SENT', 'MINED', 'FINAL') AND (sent_token IS NULL OR sent_at IS NULL) THEN 'hand-over-unrecorded'
            WHEN cancelled AND kind <> 'CANCEL' AND has_bytes THEN 'offer-after-cancel'
            WHEN place <> seq OR first_kind <> 'SEND' OR (kind = 'SEND' AND seq > 0) THEN 'offer-out-of-order'
            WHEN has_bytes AND before_gas > gas THEN 'gas-fell'
            WHEN has_bytes AND (max_fee * 8 < before_fee * 9 OR tip * 8 < before_tip * 9) THEN 'raise-too-small' END AS fault
            FROM offered) judged WHERE fault IS NOT NULL
        """,
        Kind(
            "G5",
            "sent-without-bytes",
            "attempt {seq} of nonce {nonce} of account {account} is {status} and no signed bytes of it are stored: what went out cannot be sent again",
            _KEY,
        ),
        Kind(
            "G5",
            "draft-with-bytes",
            "attempt {seq} of nonce {nonce} of account {account} is {status} and has signed bytes: they may be out while the rows say that nothing is",
            _KEY,
        ),
        Kind(
            "G4",
            "hand-over-unrecorded",
            "attempt {seq} of nonce {nonce} of account {account} is {status}, and no row says which generation handed it over",
            _KEY,
        ),
        Kind(
            "G3",
            "offer-out-of-order",
            "attempt {seq} of nonce {nonce} of account {account} is a {kind} in place {place}: a nonce has one SEND, which comes first, and its attempts are numbered without a gap",
            _KEY,
        ),
        Kind(
            "G3",
            "offer-after-cancel",
            "attempt {seq} of nonce {nonce} of account {account} is a {kind} signed after a cancel of the nonce: what was called off may still be paid (P7)",
            _KEY,
        ),
        Kind(
            "G5",
            "gas-fell",
            "attempt {seq} of nonce {nonce} of account {account} has {gas} gas after a signed attempt with {before_gas}: the same call may end otherwise (P24)",
            _KEY,
        ),
        Kind(
            "G5",
            "raise-too-small",
            "attempt {seq} of nonce {nonce} of account {account} offers {max_fee} wei with a tip of {tip}, not 12.5 % over the {before_fee} with {before_tip} signed before: nodes refuse it as a replacement (P22)",
            _KEY,
        ),
    ),
    Check(
        """
        SELECT a.account_id, a.nonce, a.seq, a.kind, a.intent_digest, r.intent_digest AS reserved, i.digest AS wanted, r.execution_id, r.step
          FROM attempt a JOIN nonce_reservation r ON (r.account_id, r.nonce) = (a.account_id, a.nonce) AND r.account_id = :account AND {range r.nonce}
          JOIN account c ON c.account_id = a.account_id
          LEFT JOIN LATERAL (SELECT digest FROM intent i WHERE (i.execution_id, i.step) = (r.execution_id, r.step) OFFSET 0) i ON true
         WHERE a.account_id = :account AND {range a.nonce}
           AND (i.digest IS DISTINCT FROM r.intent_digest OR coalesce(a.intent_digest, a.cancel_digest) IS DISTINCT FROM
                CASE WHEN a.kind = 'CANCEL' THEN c.cancel_digest ELSE r.intent_digest END)
        """,
        Kind(
            "G3",
            "other-intent",
            "attempt {seq} of nonce {nonce} of account {account} names another intent than step {step} of {execution_id}, which the nonce is for",
            ("attempt account_id nonce seq", "nonce_reservation account_id nonce"),
        ),
    ),
    Check(
        """
        SELECT * FROM (
          SELECT b.account_id, b.nonce, b.seq, b.endpoint, b.verdict, b.token, t.signed_token, t.status,
                 CASE WHEN t.raw IS NULL THEN 'broadcast-without-bytes'
                      WHEN t.sent_at IS NULL OR t.sent_token IS NULL THEN 'broadcast-unrecorded'
                      WHEN b.token < t.signed_token OR t.sent_token < t.signed_token THEN 'broadcast-before-signing' END AS fault
            FROM broadcast b LEFT JOIN attempt t ON (t.account_id, t.nonce, t.seq) = (b.account_id, b.nonce, b.seq)
                                                AND t.account_id = :account AND {range t.nonce}
           WHERE b.account_id = :account AND {range b.nonce}) judged WHERE fault IS NOT NULL
        """,
        Kind(
            "G4",
            "broadcast-without-bytes",
            "{endpoint} was handed attempt {seq} of nonce {nonce} of account {account}, of which no bytes are stored: something was sent that was not committed",
            ("broadcast account_id nonce seq endpoint verdict", "attempt account_id nonce seq"),
        ),
        Kind(
            "G4",
            "broadcast-unrecorded",
            "{endpoint} was handed attempt {seq} of nonce {nonce} of account {account}, which is {status} and not recorded as sent",
            ("broadcast account_id nonce seq endpoint verdict", "attempt account_id nonce seq"),
        ),
        Kind(
            "G4",
            "broadcast-before-signing",
            "attempt {seq} of nonce {nonce} of account {account} was handed over by generation {token} and signed by the later generation {signed_token}: it was sent before its bytes were committed",
            ("broadcast account_id nonce seq endpoint verdict", "attempt account_id nonce seq"),
        ),
    ),
)
