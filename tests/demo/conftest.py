"""The demo as a person starts it, in surroundings that are as poor as may be, and a look for what it left."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.devnet import ROOT


class Demo:
    """A running demo. Its temporary directory is its own, so that whatever it leaves is found there or by its name."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._home = place / "home"
        self._home.mkdir(mode=0o555)
        self._temporary = place / "tmp"
        self._temporary.mkdir()
        # No npm, no git, nothing in PATH, a home that cannot be written to, and no XDG_RUNTIME_DIR.
        environment = {
            "PATH": "/nonexistent",
            "HOME": str(self._home),
            "TMPDIR": str(self._temporary),
            "LANG": "C.UTF-8",
        }
        self._output = (place / "output").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "executor", "demo"],
            cwd="/",
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def output(self) -> str:
        """What it has told so far."""
        return (self.place / "output").read_text()

    def wait_for(self, words: str, seconds: float = 60) -> None:
        """Wait until it has told this."""
        deadline = time.monotonic() + seconds
        while words not in self.output():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.05)

    def wait(self, seconds: float) -> int:
        """Its exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the demo did not end: {self.output()}")

    def left_processes(self) -> list[str]:
        """The command lines of processes that name its directory, in arguments or environment."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and entry.name != str(self.process.pid):
                with suppress(OSError):
                    line = (entry / "cmdline").read_bytes()
                    if str(self.place).encode() in line + (entry / "environ").read_bytes():
                        found.append(line.replace(b"\0", b" ").decode(errors="replace"))
        return found

    def left_files(self) -> list[str]:
        """What lies in its temporary directory and its home."""
        return [str(path) for place in (self._temporary, self._home) for path in place.iterdir()]

    def end(self) -> None:
        """Kill it, however it stands."""
        self.process.kill()
        self.process.wait()
        self._output.close()


@pytest.fixture
def demo() -> Iterator[Demo]:
    """A demo that has just been started, while something else listens where nodes usually do."""
    # Not below pytest's own directory: that is closed to the user the database runs as when pytest is root.
    place = Path(tempfile.mkdtemp(prefix="fenced-test-demo-"))
    place.chmod(0o711)
    with socket.socket() as taken:
        with suppress(OSError):  # then somebody else has it already
            taken.bind(("127.0.0.1", 8545))
            taken.listen()
        started = Demo(place)
        try:
            yield started
        finally:
            started.end()
            shutil.rmtree(place, ignore_errors=True)
