"""`fenced doctor` on servers whose settings void the promises, on a replica, and beside standbys that do or do not have every commit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.desk import Desk, furnished
from tests.rewind.servers import Cluster, Servers
from tests.support.worker_process import wait_for

pytestmark = [pytest.mark.xdist_group("rewind-doctor"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def primary(clusters: Servers) -> Iterator[Cluster]:
    made = clusters.primary()
    yield made
    made.stop()


@pytest.fixture
def desk(tmp_path: Path, primary: Cluster) -> Desk:
    made = furnished(tmp_path, primary.url())
    made.fine("migrate")
    return made


def verdicts(desk: Desk) -> dict[str, tuple[str, str]]:
    return {check["name"]: (check["verdict"], check["detail"]) for check in desk.run("doctor", "--json").json}


def configured(cluster: Cluster, desk: Desk, **settings: str) -> dict[str, tuple[str, str]]:
    """What doctor says while the server runs with these settings."""
    try:
        for name, value in settings.items():
            cluster.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        cluster.execute("SELECT pg_reload_conf()")
        for name, value in settings.items():
            wait_for(lambda n=name, v=value: cluster.execute(f"SHOW {n}") == [(v,)], 30.0, name)  # type: ignore[misc]
        return verdicts(desk)
    finally:
        cluster.execute("ALTER SYSTEM RESET ALL")
        cluster.execute("SELECT pg_reload_conf()")
        for name, value in settings.items():
            wait_for(lambda n=name, v=value: cluster.execute(f"SHOW {n}") != [(v,)], 30.0, name)  # type: ignore[misc]


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit"])
def test_a_server_that_can_lose_commits(primary: Cluster, desk: Desk, setting: str) -> None:
    assert configured(primary, desk, **{setting: "off"})[setting][0] == "bad"
    assert verdicts(desk)[setting][0] == "ok"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("ROLE fenced {} synchronous_commit", "off for role fenced"),
        ("DATABASE fenced {} synchronous_commit", "off for database fenced"),
        ("ROLE fenced IN DATABASE fenced {} synchronous_commit", "off for role fenced"),
    ],
)
def test_a_role_or_database_that_turns_synchronous_commit_off(
    primary: Cluster, desk: Desk, change: str, told: str
) -> None:
    primary.execute(f"ALTER {change.format('SET')} = off")
    try:
        verdict, detail = verdicts(desk)["synchronous_commit"]
        assert (verdict, told in detail) == ("bad", True)
    finally:
        primary.execute(f"ALTER {change.format('RESET')}")


def test_standbys_that_lose_commits_and_a_replica(
    clusters: Servers, primary: Cluster, desk: Desk, tmp_path: Path
) -> None:
    assert verdicts(desk)["standbys"] == ("ok", "none is attached")
    verdict, detail = configured(primary, desk, synchronous_standby_names="ghost")["standbys"]
    assert (verdict, "nobody is there" in detail) == ("warn", True)
    standby = clusters.standby(primary)
    verdict, detail = verdicts(desk)["standbys"]
    assert (verdict, "its promotion loses commits" in detail) == ("warn", True)
    verdict, detail = configured(primary, desk, synchronous_standby_names="*")["standbys"]
    assert (verdict, "has every commit: promote that one" in detail) == ("ok", True)

    replica = tmp_path / "replica"
    replica.mkdir()
    found = verdicts(furnished(replica, standby.url()))
    assert found["primary"][0] == "bad"
    assert "a standby" in found["primary"][1]
    assert "is a standby" in furnished(replica, standby.url()).fails(1, "status")
    standby.stop()


def test_the_journal_in_the_same_cluster_is_worth_a_look(desk: Desk) -> None:
    """P13."""
    assert verdicts(desk)["signer's journal"][0] == "warn"


def test_a_promoted_database_is_named_by_doctor_and_status(
    clusters: Servers, primary: Cluster, desk: Desk, tmp_path: Path
) -> None:
    desk.fine("apply")
    promoted = clusters.restored(clusters.backup(primary))
    directory = tmp_path / "promoted"
    directory.mkdir()
    after = furnished(directory, promoted.url())
    verdict, detail = verdicts(after)["identity"]
    assert verdict == "bad"
    assert "treasury: the database is on timeline 2, last reconciled on 1: restored or promoted" in detail
    told = after.run("status").out
    assert "restored or promoted; its next holder halts it" in told
    assert 'fenced reopen treasury --why "…"' in told
    # Another account, registered now, is one that the lost tail may have used too.
    text = (directory / "fenced.toml").read_text()
    second = text[text.index("[accounts.treasury]") : text.index("[strategies.payroll]")]
    second = second.replace("treasury", "savings", 1).replace("[accounts.treasury.policy]", "[accounts.savings.policy]")
    second = second.replace("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8")
    after.write("fenced.toml", text + second)
    after.fine("apply")
    assert "savings: the database is on timeline 2" in after.run("status").out
    promoted.stop()
