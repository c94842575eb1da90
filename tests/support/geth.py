"""A real geth in developer mode, to compare with where one is installed; building one takes minutes, so tests never do."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.support.devnet import ROOT, NodeProcess

DEVELOPER_KEY = "0xb71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291"  # funded in every geth --dev
CHAIN_ID, GAS_LIMIT = 1337, 11_500_000
NEVER = 10**8
_ENDPOINT = re.compile(r"HTTP server started\s+endpoint=([0-9.]+):(\d+)")


def geth_binary() -> tuple[Path | None, str]:
    """geth's path, or None and the reason. Looked for in FENCED_GETH, on PATH and where `go install` puts it."""
    places = [os.environ.get("FENCED_GETH"), shutil.which("geth"), str(Path.home() / "go" / "bin" / "geth")]
    for place in places:
        if place and os.access(place, os.X_OK):
            return Path(place), ""
    return None, "no geth: go install github.com/ethereum/go-ethereum/cmd/geth@latest (or set FENCED_GETH)"


class Geth(NodeProcess):
    """The real geth."""

    kind = "geth"

    def address_in(self, line: str) -> tuple[str, int] | None:
        """Where it listens, from its log."""
        found = _ENDPOINT.search(line)
        return (found[1], int(found[2])) if found else None


def start_geth(folder: Path, genesis: Path, *, mines: bool) -> Geth:
    """geth --dev on a free port over a data folder; a block with each submission, or none at all.

    A new folder begins with the genesis given: geth's own for developers has forks that are on no network yet.

    Raises RuntimeError where it is missing.
    """
    path, trouble = geth_binary()
    if path is None:
        raise RuntimeError(trouble)
    if not (folder / "geth").exists():
        subprocess.run([str(path), "init", "--datadir", str(folder), str(genesis)], check=True, capture_output=True)
    quiet = (
        "--ipcdisable",
        "--nodiscover",
        "--maxpeers",
        "0",
        "--authrpc.port",
        "0",
        "--port",
        "0",
        "--verbosity",
        "3",
    )
    serve = ("--http", "--http.port", "0", "--http.api", "eth,net,web3,txpool,debug,dev")
    period, limit = "0" if mines else str(NEVER), str(GAS_LIMIT)
    return Geth(
        [
            str(path),
            "--dev",
            "--dev.period",
            period,
            "--miner.gaslimit",
            limit,
            "--datadir",
            str(folder),
            *serve,
            *quiet,
        ],
        cwd=ROOT,
    )
