"""What a plan came to, and its codec over the pipe between a plan's process and the executor.

The child encodes, the parent decodes as if the child were hostile: every field is checked again, because the
strategy's code shares a process with the encoder (P19). Nothing here knows pipes or processes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast, get_args

from executor.strategy import MAX_CALLS, MAX_DATA_BYTES, MAX_TEXT, Call, InOrder, InvalidPlan, Nothing, Together
from executor.units import UINT256_MAX

Order: TypeAlias = Literal["together", "final", "mined"]
FailureKind: TypeAlias = Literal["import", "raised", "timeout", "crashed", "bad_result", "unreachable"]
AccessList: TypeAlias = tuple[tuple[bytes, tuple[bytes, ...]], ...]
MAX_MESSAGE: Final = 500

_DECIMAL = re.compile(r"0|[1-9][0-9]{0,77}", re.ASCII)
_HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One wanted call, ready to become an intent row.

    `step` counts from 0 within the plan. `to` is 20 bytes, or None for a contract creation. `gas` is the
    strategy's wish in gas units, or None to estimate. `access_list` holds (address, storage keys) as bytes.
    """

    step: int
    once: str | None
    to: bytes | None
    value_wei: int
    data: bytes
    access_list: AccessList
    gas: int | None
    label: str | None


@dataclass(frozen=True, slots=True)
class Planned:
    """Calls to send: `together`, or each after the one before is "final" or "mined" (P17)."""

    order: Order
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """The strategy looked and wants no call; the execution is SKIPPED with this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """No plan came out; `message` is at most 500 characters and says what to do where that is known.

    import: the module or function could not be loaded. raised: the plan raised. timeout: it was killed at its
    deadline. crashed: its process ended (counts as a raise, P19). bad_result: what it returned is no plan.
    unreachable: a chain read found no node; not the strategy's fault.
    """

    kind: FailureKind
    message: str


PlanOutcome: TypeAlias = Planned | NothingToDo | PlanFailed


def encode_plan(result: object) -> dict[str, Any]:
    """The JSON object for what a plan returned. Raises InvalidPlan, saying what to return instead."""
    if isinstance(result, Nothing):
        return {"kind": "nothing", "reason": result.reason}
    if isinstance(result, Call):
        return {"kind": "calls", "order": "together", "calls": [_encode_call(result)]}
    if isinstance(result, Together):
        return {"kind": "calls", "order": "together", "calls": [_encode_call(call) for call in result.calls]}
    if isinstance(result, InOrder):
        return {"kind": "calls", "order": result.after, "calls": [_encode_call(call) for call in result.calls]}
    raise InvalidPlan(_what_to_return(result))


def encode_failure(kind: FailureKind, message: str) -> dict[str, Any]:
    """The JSON object for a failed plan; the message is cut to 500 characters on one line."""
    return {"kind": "failed", "failure": kind, "message": one_line(message)}


def decode_outcome(value: object) -> PlanOutcome:
    """The outcome that a JSON value from a plan's process means; anything odd is PlanFailed("bad_result")."""
    try:
        return _decode(value)
    except _BadResult as error:
        return PlanFailed("bad_result", f"the plan's process sent {error}; this is no plan, nothing was recorded.")


def check_planned(outcome: PlanOutcome, account: bytes, *, allow_create: bool) -> PlanOutcome:
    """`outcome`, or PlanFailed where a call reads as a cancel (to self, value 0, no data) or creates unasked."""
    if not isinstance(outcome, Planned):
        return outcome
    for call in outcome.calls:
        if call.to == account and call.value_wei == 0 and not call.data:
            why = "goes to the account itself with value 0 and no data, which reads as a cancel; leave it out"
            return PlanFailed("bad_result", f"call {call.step} {why}.")
        if call.to is None and not allow_create:
            why = "creates a contract, which is off; set allow_create = true in the account's policy"
            return PlanFailed("bad_result", f"call {call.step} {why}.")
    return outcome


def one_line(text: str, limit: int = MAX_MESSAGE) -> str:
    """`text` on one line of printable characters, cut to `limit`."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[: 4 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class _BadResult(Exception):
    """The hostile value's first fault, as a noun phrase."""


