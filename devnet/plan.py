"""A plan: fault rules and orders at set moments, from a file, so that the same run can be had again.

    {
      "seed": 7,
      "rules": [{"id": "lost", "match": {"method": "eth_sendRawTransaction"}, "kind": "drop_after", "p": 0.3}],
      "timeline": [
        {"at": {"block": 5}, "call": "devnet_reorg", "params": [{"depth": 2, "keep": "none"}]},
        {"at": {"submission": 10}, "call": "devnet_restart", "params": [{"downtimeMs": 500}]},
        {"at": {"time": 30}, "call": "devnet_baseFee", "params": [{"spike": {"factor": 20, "blocks": 3}}]}
      ]
    }

All three are optional. A rule is what devnet_fault takes. An entry of the timeline is any method the devnet has, called
once: `block` when that height is first reached, within the call that makes the block; `submission` when the so-manieth raw
transaction of a client has been answered, counted from the plan's start; `time` so many seconds of the clock after it.
"""

import json
import sys
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

from devnet.clock import Clock
from devnet.errors import InvalidParams, RpcError, StartError
from devnet.faults.fields import Json, an_object, count, number, one_of, optional, positive, text
from devnet.faults.rule import Rule, parse_rule
from devnet.feed import Event, Notice

PLAN_FIELDS = ("seed", "rules", "timeline")
MOMENTS = ("block", "submission", "time")


@dataclass(frozen=True, slots=True)
class Action:
    """One method to be called when a moment's number is reached."""

    moment: str
    at: float
    call: str
    params: object


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as it was read; `seed` None leaves the one in force."""

    seed: int | None
    rules: tuple[Rule, ...]
    timeline: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """An action that was performed, the head's height then, and what came of it."""

    action: Action
    block: int
    result: object
    error: str | None


def parse_plan(value: object, known: Container[str]) -> Plan:
    """Read a plan. `known` are the methods there are. Raises InvalidParams with one sentence."""
    fields = an_object(value, "a plan", PLAN_FIELDS)
    rules = [parse_rule(item, f"plan-{at}") for at, item in enumerate(_list(fields, "rules"), 1)]
    return Plan(
        optional(fields, "seed", count), tuple(rules), tuple(_action(item, known) for item in _list(fields, "timeline"))
    )


def load_plan(path: Path, known: Container[str]) -> Plan:
    """Read a plan file. Raises StartError with one sentence for one that is missing, no JSON, or no plan."""
    try:
        return parse_plan(json.loads(path.read_bytes()), known)
    except OSError as problem:
        raise StartError(f"cannot read the plan {path}: {problem.strerror or problem}") from None
    except ValueError as problem:
        raise StartError(f"the plan {path} is no JSON: {problem}") from None
    except InvalidParams as problem:
        raise StartError(f"the plan {path} cannot be used: {problem.message}") from None


def _list(fields: Json, name: str) -> list[object]:
    value = fields.get(name, [])
    if not isinstance(value, list):
        raise InvalidParams(f"{name} must be a list")
    return cast("list[object]", value)


def _action(value: object, known: Container[str]) -> Action:
    fields = an_object(value, "an entry of the timeline", ("at", "call", "params"))
    at = an_object(fields.get("at"), "at", MOMENTS)
    if len(at) != 1:
        raise InvalidParams("at must name exactly one moment: block, submission or time")
    moment = next(iter(at))
    when = number(at[moment], moment) if moment == "time" else positive(at[moment], moment)
    call = text(fields.get("call"), "call")
    if call not in known:
        raise InvalidParams(f"the timeline calls {call}, which the devnet does not have")
    params = fields.get("params", [])
    if not isinstance(params, list | dict):
        raise InvalidParams("params must be a list or an object")
    return Action(one_of(moment, "at", MOMENTS), when, call, params)


TimelineState: TypeAlias = tuple[tuple[Action, ...], tuple[Done, ...], int, int]


@dataclass
class Timeline:
    """What of a plan is still to come, and what was done. `perform` calls a method, `known` are the methods there are."""

    pending: list[Action] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    perform: Callable[[str, object], object] = lambda _call, _params: None
    known: Container[str] = ()
    _height: int = 0
    _first: int = 0
    _seen: int = 0
    _ripe: list[Action] = field(default_factory=list)
    _performing: bool = False
    _unsettled: bool = False

    def begin(self, plan: Plan, clock: Clock, height: int, submissions: int) -> None:
        """Follow a plan from now on, in place of the former one. What is due at a height already reached is due now."""
        self.pending, self.done, self._ripe = list(plan.timeline), [], []
        self._height, self._first, self._seen = height, submissions, submissions
        for action in plan.timeline:
            if action.moment == "time":
                clock.call_at(clock.elapsed() + action.at, partial(self._ripen, action))

    def hear(self, event: Event) -> None:
        """A block was made: perform what waits for its height, in the middle of a reorg only after the call."""
        if not self.pending or not isinstance(event, Notice):
            return
        if event.kind == "orphan":
            self._unsettled = True
            return
        self._height = max(event.block.number, self._height)
        if not self._unsettled:
            self._catch_up()

    def after_call(self, submissions: int) -> None:
        """A call was answered, and clients have sent so many raw transactions in all."""
        self._unsettled = False
        if self.pending:
            self._seen = submissions
            self._catch_up()

    def save(self) -> TimelineState:
        """How far the plan is, for a snapshot."""
        return tuple(self.pending), tuple(self.done), self._height, self._first

    def restore(self, state: TimelineState) -> None:
        """Come back to where the plan was. Seconds that have passed have passed."""
        pending, done, self._height, self._first = state
        self.pending, self.done = list(pending), list(done)

    def _ripen(self, action: Action) -> None:
        self._ripe.append(action)
        self._catch_up()

    def _due(self) -> Action | None:
        """The first action whose moment has come."""
        reached = {"block": self._height, "submission": self._seen - self._first}
        return next(
            (each for each in self.pending if each in self._ripe or each.at <= reached.get(each.moment, -1)), None
        )

    def _catch_up(self) -> None:
        """Perform what is due, in order. What falls due by an action's own doing waits for its end."""
        if self._performing:
            return
        self._performing = True
        try:
            while (action := self._due()) is not None:
                self.pending.remove(action)
                self._perform(action)
                self._unsettled = False
        finally:
            self._performing = False

    def _perform(self, action: Action) -> None:
        result: object = None
        error: str | None = None
        try:
            result = self.perform(action.call, action.params)
        except RpcError as problem:
            error = problem.message
            sys.stderr.write(f"devnet: the plan's {action.call} at {action.moment} {action.at:g} failed: {error}\n")
        self.done.append(Done(action, self._height, result, error))
