"""The order of an audit: the whole tables, executions and nonces in slices, journal, history, chains."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from typing import Any

from executor.audit import generations, journal, lives, notices, onchain, signatures, walks
from executor.audit.catalogue import ACCOUNT, EXECUTIONS, NONCES, WHOLE
from executor.audit.node import Node
from executor.audit.reading import Range, Reader, Slice
from executor.audit.report import AuditReport, Findings
from executor.errors import Unreachable

_COUNTS = """
SELECT (SELECT count(*) FROM account) AS accounts,
       (SELECT count(*) FROM execution) AS executions,
       (SELECT count(*) FROM nonce_reservation) AS reservations,
       (SELECT count(*) FROM acknowledged_nonce k) AS nonces_used_elsewhere,
       (SELECT count(*) FROM attempt) AS attempts,
       (SELECT count(*) FROM attempt WHERE status IN ('MINED', 'FINAL')) AS transactions_mined,
       (SELECT count(*) FROM already_paid) AS already_paid,
       (SELECT count(*) FROM lease_generation) AS lease_generations
"""
_HOLES = """
SELECT coalesce(sum(p.high + 1 - a.first_nonce - p.found), 0)::bigint AS holes FROM account a JOIN (
  SELECT account_id, max(nonce) AS high, count(*) AS found FROM (
    SELECT account_id, nonce FROM nonce_reservation UNION ALL SELECT account_id, nonce FROM acknowledged_nonce k) present
   GROUP BY account_id) p USING (account_id)
"""
_GROUPS = {
    "executions_by_state": "SELECT state AS key, count(*) AS found FROM execution GROUP BY state ORDER BY state",
    "stale_writes_refused": "SELECT constraint_name AS key, count(*) AS found FROM refused_write GROUP BY 1 ORDER BY 1",
    "executions_waiting_for": lives.WAITING,
}
_EXECUTION_KEYS = """
SELECT key FROM (SELECT execution_id AS key, row_number() OVER (ORDER BY execution_id) AS n FROM execution) numbered
 WHERE n % :every = 0 ORDER BY key
"""
_NONCE_KEYS = """
SELECT key FROM (SELECT nonce AS key, row_number() OVER (ORDER BY nonce) AS n FROM nonce_reservation WHERE account_id = :account) numbered
 WHERE n % :every = 0 ORDER BY key
"""
_ACCOUNTS = "SELECT account_id, name, chain_id, address FROM account ORDER BY account_id"
_TESTED = (
    "G4: rows are written after a send, so they cannot show what went out before; the recording proxy of the tests does.",
    "G8: a crash that lost nothing leaves no trace; the fault tests prove it.",
)
_ALONE = 20_000
"""How many attempts are read back in this process; more are read by processes of their own."""
_PROCESSES = 2


def audit(database_url: str, chains: Mapping[int, Sequence[str]] | None) -> AuditReport:
    """Check every promise that rows and chain can show, row by row; write nothing.

    `chains` gives endpoint addresses by chain id; a chain that is not given is not compared, and the report says so. It
    may run beside working workers: it reads in short snapshots of 10,000 executions or nonces.

    Raises:
        Unreachable: the database or a given chain does not answer, or a process of the audit was ended.
        ConfigError: the database was never migrated, or an endpoint serves another chain.
    """
    started = time.monotonic()
    with Reader(database_url) as reader, ExitStack() as stack:
        with reader.slice() as cut:
            counts, accounts = _count(cut), cut.rows(_ACCOUNTS)
        findings = Findings({account["account_id"]: account["name"] for account in accounts})
        parts = {
            account["account_id"]: reader.ranges(_NONCE_KEYS, -1, account=account["account_id"]) for account in accounts
        }
        bytes_read = _start_reading(stack, database_url, counts["attempts"], parts)
        _check_rows(reader, accounts, parts, findings)
        generations.check_history(reader, findings)
        with reader.slice() as cut:
            notices.look_alikes(cut, findings)
        _check_chains(reader, accounts, parts, chains or {}, findings)
        if bytes_read is None:
            for account, its in parts.items():
                for part in its:
                    signatures.check_bytes(reader, part, account, findings)
        try:
            for one in bytes_read or ():
                findings.merge(one.result())
        except BrokenProcessPool:
            raise Unreachable(
                "a process that reads signatures back was ended from outside; look at the machine's memory and ask again."
            ) from None
    findings.not_checked += _TESTED
    return AuditReport(
        counts={**counts, **findings.counts},
        violations=findings.violations(),
        notices=findings.notices,
        not_checked=findings.not_checked,
        seconds=time.monotonic() - started,
    )


def _count(cut: Slice) -> dict[str, Any]:
    counts = {**cut.row(_COUNTS), **cut.row(_HOLES)}
    return counts | {name: {row["key"]: row["found"] for row in cut.rows(sql)} for name, sql in _GROUPS.items()}


def _start_reading(
    stack: ExitStack, url: str, attempts: int, parts: Mapping[int, Sequence[Range]]
) -> list[Future[Findings]] | None:
    """Where there is much to read back, begin it beside everything else; None where there is little."""
    if attempts <= _ALONE:
        return None
    # Spawned: this process may have threads, and a fork of it their locks.
    pool = ProcessPoolExecutor(_PROCESSES, mp_context=multiprocessing.get_context("spawn"))
    stack.callback(pool.shutdown, cancel_futures=True)
    return [pool.submit(signatures.read_back, url, account, part) for account, its in parts.items() for part in its]


def _check_rows(
    reader: Reader, accounts: Sequence[Mapping[str, Any]], parts: Mapping[int, Sequence[Range]], findings: Findings
) -> None:
    for checks in WHOLE:
        with reader.slice() as cut:
            cut.run(checks, findings)
    for part in reader.ranges(_EXECUTION_KEYS, ""):
        with reader.slice() as cut:
            cut.run(EXECUTIONS, findings, part)
            walks.check_executions(cut, part, findings)
            signatures.check_intents(cut, part, findings)
    with reader.slice() as cut:
        has_journal = cut.row(journal.PRESENT)["present"]
    if not has_journal:
        findings.not_checked.append("G3: the signer's journal is not in this database.")
    for account in accounts:
        _check_account(reader, account, parts[account["account_id"]], has_journal, findings)


def _check_account(
    reader: Reader, account: Mapping[str, Any], parts: Sequence[Range], has_journal: bool, findings: Findings
) -> None:
    number = account["account_id"]
    journaled = {"chain": account["chain_id"], "address": account["address"]}
    with reader.slice() as cut:
        cut.run(ACCOUNT, findings, account=number)
        signatures.check_account(cut, number, findings)
        if has_journal:
            cut.run(journal.ACCOUNT, findings, account=number)
            if journal.is_elsewhere(cut, number):
                findings.not_checked.append(
                    f"G3: the journal in this database has never seen account {account['name']}; its signer keeps it elsewhere."
                )
    for part in parts:
        with reader.slice() as cut:
            cut.run(NONCES, findings, part, account=number)
            walks.check_nonces(cut, part, number, findings)
            if has_journal:
                cut.run(journal.NONCES, findings, part, account=number, **journaled)


def _check_chains(
    reader: Reader,
    accounts: Sequence[Mapping[str, Any]],
    parts: Mapping[int, Sequence[Range]],
    chains: Mapping[int, Sequence[str]],
    findings: Findings,
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
                onchain.check_account(reader, node, account, parts[account], findings)
        finally:
            node.close()
