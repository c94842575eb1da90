"""G3 beside the signer's own journal, where it lives in the same database: it must bind what the rows bind."""

from executor.audit.reading import Check, Reader
from executor.audit.report import Findings

_PRESENT = "SELECT to_regclass('signer.binding') IS NOT NULL AS present"
_UNKNOWN = """
SELECT a.name FROM account a WHERE EXISTS (SELECT 1 FROM attempt t WHERE t.account_id = a.account_id AND t.raw IS NOT NULL)
   AND NOT EXISTS (SELECT 1 FROM signer.account s WHERE (s.chain_id, s.address) = (a.chain_id, a.address)) ORDER BY a.name
"""
_CHECKS = (
    Check(
        "G3",
        "the signer's journal binds nonce {nonce} of account {account} to step {bound_step} of {bound_execution}, the rows to"
        " step {step} of {execution_id}",
        """
        SELECT a.name AS account, b.nonce, b.execution_id AS bound_execution, b.step AS bound_step, r.execution_id, r.step
          FROM signer.binding b JOIN account a ON (a.chain_id, a.address) = (b.chain_id, b.address)
          LEFT JOIN nonce_reservation r ON (r.account_id, r.nonce) = (a.account_id, b.nonce)
         WHERE (r.execution_id, r.step) IS DISTINCT FROM (b.execution_id, b.step)
           AND NOT EXISTS (SELECT 1 FROM acknowledged_nonce k WHERE (k.account_id, k.nonce) = (a.account_id, b.nonce))
           AND b.nonce >= coalesce(a.first_nonce, 0)
        """,
    ),
    Check(
        "G3",
        "the signer's journal binds nonce {nonce} of account {account} to another intent than the rows",
        """
        SELECT a.name AS account, b.nonce, b.execution_id, b.step, b.state, b.digest, r.intent_digest
          FROM signer.binding b JOIN account a ON (a.chain_id, a.address) = (b.chain_id, b.address)
          JOIN nonce_reservation r ON (r.account_id, r.nonce, r.execution_id, r.step) = (a.account_id, b.nonce, b.execution_id, b.step)
         WHERE b.digest <> r.intent_digest AND NOT (b.state = 'cancel' AND b.digest = a.cancel_digest)
        """,
    ),
    Check(
        "G3",
        "the signer's journal does not know the transaction {hash}, attempt {seq} of nonce {nonce} of account {account}",
        """
        SELECT a.name AS account, t.nonce, t.seq, t.hash FROM attempt t JOIN account a USING (account_id)
          JOIN signer.account s ON (s.chain_id, s.address) = (a.chain_id, a.address)
          LEFT JOIN signer.signature g ON (g.chain_id, g.address, g.nonce, g.hash) = (a.chain_id, a.address, t.nonce, t.hash)
         WHERE t.raw IS NOT NULL AND g.raw IS DISTINCT FROM t.raw
        """,
    ),
)


def check_journal(reader: Reader, findings: Findings) -> None:
    """Compare journal and rows in one snapshot; an account that the journal here has never seen has its journal elsewhere."""
    with reader.slice() as cut:
        if not cut.row(_PRESENT)["present"]:
            findings.not_checked.append("G3: the signer's journal is not in this database.")
            return
        cut.run(_CHECKS, findings)
        findings.not_checked += [
            f"G3: the journal in this database has never seen account {row['name']}; its signer keeps it elsewhere."
            for row in cut.rows(_UNKNOWN)
        ]
