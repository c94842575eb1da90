"""The demo's processes: each with a log of its own, in a session of its own, gone when the demo is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TIED = Path(__file__).with_name("tied.py")


@dataclass(frozen=True, slots=True)
class Process:
    """A running program and its log."""

    name: str
    child: subprocess.Popen[bytes]
    log: Path

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self.child.poll() is not None

    @property
    def paused(self) -> bool:
        """Whether it stands still after SIGSTOP."""
        try:
            status = Path(f"/proc/{self.child.pid}/stat").read_text()
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] == "T"

    def resume(self) -> None:
        """Let a paused process go on."""
        self.child.send_signal(signal.SIGCONT)

    def last_words(self) -> str:
        """The last line it wrote, or a dash."""
        with suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else "-"
        return "-"


def start(
    name: str, command: Sequence[str], directory: Path, environment: Mapping[str, str], *, tie: bool = True
) -> Process:
    """Start `python -P command…` in `directory` with its output in `name`.log there.

    `tie` has the kernel end it with this process; without it the program must see to that itself. To be called from the
    main thread: the kernel watches the thread.
    """
    program = [sys.executable, "-P", *command]
    if tie:
        program = [sys.executable, "-I", "-S", str(_TIED), str(os.getpid()), *program]
    log = directory / f"{name}.log"
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FENCED_")}
    with log.open("ab") as output:
        child = subprocess.Popen(
            program,
            cwd=directory,
            env={**kept, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the demo, which ends the others in order
        )
    return Process(name, child, log)


def stop(processes: Sequence[Process], grace_seconds: float) -> None:
    """End all: politely while the grace lasts, then by force. Waits until they are gone."""
    deadline = time.monotonic() + grace_seconds
    living = [process for process in processes if not process.ended]
    for process in living:
        if grace_seconds > 0:
            process.child.send_signal(signal.SIGTERM)
        process.child.send_signal(signal.SIGCONT)
    for process in living:
        with suppress(subprocess.TimeoutExpired):
            process.child.wait(max(0.0, deadline - time.monotonic()))
        if not process.ended:
            process.child.kill()
            process.child.wait()
