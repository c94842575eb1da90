"""JavaScript clients (viem, ethers, hardhat-network-helpers): installed once by npm, or named as missing."""

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.support.devnet import ROOT, NodeProcess

SCRIPTS = ROOT / "tests" / "devnet" / "clients"
CACHE = ROOT / ".cache" / "npm-clients"
NPM_SECONDS = 120
SCRIPT_SECONDS = 90


@functools.cache
def client_modules() -> tuple[Path | None, str]:
    """The node_modules of clients/package-lock.json, or None and the reason."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            return None, f"no JavaScript clients: {program} is not installed"
    lock = (SCRIPTS / "package-lock.json").read_bytes()
    place = CACHE / hashlib.sha256(lock).hexdigest()[:12]  # another lock, another installation
    place.mkdir(parents=True, exist_ok=True)
    installed, missing = place / "installed", place / "missing"
    with (place / ".lock").open("w") as exclusive:
        fcntl.flock(exclusive, fcntl.LOCK_EX)
        if not installed.exists():
            if missing.exists():  # tried before: do not wait for a network that is not there in every worker
                return None, missing.read_text()
            trouble = _install(place)
            if trouble:
                text = f"no JavaScript clients: npm could not fetch them: {trouble} (delete {missing} to try again)"
                missing.write_text(text)
                return None, text
            installed.touch()
    return place / "node_modules", ""


def _install(place: Path) -> str:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SCRIPTS / name, place)
    # Without its peer `hardhat`, a whole node of its own, for which clients/stub stands in.
    command = ["npm", "ci", "--prefix", str(place), "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund"]
    environment = os.environ | {"npm_config_cache": str(ROOT / ".cache" / "npm")}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=NPM_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {NPM_SECONDS} s"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def run_steps(script: str, modules: Path, node: NodeProcess, contracts: dict[str, Any]) -> dict[str, str | None]:
    """Run clients/<script>.cjs against a node: each step's error by name, None where it went well.

    `contracts` (abi and bytecode by name) are what the script deploys. A script that ends early raises RuntimeError.
    """
    environment = os.environ | {"NODE_PATH": os.pathsep.join([str(modules), str(SCRIPTS / "stub")])}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(contracts, file)
        file.flush()
        done = subprocess.run(
            ["node", str(SCRIPTS / f"{script}.cjs"), node.url, file.name],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"{script}.cjs ended with {done.returncode}: {done.stderr[-2000:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["step"]: line.get("error") for line in lines}