def _what_to_return(result: object) -> str:
    if result is None:
        return 'the plan returned None; return nothing("why") when there is nothing to do.'
    if isinstance(result, (list, tuple)) and all(isinstance(call, Call) for call in result):
        if len(result) == 1:
            return "the plan returned a list; return the one Call itself, or together([call])."
        if result:
            return "the plan returned a bare list of calls; say together(calls) or in_order(calls)."
        return 'the plan returned an empty list; return nothing("why") when there is nothing to do.'
    article = type(result).__name__
    return f"the plan returned a value of type {article}; return nothing(…), a Call, together(…) or in_order(…)."


def _encode_call(call: Call) -> dict[str, Any]:
    return {
        "to": None if call.to is None else call.to[2:].lower(),
        "value": str(call.value),
        "data": call.data.hex(),
        "once": call.once,
        "gas": call.gas,
        "access_list": [[address[2:].lower(), [key.hex() for key in keys]] for address, keys in call.access_list],
        "label": call.label,
    }


def _decode(value: object) -> PlanOutcome:
    fields = _object(value, "an outcome")
    kind = fields.get("kind")
    if kind == "nothing":
        _keys(fields, {"kind", "reason"})
        return NothingToDo(_text(fields["reason"], "reason", MAX_MESSAGE))
    if kind == "failed":
        _keys(fields, {"kind", "failure", "message"})
        if fields["failure"] not in get_args(FailureKind):
            _bad("an unknown kind of failure")
        return PlanFailed(cast("FailureKind", fields["failure"]), one_line(_text(fields["message"], "message", 4_000)))
    if kind != "calls":
        _bad("an unknown kind of outcome")
    _keys(fields, {"kind", "order", "calls"})
    order, calls = fields["order"], fields["calls"]
    if order not in get_args(Order):
        _bad("an unknown order")
    if not isinstance(calls, list) or not 1 <= len(calls) <= MAX_CALLS:
        _bad(f"not between 1 and {MAX_CALLS} calls")
    return Planned(cast("Order", order), tuple(_decode_call(step, call) for step, call in enumerate(calls)))


def _decode_call(step: int, value: object) -> PlannedCall:
    fields = _object(value, "a call")
    _keys(fields, {"to", "value", "data", "once", "gas", "access_list", "label"})
    to = None if fields["to"] is None else _raw(fields["to"], "a receiver", 20)
    data = _raw(fields["data"], "call data")
    if len(data) > MAX_DATA_BYTES or (to is None and not data):
        _bad("call data of a wrong length")
    wei = fields["value"]
    if not isinstance(wei, str) or _DECIMAL.fullmatch(wei) is None or int(wei) > UINT256_MAX:
        _bad("a value that is no uint256")
    gas = fields["gas"]
    if gas is not None and (type(gas) is not int or not 21_000 <= gas < 2**63):
        _bad("a gas limit out of range")
    once, label = (None if fields[k] is None else _text(fields[k], k, MAX_TEXT) for k in ("once", "label"))
    return PlannedCall(step, once, to, int(wei), data, _decode_access_list(fields["access_list"]), gas, label)


def _decode_access_list(value: object) -> AccessList:
    if not isinstance(value, list):
        _bad("an access list that is no list")
    made = []
    for entry in value:
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], list):
            _bad("an access list entry that is no pair")
        keys = tuple(_raw(key, "a storage key", 32) for key in entry[1])
        made.append((_raw(entry[0], "an access list address", 20), keys))
    return tuple(made)


def _object(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        _bad(f"{what} that is no object")
    return cast("Mapping[str, object]", value)


def _keys(fields: Mapping[str, object], expected: set[str]) -> None:
    if set(fields) != expected:
        _bad("an object with missing or unknown fields")


def _text(value: object, what: str, limit: int) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > limit or not value.isprintable():
        _bad(f"a {what} that is no line of at most {limit} characters")
    return value


def _raw(value: object, what: str, length: int | None = None) -> bytes:
    if not isinstance(value, str) or _HEX.fullmatch(value) is None or length not in {None, len(value) // 2}:
        _bad(f"{what} that is no hex text of the right length")
    return bytes.fromhex(value)


def _bad(phrase: str) -> NoReturn:
    raise _BadResult(phrase)
