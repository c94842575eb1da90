"""Commands that run something: the worker, the database of our own, the demo, the devnet, the doctor, the audit."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from executor.cli.output import say, say_json, working
from executor.cli.session import DEFAULT_CONFIG, ConfigOption, JsonOption, address, configured

database_commands = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Start, stop or look at the embedded PostgreSQL."
)
_MARKS = {"ok": "✓", "warn": "!", "bad": "✗", "unknown": "?"}


def run(
    config: ConfigOption = DEFAULT_CONFIG,
    name: Annotated[str | None, typer.Option("--name", help="The worker's name in the record.", metavar="TEXT")] = None,
) -> None:
    """Work until told to stop: plan, sign, send, confirm, for every account this worker can get hold of.

    Any number of workers may run; for each account one of them works at a time, and another takes over when it dies.
    SIGTERM and Ctrl-C hand the accounts back at once.

    Example: fenced run --name worker-1
    """
    from executor.app import run_worker

    raise typer.Exit(run_worker(configured(config), name=name))


@database_commands.command("start")
def database_start(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Start the embedded PostgreSQL and leave it running. Fine if it runs already.

    Example: fenced db start
    """
    from executor import embedded

    state_dir = _state_dir(config)
    with working("starting PostgreSQL"):
        server = embedded.start(state_dir, child=False)
    say(f"the embedded database runs (process {server.pid}), its log is {server.place.log}")
    for note in server.notes:
        say(note)


@database_commands.command("stop")
def database_stop(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Stop the embedded PostgreSQL. What is stored stays; workers that run lose their connection.

    Example: fenced db stop
    """
    from executor import embedded

    with working("stopping PostgreSQL"):
        stopped = embedded.stop(_state_dir(config))
    say("the embedded database is stopped" if stopped else "the embedded database was not running")


@database_commands.command("status")
def database_status(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Say whether the embedded PostgreSQL runs, and its URL. Ends with 1 if it does not.

    Example: fenced db status
    """
    from executor import embedded

    server = embedded.status(_state_dir(config))
    if server is None:
        say("the embedded database does not run; start it with fenced db start")
        raise typer.Exit(1)
    say(f"the embedded database runs (process {server.pid}): {server.url()}")


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the directory with its logs and database.")] = False,
) -> None:
    """Show the main job on an embedded database and a local chain, in about a minute.

    One worker is killed in the middle of a payment, another is stopped past its lease and wakes; at the end every promise is
    audited. It needs no configuration, works in a temporary directory and leaves nothing behind.

    Example: fenced demo
    """
    from executor import demo as shown

    raise typer.Exit(shown.run(keep=keep))


def devnet(context: typer.Context) -> None:
    """Run a local chain with funded accounts; takes anvil's flags where they exist.

    Every argument goes to the devnet, so `fenced devnet --help` is its own help. Needs the extra "devnet".

    Example: fenced devnet --port 8545 --block-time 2
    """
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "devnet", *context.args])  # noqa: S606  (our own program, by list)


def doctor(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Look at everything a worker stands on: this installation, keys, chains, the database and its settings.

    One line each: ✓ fine, ! worth a look, ✗ wrong, ? could not be asked. Nothing is changed. Ends with 1 if something is
    wrong, with 3 if something could not be asked.

    Example: fenced doctor
    """
    loaded = configured(config)
    from executor.doctor import examine
    from executor.errors import ExecutorError

    url, no_url = None, ""
    try:
        url = address(loaded)
    except ExecutorError as error:
        no_url = str(error)
    checks = []
    for check in examine(loaded, url, no_url):
        checks.append(check)
        if not as_json:
            say(f"{_MARKS[check.verdict]} {check.name}: {check.detail}")
    if as_json:
        say_json(checks)
    verdicts = {check.verdict for check in checks}
    code = 1 if "bad" in verdicts else 3 if "unknown" in verdicts else 0
    raise typer.Exit(code)


def _state_dir(config: Path) -> Path:
    from executor.errors import ConfigError

    loaded = configured(config)
    if not loaded.database.embedded:
        raise ConfigError("database.embedded: is not set; fenced db is for the embedded database only.")
    return loaded.database.state_dir


def audit(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Read the database and the chain and check every promise row by row. Ends with 1 if one is broken.

    It shares no statement with the code that it judges, and changes nothing.

    Example: fenced audit --json > audit.json
    """
    loaded = configured(config)
    from executor.audit import audit as judge
    from executor.audit import render

    with working("auditing"):
        report = judge(
            address(loaded),
            {chain.id: [one.url.reveal() for one in chain.endpoints] for chain in loaded.chains.values()},
        )
    typer.echo(report.to_json()) if as_json else say(render(report))
    raise typer.Exit(0 if report.clean else 1)
