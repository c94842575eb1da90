"""`fenced validate`: the configuration and everything it names, before a database knows of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from executor.cli.failures import tell
from executor.cli.output import count, say, working
from executor.cli.session import DEFAULT_CONFIG, ConfigOption, configured

if TYPE_CHECKING:
    from executor.config import Config, StrategyConfig


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked; `code` is 0, or what the command ends with because of it."""

    code: int
    text: str


def validate(
    config: ConfigOption = DEFAULT_CONFIG,
    offline: Annotated[bool, typer.Option("--offline", help="Leave the endpoints out.")] = False,
) -> None:
    """Check the configuration and all it names: keys, strategies, schedules, endpoints.

    Keys are opened, strategies are imported in a process of their own, the next three runs are printed, and every endpoint
    is asked for its chain. The database is not touched; nothing is written. Ends with 2 if something is wrong, with 3 if
    an endpoint does not answer.

    Example: fenced validate --offline
    """
    loaded = configured(config)
    say(
        f"✓ {config}: {count(len(loaded.chains), 'chain')}, {count(len(loaded.accounts), 'account')}, {_strategies(loaded)}"
    )
    codes = {0}
    for what, findings in (
        ("opening keys", _keys(loaded)),
        ("importing strategies", _plans(loaded)),
        ("asking endpoints", iter(()) if offline else _endpoints(loaded)),
    ):
        for finding in _watched(what, findings):
            codes.add(finding.code)
            if finding.code:
                tell(finding.text)
            else:
                say(f"✓ {finding.text}")
    code = 2 if 2 in codes else max(codes)
    if code:
        raise typer.Exit(code)


def _watched(what: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Each finding as it comes, with progress shown while it is waited for."""
    while True:
        with working(what):
            finding = next(findings, None)
        if finding is None:
            return
        yield finding


def _strategies(config: "Config") -> str:
    number = len(config.strategies)
    return "1 strategy" if number == 1 else f"{number} strategies"


def _keys(config: "Config") -> Iterator[Finding]:
    from chain.types import checksum
    from executor.app import open_backend
    from signer.errors import SignerError

    for name, account in config.accounts.items():
        try:
            open_backend(account)
        except SignerError as error:
            yield Finding(2, f"accounts.{name}.signer: {error}.")
        else:
            yield Finding(0, f"account {name}: the key of {checksum(account.address)} opens")


def _plans(config: "Config") -> Iterator[Finding]:
    from executor.errors import ConfigError
    from executor.plan_process import PlanPool

    with PlanPool(config.directory) as pool:
        for name, strategy in config.strategies.items():
            failed = pool.check(strategy.plan)
            if failed is not None:
                yield Finding(2, f"strategies.{name}.plan: {failed.message}")
                continue
            try:
                if strategy.input is not None:
                    strategy.input.read()
            except ConfigError as error:
                yield Finding(2, f"strategies.{name}.input: {error}")
                continue
            yield Finding(0, f"strategy {name}: {strategy.plan} loads; {_runs(strategy)}")


def _runs(strategy: "StrategyConfig") -> str:
    from executor.timezones import load_zone

    recurrence = strategy.recurrence()
    if recurrence is None:
        return "runs by trigger only"
    zone = load_zone(strategy.timezone)
    return "next runs " + ", ".join(
        at.astimezone(zone).strftime("%a %Y-%m-%d %H:%M:%S %Z") for at in islice(_following(strategy), 3)
    )


def _following(strategy: "StrategyConfig") -> Iterator[datetime]:
    recurrence = strategy.recurrence()
    at: datetime | None = datetime.now(UTC)
    while recurrence is not None and at is not None:
        at = recurrence.next(at)
        if at is not None:
            yield at


def _endpoints(config: "Config") -> Iterator[Finding]:
    from executor.doctor import check_endpoints

    for name, chain in config.chains.items():
        for found in check_endpoints(name, chain):
            text = f"chain {name}: {found.endpoint}: {found.detail}"
            match found.verdict:
                case "ok":
                    yield Finding(0, text)
                case "unknown":
                    yield Finding(3, f"{text}; start it, correct the endpoint, or leave it out with --offline.")
                case _:
                    yield Finding(2, f"{text}; correct chains.{name}.")
