"""Triggers: an operator or an outside scheduler asks for one run, as the same row the scheduler would make.

Asking twice is one run: the row is unique by slot or key, and another payload under the same name is refused [B10].
"""

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from chain.nesting import MAX_DEPTH, is_too_deep
from executor.database import Database, Refused, Tx
from executor.errors import ConfigError, Conflict, NotFine
from executor.operations import strategy_named
from executor.recurrence import Cron, Every, parse_slot, recurrence_of, slot_text
from executor.registration import wake
from executor.store import executions, operations
from executor.store.operations import Triggerable

MAX_INPUT_BYTES: Final = 256 * 1024
DEFAULT_DEADLINE: Final = timedelta(hours=1)
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}", re.ASCII)
REGISTERED: Final = object()
"""Stands for the input that was registered with the strategy."""
_SECOND: Final = timedelta(seconds=1)
_BACK: Final = tuple(timedelta(days=days) for days in (1, 8, 40, 400, 4_000, 18_300))


@dataclass(frozen=True, slots=True)
class Triggered:
    """What became of a trigger: `recorded` is False when the execution was there already, with the same payload."""

    execution_id: str
    recorded: bool
    state: str
    reason: str | None


def parse_input(raw: bytes) -> Any:
    """The JSON value of an input.

    Raises:
        ConfigError: longer than 256 KiB, not JSON, or nothing the database can keep.
    """
    if len(raw) > MAX_INPUT_BYTES:
        raise ConfigError(
            f"the input is longer than {MAX_INPUT_BYTES // 1024} KiB; keep bulk data elsewhere and name it."
        )
    if is_too_deep(raw, harmless_openings=MAX_DEPTH):
        raise ConfigError(f"the input is not JSON we can keep (nested deeper than {MAX_DEPTH}); flatten it.")
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except ValueError as error:
        raise ConfigError(f"the input is not JSON ({_brief(error)}); correct it.") from None
    if "\\u0000" in text:
        raise ConfigError("the input holds a zero character, which the database cannot keep; remove it.")
    return value


def trigger(
    database: Database,
    name: str,
    *,
    slot: str | None = None,
    key: str | None = None,
    payload: Any = REGISTERED,
) -> Triggered:
    """Record the execution of a slot or of a key: the same row the scheduler would make, so asking twice is one run.

    Without `slot` and `key` it is the latest slot of the schedule. `payload` is a JSON value; left out, it is the
    input registered with the strategy.

    Raises:
        ConfigError: no such strategy, or a slot or key that is none.
        NotFine: the strategy is paused or retired, or the slot's start deadline has passed.
        Conflict: the execution exists with another payload.
    """
    try:
        found = _record(database, name, slot, key, payload)
    except Refused as refused:
        if refused.constraint != "execution_revision":
            raise
        found = _record(database, name, slot, key, payload)  # an apply came between
    if found.recorded:
        wake(database)
    return found


def _record(database: Database, name: str, slot: str | None, key: str | None, payload: Any) -> Triggered:
    def write(tx: Tx) -> Triggered:
        strategy = strategy_named(tx, name)
        row = _execution(strategy, slot, key, strategy.input if payload is REGISTERED else payload)
        execution_id = row["execution_id"]
        if executions.stored_payload(tx, execution_id) is None:
            _refuse_idle(strategy)
            _refuse_late(strategy, row)
            if executions.insert(tx, [row]):
                return Triggered(execution_id, True, "PENDING", None)
        return _already(tx, row)

    return database.write(write)


def latest_slot(recurrence: Cron | Every, now: datetime) -> datetime | None:
    """The newest slot at or before `now`."""
    for back in _BACK:
        found = recurrence.due(now - back, now, 1)
        if found:
            return found[0]
    return None


def _execution(strategy: Triggerable, slot: str | None, key: str | None, payload: Any) -> dict[str, Any]:
    recurrence = recurrence_of(strategy.schedule, strategy.every_seconds, strategy.timezone)
    deadline = None if strategy.start_deadline_seconds is None else timedelta(seconds=strategy.start_deadline_seconds)
    row: dict[str, Any] = {"strategy": strategy.name, "input": payload, "state": "PENDING"}
    if slot is not None and key is not None:
        raise ConfigError("--slot and --id exclude each other; a run is either a slot's or has a key of its own.")
    if key is not None:
        if _KEY.fullmatch(key) is None or "/reissue/" in key:
            raise ConfigError("--id takes up to 200 letters, digits and ._:/@+=- and begins with a letter or digit.")
        due = strategy.now
        return row | {
            "execution_id": f"{strategy.name}/id/{key}",
            "trigger_key": key,
            "due_at": due,
            "expires_at": due + (deadline or DEFAULT_DEADLINE),
        }
    due = _slot(strategy, recurrence, slot)
    following = None if recurrence is None else recurrence.next(due)
    expires = due + deadline if deadline is not None else following or due + DEFAULT_DEADLINE
    if deadline is None and expires <= strategy.now:  # a missed slot that somebody wants run now
        expires = strategy.now + DEFAULT_DEADLINE
    return row | {
        "execution_id": f"{strategy.name}/{slot_text(due)}",
        "slot": due,
        "due_at": due,
        "expires_at": expires,
    }


def _slot(strategy: Triggerable, recurrence: Cron | Every | None, text: str | None) -> datetime:
    if text is None:
        found = None if recurrence is None else latest_slot(recurrence, strategy.now)
        if found is None:
            raise ConfigError(
                f"{strategy.name} has no schedule to take a slot from; name the run with --id KEY, "
                "so that asking twice is one run."
            )
        return found
    slot = parse_slot(text)
    if slot > strategy.now:
        raise ConfigError(f"the slot {text} lies in the future; the scheduler runs it when it is due.")
    if recurrence is not None and recurrence.due(slot - _SECOND, slot, 1) != [slot]:
        before, after = latest_slot(recurrence, slot), recurrence.next(slot)
        near = " and ".join(slot_text(found) for found in (before, after) if found is not None)
        raise ConfigError(f"{text} is no slot of {strategy.name}; the ones beside it are {near}.")
    return slot


def _already(tx: Tx, row: dict[str, Any]) -> Triggered:
    """The execution that is there. Raises Conflict if it was asked for with another payload."""
    execution_id = row["execution_id"]
    stored = executions.stored_payload(tx, execution_id)
    if stored is None:
        raise Conflict(f"{execution_id} could not be recorded; run the command again.")
    digest, state = stored
    if digest != executions.payload_digest(row["strategy"], row["input"]):
        raise Conflict(
            f"{execution_id} exists with another input and is {state}; nothing was changed. Use another --id for another run."
        )
    return Triggered(execution_id, False, state, operations.execution_reason(tx, execution_id))


def _refuse_idle(strategy: Triggerable) -> None:
    if strategy.retired:
        raise NotFine(f"{strategy.name} is retired; put it back into the configuration and run fenced apply.")
    if strategy.paused:
        raise NotFine(
            f"{strategy.name} is paused ({strategy.paused_why}); let it go on with fenced resume {strategy.name}."
        )


def _refuse_late(strategy: Triggerable, row: dict[str, Any]) -> None:
    if row["expires_at"] <= strategy.now:
        raise NotFine(
            f"the start deadline of {row['execution_id']} has passed, so it would not run; "
            "raise start_deadline, or use --id for a run of its own."
        )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _brief(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0][:80]
