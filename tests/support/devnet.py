"""The devnet as tests start it: from the repository's root, whatever their own directory is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devnet.testing import Devnet, NodeProcess, RpcFailure

ROOT = Path(__file__).resolve().parents[2]

__all__ = ["ROOT", "Devnet", "NodeProcess", "RpcFailure", "put_back", "start_devnet"]


@contextmanager
def put_back(devnet: Devnet) -> Iterator[Devnet]:
    """The node is at the end as it was."""
    come_back = devnet.remember()
    yield devnet
    assert come_back()


def start_devnet(*flags: str) -> Devnet:
    """`python -m devnet` on a free port with these flags besides; use it as a context manager or call `.stop()`."""
    return Devnet(*flags, cwd=ROOT)
