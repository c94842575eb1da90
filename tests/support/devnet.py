"""The devnet as tests start it: from the repository's root, whatever their own directory is."""

from pathlib import Path

from devnet.testing import Devnet, NodeProcess, RpcFailure

ROOT = Path(__file__).resolve().parents[2]

__all__ = ["ROOT", "Devnet", "NodeProcess", "RpcFailure", "start_devnet"]


def start_devnet(*flags: str) -> Devnet:
    """`python -m devnet` on a free port with these flags besides; use it as a context manager or call `.stop()`."""
    return Devnet(*flags, cwd=ROOT)
