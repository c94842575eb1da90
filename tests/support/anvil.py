"""The real anvil (and cast), to compare with: found, or fetched once by npm, or named as missing."""

import ctypes
import fcntl
import functools
import os
import platform
import shutil
import signal
import subprocess
from pathlib import Path

from tests.support.devnet import ROOT, NodeProcess

VERSION = "1.7.1"
CACHE = ROOT / ".cache" / "anvil"
NPM_SECONDS = 120


@functools.cache
def foundry_binary(name: str) -> tuple[Path | None, str]:
    """The binary of a Foundry tool, or None and the reason. Never npm's node wrapper around it.

    Looked for in FENCED_ANVIL (FENCED_CAST …), then in .cache/anvil, which npm fills once if it can.
    """
    variable = f"FENCED_{name.upper()}"
    if named := os.environ.get(variable):
        path = Path(named)
        return (path, "") if os.access(path, os.X_OK) else (None, f"{variable} names no program: {named}")
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine())
    package = f"@foundry-rs/{name}-{platform.system().lower()}-{machine}"
    path = CACHE / "node_modules" / package / "bin" / name
    trouble = _install(name, path)
    return (None, trouble) if trouble else (path, "")


def _install(name: str, path: Path) -> str:
    """Wait for whoever is at it, since a file is there before it is whole; fetch what is missing. The trouble, if any."""
    CACHE.mkdir(parents=True, exist_ok=True)
    missing = CACHE / f"{name}-{VERSION}.missing"
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.access(path, os.X_OK):
            return ""
        if shutil.which("npm") is None:
            return f"no {name}: npm is not installed (or set FENCED_{name.upper()})"
        if missing.exists():  # tried before: do not wait for a network that is not there in every worker
            return missing.read_text()
        command = ["npm", "install", "--prefix", str(CACHE), "--ignore-scripts", "--no-audit", "--no-fund"]
        environment = os.environ | {"npm_config_cache": str(ROOT / ".cache" / "npm")}
        try:
            done = subprocess.run(
                [*command, f"@foundry-rs/{name}@{VERSION}"],
                env=environment,
                capture_output=True,
                text=True,
                timeout=NPM_SECONDS,
                check=False,
            )
            told = done.stderr.strip().splitlines()[-1:] or ["the package holds no binary for this machine"]
        except subprocess.TimeoutExpired:
            told = [f"no answer in {NPM_SECONDS} s"]
        if os.access(path, os.X_OK):
            return ""
        trouble = f"no {name} {VERSION}: npm could not fetch it: {told[0]} (delete {missing.name} to try again)"
        missing.write_text(trouble)
        return trouble


def anvil_binary() -> tuple[Path | None, str]:
    """anvil's path, or None and the reason."""
    return foundry_binary("anvil")


class Anvil(NodeProcess):
    """The real anvil."""

    kind = "anvil"


def _die_with_parent() -> None:
    """In the child before exec: the kernel ends it with the thread that started it (PR_SET_PDEATHSIG)."""
    if platform.system() == "Linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def start_anvil(*flags: str) -> Anvil:
    """anvil on a free port with these flags besides; same face as Devnet. Raises RuntimeError where it is missing.

    Mine with --block-time, or --no-mining and evm_mine: its automine can stop while transactions wait.
    """
    path, trouble = anvil_binary()
    if path is None:
        raise RuntimeError(trouble)
    return Anvil([str(path), "--port", "0", *flags], cwd=ROOT, preexec=_die_with_parent)
