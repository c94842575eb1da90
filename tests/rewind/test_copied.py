"""The database is copied to a second installation, and both run: the second is halted, the first does not notice."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from executor import embedded_place
from tests.rewind.moving import MovingService
from tests.rewind.servers import Cluster, Servers
from tests.support.postgres import plain_connection
from tests.support.proxy import RecordingProxy
from tests.support.service import ETHER
from tests.support.worker_process import WorkerProcess, wait_for

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("rewind-copied"), pytest.mark.timeout(300)]


def _dumped(source: Cluster, url: str) -> str:
    """pg_dump into an empty database of another cluster."""
    programs = embedded_place.binaries(source.account)
    dump = source.run("pg_dump", "-h", source.home, "-U", "fenced", "fenced")
    target = url.replace("postgresql+psycopg://", "postgresql://", 1)
    command = [str(programs / "psql"), "-v", "ON_ERROR_STOP=1", "-q", target]
    subprocess.run(command, input=dump.stdout, check=True, capture_output=True, cwd="/")
    return url


@pytest.mark.parametrize("way", ["dumped into another cluster", "files copied and promoted"])
def test_the_second_installation_is_halted(
    way: str,
    clusters: Servers,
    install: Callable[..., MovingService],
    empty_database: str,
    tmp_path: Path,
) -> None:
    primary = clusters.primary()
    service = install(primary)
    service.account()
    to = service.pays("rent")
    service.register()
    service.start_worker("first")
    service.wait_state(service.trigger("rent", "before"), "SUCCEEDED")
    if way.startswith("dumped"):
        copy, because = _dumped(primary, empty_database), "copied to another installation"
    else:
        copy, because = clusters.restored(clusters.backup(primary)).url(), "restored or promoted"

    with RecordingProxy(service.node.url) as proxy, plain_connection(copy) as connection:
        second = tmp_path / "second"
        second.mkdir()
        for file in tmp_path.glob("*.py"):
            (second / file.name).write_text(file.read_text())
        key = second / "treasury.key"
        key.touch(0o600)
        key.write_text((tmp_path / "treasury.key").read_text())
        config = second / "fenced.toml"
        config.write_text(service.config_file.read_text().replace(service.proxy.url, proxy.url))
        worker = WorkerProcess("second", config, {"FENCED_TEST_DATABASE": copy.replace("+psycopg", "", 1)})
        try:
            connection.execute(
                "INSERT INTO execution (execution_id, strategy, trigger_key, account_id, revision, payload_digest, state, due_at)"
                " SELECT 'rent/id/on-the-copy', name, 'on-the-copy', account_id, revision, sha256('x'), 'PENDING', now() FROM strategy"
            )
            reason = "SELECT reason FROM account WHERE state = 'halted'"
            wait_for(lambda: connection.execute(reason).fetchone(), 60.0, "the copy is halted")
            found = connection.execute(reason).fetchone()
            assert found is not None
            assert because in found[0]
            wait_for(lambda: "account halted" in worker.log, 30.0, "the worker says so")
            wait_for(
                lambda: connection.execute(
                    "SELECT 1 FROM lease WHERE holder = 'second' AND expires_at > now()"
                ).fetchone(),
                30.0,
                "it holds the account, to answer requests",
            )
            after = service.trigger("rent", "after")
            service.wait_state(after, "SUCCEEDED")
            row = connection.execute("SELECT state FROM execution WHERE trigger_key = 'on-the-copy'").fetchone()
            assert row == ("PENDING",)
            assert proxy.sent == [], "the copy sends nothing"
        finally:
            worker.kill()
    assert service.account_row()["state"] == "open"
    assert service.balance(to) == 2 * (ETHER // 100)
    service.judge()
