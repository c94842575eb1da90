"""Starts the processes of the embedded PostgreSQL: initdb once, then the postmaster, both holding our lock."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO

from executor.embedded_place import EmbeddedError, Place, account_of, binaries, prepare, private_dir, write_file

ROLE = "fenced"
PORT = 5432
_LOG_BYTES = 8 << 20
_SETTINGS: Mapping[str, str] = MappingProxyType({
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "max_prepared_transactions": "0",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
})  # fmt: skip


def launch(place: Place, lock: int, *, child: bool, fsync: bool) -> tuple[subprocess.Popen[bytes] | None, int]:
    """Start the postmaster under the held `lock`, first making the cluster if there is none.

    Returns the process, None for a daemon, and the offset in the log where its output begins. Does not wait until it
    answers. Raises EmbeddedError if initdb fails or the place cannot be used.
    """
    prepare(place)
    programs = binaries(place.account)
    if place.log.exists() and place.log.stat().st_size > _LOG_BYTES:
        place.log.replace(place.log.with_suffix(".old"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(place.log, flags, 0o600), "ab") as log:
        log_start = log.seek(0, os.SEEK_END)
        if not place.has_cluster():
            _make_cluster(place, programs, lock, log)
        place.record()
        _remove_stale_pid_files(place)
        write_file(place.home / "hba.conf", "local all all peer map=fenced\n")
        users = sorted({place.account.name, account_of(os.geteuid()).name})
        write_file(place.home / "ident.conf", "".join(f'fenced "{user}" {ROLE}\n' for user in users))
        settings = {
            **_SETTINGS,
            "fsync": "on" if fsync else "off",
            "unix_socket_directories": '"{}"'.format(str(place.socket_dir).replace('"', '""')),
            "hba_file": str(place.home / "hba.conf"),
            "ident_file": str(place.home / "ident.conf"),
        }
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(programs / "postgres"), "-D", str(place.data), *arguments]
        process = _spawn(place, "child" if child else "daemon", command, lock, log)
    if child:
        return process, log_start
    process.wait()  # the daemon's forked launcher
    return None, log_start


def _make_cluster(place: Place, programs: Path, lock: int, log: IO[bytes]) -> None:
    """Run initdb beside the data directory and rename the result: a kill leaves no half cluster."""
    new = place.data.with_name("pg.new")
    shutil.rmtree(new, ignore_errors=True)
    private_dir(new, place.account)
    options = ["-U", ROLE, "--auth=peer", "--encoding=UTF8", "--data-checksums"]
    options += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]  # the same order on every system
    process = _spawn(place, "child", [str(programs / "initdb"), "-D", str(new), *options], lock, log)
    if process.wait() != 0:
        raise EmbeddedError(f"initdb failed ({last_line(place)}): see {place.log}.")
    new.rename(place.data)
    _sync(place.home)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _spawn(place: Place, mode: str, command: list[str], lock: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Run `command` by the launcher as the server's user, with the lock inherited and the log as output."""
    launcher = Path(__file__).with_name("embedded_launch.py")
    account = place.account
    interpreter = [sys.executable, "-I", "-S", str(launcher)]
    libraries = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}  # the interpreter's
    return subprocess.Popen(
        [*interpreter, mode, str(os.getpid()), str(account.uid), str(account.gid), *command],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd="/",
        env={"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath, **libraries},
        pass_fds=(lock,),
        start_new_session=True,  # Ctrl-C is for the parent, which still needs its database to drain
    )


def last_line(place: Place, log_start: int = 0) -> str:
    """The last error line of the log, else its last line."""
    with place.log.open("rb") as log:
        log.seek(log_start)
        lines = log.read(1 << 20).decode(errors="replace").splitlines() or ["no output"]
    return next((line for line in reversed(lines) if "FATAL:" in line or "error:" in line), lines[-1]).strip()


def _remove_stale_pid_files(place: Place) -> None:
    """Remove what a killed server left: a process that got its id since would keep PostgreSQL from starting.

    We hold the lock, so no process of a server of ours lives.
    """
    (place.data / "postmaster.pid").unlink(missing_ok=True)
    (place.socket_dir / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)
