"""The order of an audit: the whole tables, executions and nonces in slices, journal, history, chains."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from executor.audit import generations, journal, notices, onchain, outcomes, payments, signatures, slots
from executor.audit.node import Node
from executor.audit.reading import Range, Reader, Slice
from executor.audit.report import AuditReport, Findings

_COUNTS = """
SELECT (SELECT count(*) FROM account) AS accounts,
       (SELECT count(*) FROM execution) AS executions,
       (SELECT count(*) FROM nonce_reservation) AS reservations,
       (SELECT count(*) FROM attempt) AS attempts,
       (SELECT count(*) FROM attempt WHERE status IN ('MINED', 'FINAL')) AS transactions_mined,
       (SELECT count(*) FROM already_paid) AS already_paid,
       (SELECT count(*) FROM lease_generation) AS lease_generations
"""
_HOLES = """
SELECT coalesce(sum(nonce - before - 1), 0) AS holes FROM (
  SELECT r.nonce, coalesce(lag(r.nonce) OVER (PARTITION BY r.account_id ORDER BY r.nonce), a.first_nonce - 1) AS before
    FROM (SELECT account_id, nonce FROM nonce_reservation UNION ALL SELECT account_id, nonce FROM acknowledged_nonce) r
    JOIN account a USING (account_id)) numbered WHERE nonce > before + 1
"""
_GROUPS = {
    "executions_by_state": "SELECT state AS key, count(*) AS found FROM execution GROUP BY state ORDER BY state",
    "stale_writes_refused": "SELECT constraint_name AS key, count(*) AS found FROM refused_write GROUP BY 1 ORDER BY 1",
}
_EXECUTION_KEYS = """
SELECT key FROM (SELECT execution_id AS key, row_number() OVER (ORDER BY execution_id) AS n FROM execution) numbered
 WHERE n % :every = 0 ORDER BY key
"""
_NONCE_KEYS = """
SELECT key FROM (SELECT nonce AS key, row_number() OVER (ORDER BY nonce) AS n FROM nonce_reservation WHERE account_id = :account) numbered
 WHERE n % :every = 0 ORDER BY key
"""
_ACCOUNTS = "SELECT account_id, name, chain_id FROM account ORDER BY account_id"
_TESTED = (
    "G4: rows are written after a send, so they cannot show what went out before; the recording proxy of the tests does.",
    "G8: a crash that lost nothing leaves no trace; the fault tests prove it.",
)


def audit(database_url: str, chains: Mapping[int, Sequence[str]] | None) -> AuditReport:
    """Check every promise that rows and chain can show, row by row; write nothing.

    `chains` gives endpoint addresses by chain id; a chain that is not given is not compared, and the report says so. It
    may run beside working workers: it reads in short snapshots of 10,000 executions or nonces.

    Raises:
        Unreachable: the database or a given chain does not answer.
        ConfigError: the database was never migrated, or an endpoint serves another chain.
    """
    started = time.monotonic()
    findings = Findings()
    with Reader(database_url) as reader:
        with reader.slice() as cut:
            counts, accounts = _count(cut), cut.rows(_ACCOUNTS)
        for checks in (slots.WHOLE, payments.WHOLE, signatures.WHOLE):
            with reader.slice() as cut:
                cut.run(checks, findings)
        for part in reader.ranges(_EXECUTION_KEYS, ""):
            with reader.slice() as cut:
                cut.run((*slots.EXECUTIONS, *payments.EXECUTIONS, *outcomes.EXECUTIONS), findings, part)
                signatures.check_intents(cut, part, findings)
        for account in accounts:
            _check_account(reader, account["account_id"], findings)
        journal.check_journal(reader, findings)
        generations.check_history(reader, findings)
        with reader.slice() as cut:
            notices.look_alikes(cut, findings)
        _check_chains(reader, accounts, chains or {}, findings)
    findings.not_checked += _TESTED
    return AuditReport(
        counts={**counts, **findings.counts},
        violations=findings.violations(),
        notices=findings.notices,
        not_checked=findings.not_checked,
        seconds=time.monotonic() - started,
    )


def _count(cut: Slice) -> dict[str, Any]:
    counts = {**cut.row(_COUNTS), "holes": int(cut.row(_HOLES)["holes"])}
    return counts | {name: {row["key"]: row["found"] for row in cut.rows(sql)} for name, sql in _GROUPS.items()}


def _check_account(reader: Reader, account: int, findings: Findings) -> None:
    with reader.slice() as cut:
        cut.run((*payments.ACCOUNT, *generations.ACCOUNT), findings, account=account)
    for part in _nonces(reader, account):
        with reader.slice() as cut:
            cut.run((*payments.NONCES, *signatures.NONCES, *outcomes.NONCES), findings, part, account=account)
            findings.counts["transactions_decoded"] += signatures.check_bytes(cut, part, account, findings)


def _nonces(reader: Reader, account: int) -> list[Range]:
    return reader.ranges(_NONCE_KEYS, -1, account=account)


def _check_chains(
    reader: Reader, accounts: Sequence[Mapping[str, Any]], chains: Mapping[int, Sequence[str]], findings: Findings
) -> None:
    missing = Counter(account["chain_id"] for account in accounts if account["chain_id"] not in chains)
    findings.not_checked += [
        f"G7, G10: no endpoint of chain {chain_id} was given; {found} accounts were not compared with it."
        for chain_id, found in sorted(missing.items())
    ]
    for chain_id, urls in sorted(chains.items()):
        concerned = [account["account_id"] for account in accounts if account["chain_id"] == chain_id]
        if not concerned:
            continue
        node = Node(chain_id, urls)
        try:
            for account in concerned:
                onchain.check_account(reader, node, account, _nonces(reader, account), findings)
        finally:
            node.close()
