"""How long an audit takes: a hundred thousand ended executions with real signatures, carried out by a real node."""

import time
from dataclasses import dataclass

import psycopg

from devnet.accounts import development_accounts
from executor import migration
from executor.audit import audit
from tests.audit import bulk
from tests.bench.ground import CHAIN_ID, Ground
from tests.support.devnet import start_devnet

_ACCOUNTS = 4


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall time of the audit of the rows and signatures alone, and with the chain beside them; how long it took to make them."""

    rows: float
    chain: float
    made: float


def seconds(ground: Ground, count: int) -> Seconds:
    """Audit `count` executions twice. Raises AssertionError for a violation: the rows are legal."""
    with psycopg.connect(ground.server.conninfo("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE audited")
    url = ground.server.url("audited")
    migration.upgrade(url)
    keys = [account.key for account in development_accounts(_ACCOUNTS)]
    began = time.monotonic()
    with start_devnet("--no-mining", "--gas-limit", "30000000", "--silent") as node:
        with psycopg.connect(ground.server.conninfo("audited"), autocommit=True) as connection:
            bulk.fill(connection, count, keys, CHAIN_ID, node)
        made = time.monotonic() - began
        reports = [audit(url, None), audit(url, {CHAIN_ID: [node.url]})]
    for report in reports:
        assert report.clean, report.violations
        assert report.counts["transactions_decoded"] == count
    return Seconds(reports[0].seconds, reports[1].seconds, made)
