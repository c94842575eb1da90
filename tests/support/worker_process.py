"""A worker as a real process that can be killed, frozen and thawed, and that never outlives pytest.

Most are forked from a server that has imported the program already, since importing costs more than what is tested;
`fresh` ones are a new interpreter running the command line, as in production.
"""

import contextlib
import ctypes
import faulthandler
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from pathlib import Path

from tests.support.devnet import ROOT

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.support.forked_program"])


def wait_for(condition: Callable[[], object], seconds: float, what: str, pause: float = 0.02) -> None:
    """Poll every `pause` seconds until `condition` is true. Raises AssertionError naming `what` when it is not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)


class WorkerProcess:
    """A running worker called `name`; `crash` arms a crash point ("sign.stored:kill"), which fires while there is no `marker`.

    Its output goes to `log`. A context is not needed: it ends with pytest, and `kill` may be called at any time.
    """

    def __init__(
        self,
        name: str,
        config: Path,
        environment: Mapping[str, str],
        *,
        crash: str | None = None,
        marker: Path | None = None,
        fresh: bool = False,
    ) -> None:
        self.name = name
        self.log_file = config.parent / f"{name}.log"
        self.marker = marker or config.parent / f"{name}.crashed"
        armed = {} if crash is None else {"FENCED_CRASH": f"{crash}:{self.marker}"}
        changes = {**environment, **armed}
        self._forked: multiprocessing.context.ForkServerProcess | None = None
        self._popened: subprocess.Popen[bytes] | None = None
        if fresh:
            with self.log_file.open("ab") as log:
                self._popened = subprocess.Popen(
                    [sys.executable, "-m", "executor", "run", "--config", str(config), "--name", name],
                    cwd=ROOT,
                    env=os.environ | changes,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=die_with_parent,  # noqa: PLW1509  (one system call, no lock is taken)
                )
            self.pid = self._popened.pid
        else:
            arguments = (name, str(config), str(self.log_file), changes)
            self._forked = _FORKS.Process(target=_run, args=arguments, daemon=True)
            self._forked.start()
            assert self._forked.pid is not None
            self.pid = self._forked.pid

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def exit_code(self) -> int | None:
        """Its exit code, minus the signal that ended it; None while it runs or is frozen."""
        return self._popened.poll() if self._popened is not None else self._forked.exitcode if self._forked else None

    @property
    def is_frozen(self) -> bool:
        """Whether it is stopped by SIGSTOP."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        except OSError:
            return False

    def pause(self) -> None:
        """SIGSTOP, and wait until it stands still."""
        os.kill(self.pid, signal.SIGSTOP)
        self.wait_frozen()

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM: end politely."""
        self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, frozen or not, and wait."""
        if self.exit_code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.wait_ended()

    def wait_ended(self, seconds: float = 30.0) -> int:
        """Wait for its end; the exit code. Raises AssertionError with the stacks of a forked worker that does not end."""
        try:
            wait_for(lambda: self.exit_code is not None, seconds, f"the end of worker {self.name}")
        except AssertionError as error:
            if self._forked is not None:
                os.kill(self.pid, signal.SIGUSR1)
                with contextlib.suppress(AssertionError):
                    wait_for(lambda: "most recent call first" in self.log, 2.0, "stacks")
            raise AssertionError(f"{error}\n{self.log[-8000:]}") from None
        assert self.exit_code is not None
        return self.exit_code

    def wait_frozen(self, seconds: float = 20.0) -> None:
        """Wait until it is stopped by SIGSTOP."""
        wait_for(lambda: self.is_frozen, seconds, f"worker {self.name} stands still")


def die_with_parent() -> None:
    """The kernel ends this process with the one that started it (PR_SET_PDEATHSIG)."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def _run(name: str, config: str, log: str, environment: Mapping[str, str]) -> None:
    """In the forked process: what `fenced run` does."""
    die_with_parent()
    # The server ends when this pipe has no writer left: pytest must be the only one.
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    os.environ.update(environment)
    from executor import app
    from executor.config import load
    from executor.errors import ExecutorError

    try:
        code = app.run_worker(load(Path(config)), name=name)
    except ExecutorError as error:
        print(error, file=sys.stderr, flush=True)
        code = 2
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)
