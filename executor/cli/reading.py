"""Commands that read the rows: status, accounts, executions, show."""

import csv
import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from executor.cli.output import count, instant, say, say_json, say_table
from executor.cli.session import DEFAULT_CONFIG, ConfigOption, JsonOption, configured, opened

if TYPE_CHECKING:
    from executor.store.reports import AccountReport, ExecutionReport, StrategyReport


def status(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """What needs a person comes first, each with the command to type; then what every account and strategy waits for.

    Ends with 1 if something needs a person, with 0 if nothing does.

    Example: fenced status
    """
    loaded = configured(config)
    from executor import reports

    with opened(loaded) as database:
        found = reports.status(database, loaded)
    if as_json:
        say_json(found)
        raise typer.Exit(1 if found.needs else 0)
    say(f"{found.service}: {count(found.live_workers, 'worker')} alive")
    if found.needs:
        say("\nneeds you:")
        for need in found.needs:
            say(f"  ✗ {need.subject}: {need.what}\n      {need.command}")
    else:
        say("nothing needs you")
    if found.requests:
        say("\nasked for and not answered yet:")
        for request in found.requests:
            say(f"  {request.kind} {request.subject}, by {request.who} at {instant(request.at)}: {request.why}")
    if found.accounts:
        say()
        _account_table(found.accounts)
    if found.strategies:
        say()
        _strategy_table(found.strategies)
    raise typer.Exit(1 if found.needs else 0)


def accounts(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Every account: who holds it under which token, what is open, what it waits for.

    Example: fenced accounts --json
    """
    loaded = configured(config)
    from executor.reports import account_list

    with opened(loaded) as database:
        found = account_list(database)
    if as_json:
        say_json(found)
    else:
        _account_table(found)


def executions(
    config: ConfigOption = DEFAULT_CONFIG,
    strategy: Annotated[str | None, typer.Option("--strategy", metavar="NAME", help="Of one strategy.")] = None,
    state: Annotated[str | None, typer.Option("--state", metavar="STATE", help="In one state, such as PARKED.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="How many, newest first.")] = 50,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, fees in wei.")] = False,
    as_json: JsonOption = False,
) -> None:
    """The newest executions, with what became of them and what they cost.

    Example: fenced executions --strategy suppliers --state FAILED

    Example: fenced executions --csv --limit 100000 > executions.csv
    """
    loaded = configured(config)
    from executor.errors import ConfigError
    from executor.reports import STATES, execution_list

    if state is not None and state.upper() not in STATES:
        raise ConfigError(f"{state} is no state of an execution; they are {', '.join(STATES)}.")
    with opened(loaded) as database:
        found = execution_list(database, strategy=strategy, state=state and state.upper(), most=limit)
    if as_json:
        say_json(found)
    elif as_csv:
        _say_csv(found)
    else:
        rows = [
            (
                one.execution_id,
                one.state,
                _steps(one),
                instant(one.due_at),
                instant(one.ended_at),
                _fees(one),
                one.reason,
            )
            for one in found
        ]
        say_table(("execution", "state", "steps", "due", "ended", "fees", "why"), rows)


def show(
    name: Annotated[str, typer.Argument(metavar="ID|ACCOUNT/NONCE|HASH|ONCE", show_default=False)],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """One execution's whole story, found by its id, a nonce, a transaction hash or the name of the thing paid.

    Calls in plain words, every attempt with its fees, what each endpoint said, blocks, cost, who held which token, every
    transition, and what to do next, which is usually nothing.

    Example: fenced show suppliers/2026-09-02T10:00Z

    Example: fenced show treasury/17
    """
    loaded = configured(config)
    from executor.cli.story import say_story
    from executor.stories import tell

    with opened(loaded) as database:
        story = tell(database, name)
    if as_json:
        say_json(story)
    else:
        say_story(story)


def _account_table(accounts_found: "list[AccountReport]") -> None:
    rows = [
        (
            one.name,
            one.chain_id,
            one.state,
            one.holder or "nobody",
            one.token,
            f"{one.in_flight}/{one.max_in_flight}",
            one.next_nonce,
            _waits(one),
        )
        for one in accounts_found
    ]
    say_table(("account", "chain", "state", "held by", "token", "in flight", "next nonce", "waits for"), rows)


def _waits(one: "AccountReport") -> str:
    if one.state == "halted":
        return "a person, then fenced reopen"
    if one.waits_for is not None:
        return one.waits_for
    if one.open_nonces:
        return f"nonce {one.oldest_open} to be final, {count(one.open_nonces, 'nonce')} open"
    waiting = one.pending + one.working
    return f"{count(waiting, 'execution')} to go on" if waiting else "nothing"


def _strategy_table(strategies: "list[StrategyReport]") -> None:
    rows = [
        (one.name, one.account, _when(one), _next(one), one.last_execution, one.last_state, one.last_reason)
        for one in strategies
    ]
    say_table(("strategy", "account", "schedule", "next run", "last execution", "state", "why"), rows)


def _when(one: "StrategyReport") -> str:
    from executor.units import format_seconds

    if one.every_seconds is not None:
        return f"every {format_seconds(one.every_seconds)}"
    return "by trigger" if one.schedule is None else f"{one.schedule} {one.timezone}"


def _next(one: "StrategyReport") -> str:
    if one.retired_at is not None:
        return "retired"
    if one.paused_at is not None:
        return f"paused: {one.paused_why}"
    return instant(one.next_due_at)


def _steps(one: "ExecutionReport") -> str:
    if one.steps is None:
        return "-"
    return f"{one.steps_effective}/{one.steps}" if one.steps_effective is not None else f"{one.steps}"


def _fees(one: "ExecutionReport") -> str | None:
    from executor.units import format_wei

    return None if one.fees_wei is None else format_wei(one.fees_wei)


def _say_csv(found: "list[ExecutionReport]") -> None:
    from executor.store.reports import ExecutionReport

    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(ExecutionReport.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    for one in found:
        writer.writerow({name: getattr(value, "isoformat", lambda v=value: v)() for name, value in asdict(one).items()})
    typer.echo(buffer.getvalue(), nl=False)
