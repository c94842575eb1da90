"""Commands that change what is done: trigger, pause and resume, halt and reopen, resolve. Each only writes rows."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from executor.cli.output import say, say_json, working
from executor.cli.session import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    WhyOption,
    configured,
    opened,
    reason,
    told,
    who,
)

if TYPE_CHECKING:
    from executor.database import Database
    from executor.operations import Asked

WAIT_SECONDS = 15.0
StrategyArgument = Annotated[str, typer.Argument(metavar="STRATEGY", show_default=False)]
AccountArgument = Annotated[str, typer.Argument(metavar="ACCOUNT", show_default=False)]
NoWaitOption = Annotated[bool, typer.Option("--no-wait", help="Leave once the request is recorded.")]


def trigger(
    strategy: StrategyArgument,
    config: ConfigOption = DEFAULT_CONFIG,
    slot: Annotated[str | None, typer.Option("--slot", metavar="T", help="The run of this slot, in UTC.")] = None,
    key: Annotated[str | None, typer.Option("--id", metavar="K", help="A run with a key of your own.")] = None,
    input_file: Annotated[
        str | None, typer.Option("--input", metavar="FILE", help="JSON for this run, - for standard input.")
    ] = None,
) -> None:
    """Ask for one run of a strategy: of a slot (the latest one by default), or of a key of your own.

    Asking twice is one run: the same row is made that the scheduler would make, so a Kubernetes CronJob or a systemd timer
    may repeat it. The same name with another input is refused and changes nothing.

    Example: fenced trigger suppliers --slot 2026-09-02T10:00Z

    Example: fenced trigger refunds --id refund-8812 --input refund.json
    """
    loaded = configured(config)
    from executor import triggering

    payload = triggering.REGISTERED if input_file is None else triggering.parse_input(_content(input_file))
    with working("recording"), opened(loaded) as database:
        found = triggering.trigger(database, strategy, slot=slot, key=key, payload=payload)
    if found.recorded:
        say(f"recorded {found.execution_id}")
        return
    say(f"already recorded: {found.execution_id} is {found.state}" + (f" ({found.reason})" if found.reason else ""))
    if found.state in {"SKIPPED", "FAILED", "CANCELLED"}:
        say("it does not run any more; if it must, ask for a run of its own with --id")


def pause(strategy: StrategyArgument, why: WhyOption, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Let no new slot of a strategy run, at once. What is planned or sent goes on.

    Slots that fall into the pause are not made up for.

    Example: fenced pause suppliers --why "wrong bank holidays"
    """
    loaded, cause = configured(config), reason(why)
    from executor import operations

    with opened(loaded) as database:
        paused = operations.pause(database, strategy, cause)
    say(f"{strategy} is paused" if paused else f"{strategy} was paused already: nothing changed")


def resume(
    strategy: StrategyArgument, why: WhyOption, config: ConfigOption = DEFAULT_CONFIG, no_wait: NoWaitOption = False
) -> None:
    """Let a paused strategy make slots again, from now on.

    It is a request: the worker that holds the account carries it out. The command waits for the answer.

    Example: fenced resume suppliers --why "calendar corrected"
    """
    loaded, cause = configured(config), told(why)
    from executor import operations

    with opened(loaded) as database:
        _wait(database, operations.ask_resume(database, strategy, cause, who()), no_wait=no_wait)


def halt(
    account: AccountArgument,
    why: WhyOption,
    config: ConfigOption = DEFAULT_CONFIG,
    drain: Annotated[bool, typer.Option("--drain", help="Let what is reserved end first.")] = False,
) -> None:
    """Stop an account at once: nothing more is planned, reserved or signed for it.

    What is out is still watched and sent again; signed bytes may be out already and are not called back. With --drain
    nothing new is reserved, and what is reserved ends as usual. `fenced reopen` undoes either.

    Example: fenced halt treasury --why "key may have leaked"
    """
    loaded, cause = configured(config), reason(why)
    from executor import operations

    with opened(loaded) as database:
        changed = operations.halt(database, account, cause, drain=drain)
    state = "draining" if drain else "halted"
    say(f"{account} is {state}" if changed else f"{account} was {state} already: nothing changed")


