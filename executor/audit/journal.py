"""G3 and G6 beside the signer's own journal, where it lives in the same database: it must bind and know what the rows do."""

from executor.audit.reading import Check, Slice
from executor.audit.report import Kind

PRESENT = "SELECT to_regclass('signer.binding') IS NOT NULL AS present"
_UNKNOWN = """
SELECT a.account_id FROM account a WHERE a.account_id = :account
   AND EXISTS (SELECT 1 FROM attempt t WHERE t.account_id = a.account_id AND t.raw IS NOT NULL)
   AND NOT EXISTS (SELECT 1 FROM signer.account s WHERE (s.chain_id, s.address) = (a.chain_id, a.address))
"""
ACCOUNT = (
    Check(
        """
        SELECT a.account_id, s.fence, l.token FROM account a JOIN signer.account s ON (s.chain_id, s.address) = (a.chain_id, a.address)
          LEFT JOIN lease l ON l.account_id = a.account_id
         WHERE a.account_id = :account AND a.state <> 'halted' AND s.fence > coalesce(l.token, 0)
        """,
        Kind(
            "G6",
            "journal-fence-ahead",
            "the signer's journal has seen generation {fence} of account {account}, the lease stands at {token}: rows were lost, and their holder may still be at work",
            ("lease account_id",),
        ),
    ),
)
NONCES = (
    Check(
        """
        SELECT a.account_id, b.nonce, b.execution_id AS bound_execution, b.step AS bound_step, b.state, b.digest, r.execution_id, r.step, r.intent_digest,
               CASE WHEN (r.execution_id, r.step) IS DISTINCT FROM (b.execution_id, b.step)
                    THEN CASE WHEN r.nonce IS NULL THEN 'journal-ahead' ELSE 'journal-binds-other-step' END
                    ELSE 'journal-binds-other-intent' END AS fault
          FROM signer.binding b JOIN account a ON a.account_id = :account
          LEFT JOIN (SELECT nonce, execution_id, step, intent_digest, transaction_type FROM nonce_reservation WHERE account_id = :account AND {range nonce}
                     UNION ALL SELECT nonce, execution_id, step, NULL, NULL FROM acknowledged_nonce k WHERE account_id = :account) r ON r.nonce = b.nonce
         WHERE b.chain_id = :chain AND b.address = :address AND {range b.nonce} AND (r.nonce IS NOT NULL OR a.state <> 'halted')
           AND ((r.execution_id, r.step) IS DISTINCT FROM (b.execution_id, b.step)
                OR (r.intent_digest IS NOT NULL AND b.tx_type <> r.transaction_type)
                OR (r.intent_digest IS NOT NULL AND b.digest <> r.intent_digest AND NOT (b.state = 'cancel' AND b.digest = a.cancel_digest)))
        """,
        Kind(
            "G3",
            "journal-ahead",
            "the signer's journal binds nonce {nonce} of account {account} to step {bound_step} of {bound_execution}, the rows do not know the nonce: rows were lost after they were signed",
            ("account account_id",),
        ),
        Kind(
            "G3",
            "journal-binds-other-step",
            "the signer's journal binds nonce {nonce} of account {account} to step {bound_step} of {bound_execution}, the rows to step {step} of {execution_id}: both may have been signed for it",
            ("nonce_reservation account_id nonce",),
        ),
        Kind(
            "G3",
            "journal-binds-other-intent",
            "the signer's journal binds nonce {nonce} of account {account} to another intent or type than the rows: both may have been signed for it",
            ("nonce_reservation account_id nonce",),
        ),
    ),
    Check(
        """
        SELECT a.account_id, t.nonce, t.seq, t.hash, CASE WHEN g.hash IS NULL THEN 'unknown-to-journal' ELSE 'journal-differs' END AS fault
          FROM attempt t JOIN account a ON a.account_id = :account
          JOIN signer.account s ON s.chain_id = :chain AND s.address = :address
          LEFT JOIN (SELECT g.nonce, g.hash, g.raw, g.kind, g.max_fee_wei, g.tip_wei, g.gas
                       FROM signer.signature g
                      WHERE g.chain_id = :chain AND g.address = :address AND {range g.nonce}) g ON g.nonce = t.nonce AND g.hash = t.hash
         WHERE t.account_id = :account AND {range t.nonce} AND t.raw IS NOT NULL
           AND (g.raw IS DISTINCT FROM t.raw OR (g.kind, g.max_fee_wei, g.tip_wei, g.gas) IS DISTINCT FROM (t.kind, t.max_fee, t.tip, t.gas))
        """,
        Kind(
            "G3",
            "unknown-to-journal",
            "the signer's journal does not know the transaction {hash}, attempt {seq} of nonce {nonce} of account {account}: it was signed past the signer",
            ("attempt account_id nonce seq",),
        ),
        Kind(
            "G3",
            "journal-differs",
            "the signer's journal has other bytes, fees, gas or another kind for the transaction {hash}, attempt {seq} of nonce {nonce} of account {account}",
            ("attempt account_id nonce seq",),
        ),
    ),
    Check(
        """
        SELECT a.account_id, g.nonce, g.hash FROM signer.signature g JOIN account a ON a.account_id = :account
          JOIN (SELECT nonce, bool_or(raw IS NULL AND status <> 'REFUSED') AS unsigned FROM attempt
                 WHERE account_id = :account AND {range nonce} GROUP BY nonce) t ON t.nonce = g.nonce
          LEFT JOIN attempt k ON k.account_id = :account AND {range k.nonce} AND k.nonce = g.nonce AND k.hash = g.hash
         WHERE g.chain_id = :chain AND g.address = :address AND {range g.nonce} AND g.hash IS NOT NULL AND k.hash IS NULL AND NOT t.unsigned
        """,
        Kind(
            "G3",
            "journal-signed-more",
            "the signer gave out the transaction {hash} for nonce {nonce} of account {account}, which is none of the attempts: bytes nobody watches may be out",
            ("nonce_reservation account_id nonce",),
        ),
    ),
    Check(
        """
        SELECT a.account_id, g.nonce, g.token FROM signer.signature g JOIN account a ON a.account_id = :account
          LEFT JOIN lease_generation l ON l.account_id = :account AND l.token = g.token
         WHERE g.chain_id = :chain AND g.address = :address AND {range g.nonce} AND l.token IS NULL
        """,
        Kind(
            "G6",
            "signed-for-nobody",
            "the signer signed nonce {nonce} of account {account} for generation {token}, which no lease generation ever had: somebody asked who never held the lease",
            ("account account_id",),
        ),
    ),
)


def is_elsewhere(cut: Slice, account: int) -> bool:
    """Whether the journal in this database has never seen an account that has signed."""
    return bool(cut.rows(_UNKNOWN, account=account))
