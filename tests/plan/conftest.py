"""Real child processes over strategy modules written into a fresh directory per test."""

from __future__ import annotations

import itertools
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from executor.plan_process import PlanPool, PlanRequest

ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
OTHER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
HEADER = f'import os, sys, time\nfrom executor.strategy import *\nOTHER = "{OTHER}"\nACCOUNT = "{ACCOUNT}"\n'


class Strategies:
    """Writes strategy modules and makes requests for them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._numbers = itertools.count()

    def write(self, body: str, name: str = "pay", head: str = "") -> str:
        """A module whose `plan` has this body; returns its reference."""
        code = HEADER + textwrap.dedent(head) + "def plan(ctx):\n" + textwrap.indent(textwrap.dedent(body), "    ")
        (self.directory / f"{name}.py").write_text(code, encoding="utf-8")
        return f"{name}:plan"

    def request(self, plan: str, **changes: Any) -> PlanRequest:
        fields: dict[str, Any] = {
            "execution_id": f"{plan.partition(':')[0]}/id/{next(self._numbers)}",
            "slot": datetime(2026, 9, 2, 10, tzinfo=UTC),
            "strategy": plan.partition(":")[0],
            "plan": plan,
            "params": {},
            "input": None,
            "account": ACCOUNT,
            "chain_id": 31337,
            "block_number": 7,
            "block_hash": "0x" + "ab" * 32,
            "endpoint_url": "http://127.0.0.1:9/token-0123456789",
        }
        return PlanRequest(**{**fields, **changes})


@pytest.fixture
def strategies(tmp_path: Path) -> Strategies:
    return Strategies(tmp_path)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PlanPool]:
    with PlanPool(tmp_path) as made:
        yield made


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether `condition` became true within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def is_alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