def reopen(
    account: AccountArgument, why: WhyOption, config: ConfigOption = DEFAULT_CONFIG, no_wait: NoWaitOption = False
) -> None:
    """Ask that a halted or draining account works again.

    It is a request: the worker that holds the account first compares rows, signer and chain, and refuses if they do not
    agree. The command waits for the answer and ends with 1 if it is no.

    Example: fenced reopen treasury --why "transaction 0x12… was ours, sent by hand"
    """
    loaded, cause = configured(config), told(why)
    from executor import operations

    with opened(loaded) as database:
        _wait(database, operations.ask_reopen(database, account, cause, who()), no_wait=no_wait)


def resolve(
    execution_id: Annotated[str, typer.Argument(metavar="ID", show_default=False)],
    why: WhyOption,
    config: ConfigOption = DEFAULT_CONFIG,
    paid: Annotated[
        str | None, typer.Option("--paid", metavar="HASH", help="This transaction paid it: it ends and is never sent.")
    ] = None,
    not_paid: Annotated[
        bool, typer.Option("--not-paid", help="Nothing paid it: it may run, under its own id.")
    ] = False,
    no_wait: NoWaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Decide about a PARKED execution: --paid HASH ends it, --not-paid lets it run or, if a nonce of it is spent, ends it.

    It is a request: the worker that holds the account carries it out. A hash must be a successful transaction in a final block.
    Look on the chain first: after --not-paid it is sent, and what was paid before is paid again.

    Example: fenced resolve suppliers/2026-09-02T10:00Z --paid 0x12…ef --why "seen in the explorer"

    Example: fenced resolve suppliers/2026-09-02T10:00Z --not-paid --why "no transfer to the payees that day"
    """
    loaded, cause = configured(config), told(why)
    from executor import operations

    paid_hash = _paid_hash(paid, not_paid=not_paid)
    with opened(loaded) as database:
        asked = operations.ask_resolve(database, execution_id, paid_hash, cause, who())
        _wait(database, asked, no_wait=no_wait, as_json=as_json)


def _paid_hash(paid: str | None, *, not_paid: bool) -> bytes | None:
    from executor.errors import ConfigError

    if (paid is None) != not_paid:
        raise ConfigError("say exactly one of --paid HASH and --not-paid.")
    if paid is None:
        return None
    if re.fullmatch("0x[0-9a-fA-F]{64}", paid, re.ASCII) is None:
        raise ConfigError("--paid takes a transaction hash, 0x and 64 hexadecimal digits.")
    return bytes.fromhex(paid[2:])


def _wait(database: "Database", asked: "Asked", *, no_wait: bool, as_json: bool = False) -> None:
    from executor.errors import NotFine, Unreachable
    from executor.operations import wait_for_answer

    if asked.request_id is None or no_wait:
        if as_json:
            say_json({"request": asked.request_id, "granted": None, "answer": None})
        else:
            say(asked.said)
        return
    with working(f"{asked.said}, waiting for the holder of the account"):
        answer = wait_for_answer(database, asked.request_id, WAIT_SECONDS)
    if answer is None:
        raise Unreachable(
            f"{asked.said} is recorded and nobody answered within {WAIT_SECONDS:.0f} s; a worker answers it when it holds the "
            "account: see fenced status."
        )
    if not answer.granted:
        raise NotFine(f"{asked.said} was refused: {answer.text.rstrip('.')}.")
    if as_json:
        say_json({"request": asked.request_id, "granted": True, "answer": answer.text})
    else:
        say(f"{asked.said}: {answer.text}")


def _content(name: str) -> bytes:
    from executor.errors import ConfigError
    from executor.triggering import MAX_INPUT_BYTES

    try:
        if name == "-":
            found: Any = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
            return bytes(found)
        with Path(name).open("rb") as file:
            return file.read(MAX_INPUT_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"the input {name} cannot be read ({error.strerror}); correct the path.") from None
