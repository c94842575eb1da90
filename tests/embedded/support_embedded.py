"""What the tests of the embedded server share: a state directory, programs in processes of their own, waiting."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from executor import embedded

ROOT = Path(__file__).parents[2]
AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="needs root, to act as several users")


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """An absent cluster's state directory: short, and open to the server's user when pytest is root."""
    path = Path(tempfile.mkdtemp(prefix="fenced-test-"))
    path.chmod(0o711)
    yield path
    with suppress(embedded.EmbeddedError):
        embedded.stop(path)
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def finished_cluster() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="fenced-test-"))
    path.chmod(0o711)
    embedded.start(path, child=True).close()
    yield path
    shutil.rmtree(path)


@pytest.fixture
def cluster(state_dir: Path, finished_cluster: Path) -> Path:
    """A state directory that has its cluster already, which saves the initdb."""
    subprocess.run(["cp", "-a", "--reflink=auto", finished_cluster / "pg", state_dir / "pg"], check=True)
    return state_dir


def python(code: str, *arguments: object) -> list[str]:
    """The command line that runs `code` with this interpreter."""
    return [sys.executable, "-c", code, *map(str, arguments)]


def spawn(command: list[str], *, stdin: int | None = None, stderr: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True)


def output(command: list[str]) -> str:
    """What the command printed; fails unless it ended well within 30 seconds."""
    process = spawn(command)
    printed, _ = process.communicate(timeout=30)
    assert process.returncode == 0, printed
    return printed.strip()


def in_namespaces(kinds: str, command: list[str]) -> list[str]:
    """`command` in new namespaces (options of unshare); skips the test aloud where they are not permitted."""
    prefix = ["unshare", *kinds.split(), "--fork"]
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("unshare is not permitted here: other containers cannot be imitated")
    return [*prefix, *command]


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
