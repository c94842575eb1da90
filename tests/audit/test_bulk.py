"""The audit of many executions: read back by processes of its own, beside a chain that carried them out."""

import psycopg
import pytest

from devnet.accounts import development_accounts
from executor.audit import audit, reading, run
from tests.audit import bulk
from tests.audit.conftest import plain
from tests.audit.planting import names
from tests.support.devnet import start_devnet

COUNT = 1_500


@pytest.mark.xdist_group("audit-bulk")
def test_thousands_are_clean_and_one_wrong_byte_is_found(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_ALONE", 100)
    monkeypatch.setattr(reading, "SLICE", 400)
    keys = [account.key for account in development_accounts(3)]
    with (
        start_devnet("--no-mining", "--gas-limit", "30000000", "--silent") as node,
        psycopg.connect(plain(database_url), autocommit=True) as connection,
    ):
        bulk.fill(connection, COUNT, keys, 31337, node)
        report = audit(database_url, {31337: [node.url]})
        assert report.violations == []
        looked = {
            name: report.counts[name] for name in ("transactions_decoded", "transactions_on_chain", "receipts_compared")
        }
        assert set(looked.values()) == {COUNT}
        connection.execute("ALTER TABLE intent DISABLE TRIGGER ALL")
        connection.execute("UPDATE intent SET value = value + 1 WHERE value = 700")
        (found,) = audit(database_url, None).violations
    assert (found.kind, names([found], "attempt account_id=1 nonce=233 seq=0")) == ("other-call", True)


def test_violations_found_by_several_processes_are_counted_as_one_kind(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_ALONE", 10)
    monkeypatch.setattr(reading, "SLICE", 15)
    with psycopg.connect(plain(database_url), autocommit=True) as connection:
        bulk.fill(connection, 30, [development_accounts(1)[0].key], 31337)
        connection.execute("ALTER TABLE intent DISABLE TRIGGER ALL")
        connection.execute("UPDATE intent SET value = value + 1")
    found = audit(database_url, None).violations
    assert {violation.kind for violation in found} == {"other-call"}
    assert (len(found), found[-1].found) == (21, {"more": 10})
