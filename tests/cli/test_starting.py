"""From `fenced init` to a running installation, the way a person goes; help that is quick; secrets that stay."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.desk import CANARY, KEY, Desk, Run, copy_examples, together
from tests.support.devnet import Devnet

COMMANDS = [
    "init",
    "validate",
    "migrate",
    "apply",
    "run",
    "db",
    "demo",
    "devnet",
    "doctor",
    "audit",
    "status",
    "accounts",
    "executions",
    "show",
    "plan",
    "trigger",
    "pause",
    "resume",
    "halt",
    "reopen",
]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory whose path is short enough for a socket and open to the server's user."""
    path = Path(tempfile.mkdtemp(prefix="fenced-cli-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


def test_init_to_apply(bare: Desk, place: Path, devnet: Devnet) -> None:
    bare.fine("init", str(place / "first"))
    desk = Desk(place / "first")
    assert stat.S_IMODE((desk.directory / "keys/devnet-0.key").stat().st_mode) == 0o600
    assert "next runs" in desk.fine("validate", "--offline").out
    desk.edit("http://127.0.0.1:8545", devnet.url)
    assert "✓ chain devnet" in desk.fine("validate").out
    assert "fenced db start" in desk.fails(2, "migrate")
    assert desk.run("db", "status").code == 1
    desk.fine("db", "start")
    try:
        for command in (
            ["db", "status"],
            ["migrate"],
            ["apply"],
            ["plan", "allowance"],
            ["trigger", "allowance"],
            ["doctor"],
        ):
            desk.fine(*command)
        assert "fenced run" in desk.run("status").out
    finally:
        desk.fine("db", "stop")
    assert "was not running" in desk.fine("db", "stop").out


@pytest.mark.parametrize("taken", ["fenced.toml", "strategies/allowance.py", "keys/devnet-0.key"])
def test_init_overwrites_nothing(bare: Desk, tmp_path: Path, taken: str) -> None:
    target = tmp_path / "first"
    (target / taken).parent.mkdir(parents=True)
    (target / taken).write_text("mine")
    assert "is not overwritten" in bare.fails(2, "init", str(target))
    assert [path for path in target.rglob("*") if path.is_file()] == [target / taken]
    assert (target / taken).read_text() == "mine"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(bare: Desk, command: str) -> None:
    if command == "devnet":
        return
    out = bare.fine(command, "--help").out
    assert "Example: fenced" in out or command == "db"
    assert "--help" in out


def test_help_is_quick_and_imports_nothing_heavy(bare: Desk) -> None:
    code = (
        "import sys\nsys.argv = ['fenced', '--help']\nfrom executor.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'web3', 'alembic', 'sqlalchemy', 'psycopg', 'pydantic', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    before = os.times().children_user
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in COMMANDS)
    assert os.times().children_user - before < 1.0  # CPU seconds: wall time depends on the neighbours


def test_the_devnet_takes_its_arguments_unparsed(bare: Desk) -> None:
    (run,) = together([bare.start("devnet", "--help")])
    assert run.code == 0
    assert "--block-time" in run.out
    (run,) = together([bare.start("devnet", "--bogus")])
    assert run.code == 2


@pytest.mark.parametrize("strategy", ["suppliers", "savings", "topup"])
def test_the_examples_plan(bare: Desk, place: Path, devnet: Devnet, strategy: str) -> None:
    copy_examples(place / "examples")
    desk = Desk(place / "examples")
    desk.edit("http://127.0.0.1:8545", devnet.url)
    if strategy == "suppliers":
        out = desk.fine("validate").out
        assert "strategy staking: strategies.staking:plan loads; runs by trigger only" in out
    run = desk.fine("plan", strategy, "--json")
    assert run.json["nothing"] or all(call["gas"] == 21_000 for call in run.json["calls"])


def test_a_plan_writes_nothing_and_tells_what_is_wrong(applied: Desk, devnet: Devnet) -> None:
    applied.edit("http://127.0.0.1:9", devnet.url)
    before = applied.rows("SELECT * FROM history")
    out = applied.fine("plan", "payroll", "--slot", "2026-09-02T10:00Z").out
    assert "payroll/2026-09-02T10:00Z on block" in out
    assert "send 1 wei to 0x70997970C51812dc3A010C7d01b50e0d17dc79C8" in out
    applied.edit('max_fee_per_gas = "100 gwei"', 'max_fee_per_gas = "100 gwei"\nallow_to = []')
    assert "is not in allow_to" in applied.run("plan", "payroll").out
    applied.write("payroll.py", "def plan(ctx):\n    return ctx.params['gone']\n")
    assert "makes no plan" in applied.fails(1, "plan", "payroll")
    assert "has no strategy x" in applied.fails(2, "plan", "x")
    assert applied.rows("SELECT * FROM history") == before
    assert applied.rows("SELECT count(*) FROM execution") == [(0,)]


def test_the_audit_judges(applied: Desk, devnet: Devnet) -> None:
    applied.edit("http://127.0.0.1:9", devnet.url)
    applied.fine("trigger", "refunds", "--id", "1")
    assert "0 violations" in applied.fine("audit").out
    assert applied.fine("audit", "--json").json["violations"] == []


def test_secrets_are_never_printed(bare: Desk) -> None:
    bare.write("endpoint", f"http://user:{CANARY}@127.0.0.1:9/{CANARY}")
    bare.edit('endpoints = ["http://127.0.0.1:9"]', 'endpoints = [{ file = "endpoint" }]')
    runs: list[Run] = [
        bare.run(*command)
        for command in (
            ["validate"],
            ["doctor"],
            ["doctor", "--json"],
            ["status"],
            ["migrate"],
            ["plan", "payroll"],
            ["run"],
        )
    ]
    assert all(run.code for run in runs)
    process = bare.start("apply", FENCED_DEBUG="1")
    (run,) = together([process])
    assert CANARY not in run.out + run.err
    assert KEY not in run.out + run.err
