"""A directory with a configuration, and the command line run in it."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from executor.cli import main

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
PAYEE = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
CANARY = "canary-7f1d9c"
CONFIG = """
[service]
name = "tests"
[database]
url = { file = "database_url" }
[worker]
listen = ""
[chains.devnet]
id = 31337
endpoints = ["http://127.0.0.1:9"]
[accounts.treasury]
chain = "devnet"
address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
signer = { kind = "keyfile", path = "treasury.key" }
max_in_flight = 16
[accounts.treasury.policy]
max_fee_per_gas = "100 gwei"
[strategies.payroll]
plan = "payroll:plan"
account = "treasury"
schedule = "0 10 * * *"
misfire = "latest"
[strategies.refunds]
plan = "payroll:plan"
account = "treasury"
"""
PLAN = """
from executor.strategy import Call
def plan(ctx):
    return Call("0x70997970C51812dc3A010C7d01b50e0d17dc79C8", 1)
"""
KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"


@dataclass(frozen=True)
class Run:
    """What a command printed and ended with."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)


@dataclass
class Desk:
    """A configuration in a directory of its own, with a database if it was given one."""

    directory: Path
    database_url: str | None = None

    @property
    def libpq(self) -> str:
        """The database's URL as people write it."""
        assert self.database_url is not None
        return self.database_url.replace("postgresql+psycopg://", "postgresql://", 1)

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.directory / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def edit(self, old: str, new: str) -> None:
        """Replace a piece of the configuration, which must be there."""
        path = self.directory / "fenced.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """The command as a process of its own, in this directory."""
        return subprocess.Popen(
            [sys.executable, "-m", "executor", *arguments],
            cwd=self.directory,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> Run:
        """Run a command to its end, in this process. It never prints a traceback or the canary."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.directory)
            for name, value in environment.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main(arguments)
        run = Run(int(ended.value.code or 0), out.getvalue(), err.getvalue())
        assert "Traceback" not in run.out + run.err
        assert CANARY not in run.out + run.err
        return run

    def fine(self, *arguments: str) -> Run:
        """Run a command that must end well."""
        run = self.run(*arguments)
        assert run.code == 0, run
        return run

    def fails(self, code: int, *arguments: str) -> str:
        """Run a command that must fail with `code`; its one sentence on standard error."""
        run = self.run(*arguments)
        assert run.code == code, run
        lines = run.err.splitlines()
        assert len(lines) == 1, run
        assert lines[0].startswith("fenced: ")
        assert lines[0].endswith((".", "?"))
        return lines[0]

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of a select, or of a statement with RETURNING."""
        with psycopg.connect(self.libpq, autocommit=True) as connection:
            return connection.execute(sql, parameters or None).fetchall()

    def execute(self, sql: str, *parameters: object) -> None:
        with psycopg.connect(self.libpq, autocommit=True) as connection:
            connection.execute(sql, parameters or None)


def furnished(directory: Path, database_url: str | None = None) -> Desk:
    """A desk with a configuration of one account and two strategies; without a database its URL answers nowhere."""
    desk = Desk(directory, database_url)
    desk.write("fenced.toml", CONFIG)
    desk.write("payroll.py", PLAN)
    desk.write("treasury.key", KEY, 0o600)
    desk.write("database_url", desk.libpq if database_url else f"postgresql://fenced:{CANARY}@127.0.0.1:9/none")
    return desk


def together(processes: Sequence[subprocess.Popen[str]]) -> list[Run]:
    """Wait for processes that run side by side."""
    found = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        found.append(Run(process.returncode, out, err))
    return found


def copy_examples(target: Path) -> None:
    shutil.copytree(ROOT / "examples", target)
    (target / "keys").mkdir()
    key = target / "keys" / "devnet-0.key"
    key.write_text(KEY)
    key.chmod(0o600)
