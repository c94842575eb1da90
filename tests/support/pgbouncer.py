"""PgBouncer of the Debian package before a test's server: transaction pooling, few server connections."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from executor import embedded
from executor.embedded_process import PORT, ROLE
from tests.support.debian import Unpacked
from tests.support.worker_process import die_with_parent, wait_for


class PgBouncer:
    """Start it from the main thread, as a context manager. It runs as the server's user, since it refuses to be root."""

    def __init__(self, package: Unpacked, server: embedded.Server, *, server_connections: int) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="fenced-pgbouncer-"))
        account = server.place.account
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        # The user may not be able to pass to where the package was unpacked.
        root = self.directory / "package"
        shutil.copytree(package.root, root, symlinks=True)
        config = self.directory / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host={server.place.socket_dir} port={PORT} user={ROLE}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {server_connections}\nmax_client_conn = 500\nlogfile =\n"
        )
        for path in (self.directory, *self.directory.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        as_user = {"user": account.uid, "group": account.gid, "extra_groups": []} if os.geteuid() == 0 else {}
        libraries = Unpacked(root)
        self._log = (self.directory / "log").open("wb")
        self.process = subprocess.Popen(
            [str(libraries.find("sbin/pgbouncer")), str(config)],
            env={"PATH": os.defpath, **libraries.environment},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=die_with_parent,  # noqa: PLW1509  (one system call, no lock is taken)
            **as_user,  # type: ignore[arg-type]  # what root may say besides
        )
        try:
            wait_for(self._answers, 30, "pgbouncer listens")
        except BaseException as error:
            self.close()
            raise AssertionError(f"pgbouncer did not start: {error}\n{self.log}") from None

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace") if self.directory.exists() else ""

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of `database` by way of the pooler."""
        return f"postgresql+psycopg://{ROLE}@127.0.0.1:{self.port}/{database}?sslmode=disable&gssencmode=disable"

    def close(self) -> None:
        self.process.kill()
        self.process.wait(10)
        self._log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _k: type[BaseException] | None, _v: BaseException | None, _t: TracebackType | None) -> None:
        self.close()

    def _answers(self) -> bool:
        assert self.process.poll() is None, "it ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
