"""Programs of Debian's packages that tests run (PgBouncer, libfaketime): unpacked once below .cache, never installed, or named as missing.

Fetched with apt from the archives the machine already trusts; no root is needed.
"""

import fcntl
import functools
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.devnet import ROOT

CACHE = ROOT / ".cache" / "debian"
_SECONDS = 120
_NEEDS = {"pgbouncer": ("libc-ares2", "libevent-2.1-7"), "libfaketime": ()}
"""Packages with the libraries that a machine may lack; the others are on every Debian."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Where a package lies. `environment` lets its programs find their libraries."""

    root: Path

    def find(self, name: str) -> Path:
        """The file whose path ends so ("sbin/pgbouncer"). Raises FileNotFoundError."""
        for found in self.root.rglob(name):
            if found.is_file():
                return found
        raise FileNotFoundError(f"{name} is not in {self.root}")

    @property
    def environment(self) -> dict[str, str]:
        """Variables to add when its programs are started."""
        folders = sorted({str(library.parent) for library in self.root.rglob("*.so*")})
        return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}


@functools.cache
def debian_package(name: str) -> tuple[Unpacked | None, str]:
    """A package of _NEEDS unpacked, or None and the reason why there is none on this machine."""
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            return None, f"no {name}: {program} is not installed (tests with it run on Debian)"
    place = CACHE / name
    place.mkdir(parents=True, exist_ok=True)
    done, missing = place / "unpacked", place / "missing"
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            if missing.exists():  # tried before: do not wait for a network that is not there in every worker
                return None, missing.read_text()
            trouble = _unpack(name, place)
            if trouble:
                told = f"no {name}: apt could not fetch it: {trouble} (delete {missing} to try again)"
                missing.write_text(told)
                return None, told
            done.touch()
    return Unpacked(place / "root"), ""


def _unpack(name: str, place: Path) -> str:
    for folder in ("state/lists/partial", "cache/archives/partial", "packages", "root"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    own = ["-o", f"Dir::State={place / 'state'}", "-o", f"Dir::Cache={place / 'cache'}"]
    own += ["-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=", "-qq"]
    steps = [["apt-get", *own, "update"], ["apt-get", *own, "download", name, *_NEEDS[name]]]
    try:
        for step in steps:
            subprocess.run(step, cwd=place / "packages", check=True, capture_output=True, text=True, timeout=_SECONDS)
        for package in sorted((place / "packages").glob("*.deb")):
            unpack = ["dpkg-deb", "-x", str(package), str(place / "root")]
            subprocess.run(unpack, check=True, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer in {_SECONDS} s"
    except subprocess.CalledProcessError as error:
        return (str(error.stderr).strip().splitlines() or [f"exit code {error.returncode}"])[-1]
    shutil.rmtree(place / "state", ignore_errors=True)
    return ""
