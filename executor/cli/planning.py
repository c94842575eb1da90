"""`fenced plan`: a dry run of a strategy on the chain as it is now. Nothing is written, signed or sent."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from executor.cli.output import complain, count, instant, say, say_json, working
from executor.cli.session import DEFAULT_CONFIG, ConfigOption, JsonOption, configured

if TYPE_CHECKING:
    from chain.answers import Estimate
    from chain.types import ChainView
    from executor.config import AccountConfig, Config, StrategyConfig
    from executor.plan_process import PlanRequest
    from executor.strategy_values import Planned, PlannedCall


@dataclass(frozen=True, slots=True)
class TriedCall:
    """One planned call and what trying it said; `problem` is why it would not be sent, or would revert."""

    step: int
    what: str
    once: str | None
    label: str | None
    gas: int | None
    cost_wei: int | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What the strategy would do now."""

    execution_id: str
    account: str
    block_number: int
    balance_wei: int
    order: str | None
    nothing: str | None
    seconds: float
    output: str
    calls: list[TriedCall]


def plan(
    strategy: Annotated[str, typer.Argument(metavar="STRATEGY", show_default=False)],
    config: ConfigOption = DEFAULT_CONFIG,
    slot: Annotated[str | None, typer.Option("--slot", metavar="T", help="Plan for this slot, in UTC.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a strategy on the chain's newest block and show what it would do; nothing is written or sent.

    Calls are decoded, checked against the account's policy and tried on the node, with what they would cost. It uses the
    configuration as it is in the file, registered or not. Ends with 1 if the plan fails or a call would.

    Example: fenced plan suppliers --slot 2026-09-02T10:00Z
    """
    loaded = configured(config)
    from executor.errors import ConfigError

    section = loaded.strategies.get(strategy)
    if section is None:
        known = ", ".join(sorted(loaded.strategies)) or "none"
        raise ConfigError(f"{config} has no strategy {strategy}; it has: {known}.")
    with working(f"planning {strategy}"):
        found = _dry_run(loaded, strategy, section, _slot(section, slot))
    if as_json:
        say_json(found)
    else:
        _say(found)
    if any(call.problem for call in found.calls):
        raise typer.Exit(1)


def _slot(section: "StrategyConfig", text: str | None) -> datetime | None:
    from executor.recurrence import parse_slot
    from executor.triggering import latest_slot

    if text is not None:
        return parse_slot(text)
    recurrence = section.recurrence()
    return None if recurrence is None else latest_slot(recurrence, datetime.now(UTC))


def _dry_run(config: "Config", name: str, section: "StrategyConfig", slot: datetime | None) -> DryRun:
    from executor.app import open_chain
    from executor.errors import NotFine
    from executor.plan_process import PlanPool
    from executor.strategy_values import NothingToDo, PlanFailed

    account = config.accounts[section.account]
    client = open_chain(config, account.chain)
    try:
        view = client.view(account.address)
        request = _request(config, name, section, slot, view)
        with PlanPool(config.directory) as pool:
            result = pool.plan([request], config.worker.plan_timeout_seconds)[0]
        outcome = result.outcome
        if isinstance(outcome, PlanFailed):
            if result.output:
                complain(result.output.rstrip())
            raise NotFine(f"{name} makes no plan: {outcome.message}")
        nothing = outcome.reason if isinstance(outcome, NothingToDo) else None
        order, calls = None, []
        if not isinstance(outcome, NothingToDo):
            order = outcome.order
            estimates = client.estimate(
                [(account.address, c.to, c.value_wei, c.data, c.access_list) for c in outcome.calls]
            )
            calls = [_tried(account, view, outcome, c, e) for c, e in zip(outcome.calls, estimates, strict=True)]
    finally:
        client.close()
    return DryRun(
        request.execution_id,
        section.account,
        view.head.number,
        view.balance_wei,
        order,
        nothing,
        result.seconds,
        result.output,
        calls,
    )


def _request(
    config: "Config", name: str, section: "StrategyConfig", slot: datetime | None, view: "ChainView"
) -> "PlanRequest":
    from chain.types import checksum
    from executor.plan_process import PlanRequest
    from executor.recurrence import slot_text

    chain, account = config.chain_of(section.account), config.accounts[section.account]
    return PlanRequest(
        execution_id=f"{name}/id/dry-run" if slot is None else f"{name}/{slot_text(slot)}",
        slot=slot,
        strategy=name,
        plan=section.plan,
        params=section.params,
        input=None if section.input is None else section.input.read(),
        account=checksum(account.address),
        chain_id=chain.id,
        block_number=view.head.number,
        block_hash="0x" + view.head.hash.hex(),
        endpoint_url=chain.endpoints[0].url.reveal(),
        allow_create=account.policy.allow_create,
    )


def _tried(
    account: "AccountConfig", view: "ChainView", planned: "Planned", call: "PlannedCall", estimate: "Estimate"
) -> TriedCall:
    from executor.cli.calls import call_text

    gas = call.gas or estimate.gas
    cost = None if gas is None else gas * (view.head.base_fee_wei + view.tip_wei)
    problem = _forbidden(account, call)
    if problem is None and estimate.error is not None:
        problem = f"{'would revert' if estimate.reverted else 'the node would not run it'}: {estimate.error}"
        if planned.order != "together" and call.step:
            problem += " (tried without the calls before it)"
    return TriedCall(
        call.step, call_text(call.to, call.value_wei, call.data), call.once, call.label, gas, cost, problem
    )


def _forbidden(account: "AccountConfig", call: "PlannedCall") -> str | None:
    from chain.types import checksum
    from executor.units import format_wei

    policy = account.policy
    if policy.max_value_wei is not None and call.value_wei > policy.max_value_wei:
        return f"the signer would refuse it: more than max_value ({format_wei(policy.max_value_wei)})"
    if policy.allow_to is not None and call.to is not None and call.to not in policy.allow_to:
        return f"the signer would refuse it: {checksum(call.to)} is not in allow_to"
    return None


def _say(found: DryRun) -> None:
    from executor.units import format_wei

    at = instant(datetime.now(UTC))
    say(f"{found.execution_id} on block {found.block_number}, planned in {found.seconds * 1000:.0f} ms at {at}")
    say(f"account {found.account} holds {format_wei(found.balance_wei)}")
    if found.output:
        say("it printed:\n" + found.output.rstrip())
    if found.nothing is not None:
        say(f"nothing to do: {found.nothing}")
        return
    how = {"final": "each once the one before is final", "mined": "each once the one before is mined"}
    say(f"{count(len(found.calls), 'call')}, {how.get(str(found.order), 'together')}:")
    for call in found.calls:
        say(
            f"  {call.step} {call.what}"
            + (f", once {call.once}" if call.once else "")
            + (f" “{call.label}”" if call.label else "")
        )
        if call.cost_wei is not None:
            say(f"      {call.gas} gas, about {format_wei(call.cost_wei)} now")
        if call.problem is not None:
            say(f"      ✗ {call.problem}")
    say(
        f"together about {format_wei(sum(call.cost_wei or 0 for call in found.calls))} in fees; nothing was written or sent"
    )
