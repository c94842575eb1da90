"""Runs strategies in warm, killable child processes, one per strategy, each plan under its own deadline (P19).

A plan that raises, hangs, ends or kills its process, forks, prints or answers rubbish costs its own execution and
nothing else: the child's whole process group is killed and the rest of the batch goes on in a new child.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

from executor.plan_link import Child, Gone
from executor.plan_request import PlanRequest, PlanResult
from executor.plan_source import module_source
from executor.strategy_values import PlanFailed, check_planned, decode_outcome
from executor.units import parse_address

__all__ = ["START_SECONDS", "PlanPool", "PlanRequest", "PlanResult", "module_source"]

START_SECONDS: Final = 30.0
_Key: TypeAlias = tuple[str, str]
_SIDE_BY_SIDE: Final = 16
_STOPPING: Final = PlanFailed("unreachable", "the executor is stopping; the plan is made by the next holder.")


@dataclass
class _Place:
    """Where the child of one strategy lives; `lock` is held while it is talked to."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    child: Child | None = None


class PlanPool:
    """The children of one worker.

    Thread-safe: plans of different strategies run side by side, those of one strategy in turn. Only one thread of
    its own starts children, because the kernel ends a child with the thread that started it.

    Args:
        search_path: the configuration's directory, where plan modules are found first.
        environment: variables the children get beside PATH, HOME, LANG, TZ and PYTHON*.
        sources: SHA-256 (hex) of the module file of each plan, as its revision has it; a child that loads another
            file plans nothing. Without it the first file loaded counts.
        start_seconds: how long a module may take to import.
    """

    def __init__(
        self,
        search_path: Path,
        *,
        environment: Mapping[str, str] | None = None,
        sources: Mapping[str, str] | None = None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._search_path = search_path.resolve()
        self._environment = dict(environment or {})
        self._start_seconds = start_seconds
        self._places: dict[_Key, _Place] = {}
        self._sources = dict(sources or {})
        self._guard = threading.Lock()
        self._starter = ThreadPoolExecutor(1, "plan-starter")
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def warm(self, plans: Mapping[str, str]) -> dict[str, PlanFailed]:
        """Start the children of `plans` (strategy to plan), all at once; returns those that cannot be loaded."""
        failed = {}
        for key in plans.items():
            place = self._place(key)
            with place.lock, contextlib.suppress(Gone):
                place.child = place.child or self._start(key[1])
        for key in plans.items():
            place = self._place(key)
            with place.lock:
                try:
                    self._ready(place, key[1])
                except Gone as gone:
                    failed[key[0]] = gone.failure
        return failed

    def plan(self, requests: Sequence[PlanRequest], timeout_seconds: float) -> list[PlanResult]:
        """One result per request, in order; each request has `timeout_seconds` of its own. Never raises for a plan.

        Strategies of one call run side by side, the requests of one strategy in turn.
        """
        groups: dict[_Key, list[int]] = {}
        for at, request in enumerate(requests):
            groups.setdefault((request.strategy, request.plan), []).append(at)
        results: dict[int, PlanResult] = {}

        def run(key: _Key) -> None:
            positions = groups[key]
            place = self._place(key)
            with place.lock:
                done = 0
                while done < len(positions):
                    answered = self._batch(place, [requests[at] for at in positions[done:]], timeout_seconds)
                    results.update(zip(positions[done:], answered, strict=False))
                    done += len(answered)

        if len(groups) == 1:
            run(next(iter(groups)))
        elif groups:
            with ThreadPoolExecutor(min(_SIDE_BY_SIDE, len(groups)), "plan") as runners:
                list(runners.map(run, groups))
        return [results[at] for at in range(len(requests))]

    def check(self, plan: str) -> PlanFailed | None:
        """None if `plan` can be imported in a child and takes one argument, else what is wrong."""
        place = _Place()
        try:
            self._ready(place, plan)
        except Gone as gone:
            return gone.failure
        finally:
            if place.child is not None:
                place.child.dispose()
        return None

    def close(self) -> None:
        """Kill all children; a plan that is running comes back as unreachable."""
        with self._guard:
            self._closed = True
            places = list(self._places.values())
        for place in places:
            child = place.child
            if child is not None:
                child.kill()
        for place in places:
            with place.lock:
                if place.child is not None:
                    place.child.dispose()
                    place.child = None
        self._starter.shutdown()

    def _batch(self, place: _Place, requests: Sequence[PlanRequest], timeout_seconds: float) -> list[PlanResult]:
        """Results for the first of `requests`: all of them, or up to the one that cost the child its life.

        When no child can be started, all have that failure.
        """
        results: list[PlanResult] = []
        begun = time.monotonic()
        child: Child | None = None
        try:
            child = self._ready(place, requests[0].plan)
            child.send([(number, request.message()) for number, request in enumerate(requests)])
            for number, request in enumerate(requests):
                begun = time.monotonic()
                outcome = decode_outcome(_numbered(child, child.receive(timeout_seconds), number))
                checked = check_planned(outcome, parse_address(request.account), allow_create=request.allow_create)
                results.append(PlanResult(request.execution_id, checked, time.monotonic() - begun, child.take_output()))
        except Gone as gone:
            place.child = None
            failure = _STOPPING if self._closed else gone.failure
            output = "" if child is None else child.take_output()
            spent = time.monotonic() - begun
            lost = requests[len(results) :] if child is None else requests[len(results) : len(results) + 1]
            results.extend(PlanResult(request.execution_id, failure, spent, output) for request in lost)
        return results

    def _place(self, key: _Key) -> _Place:
        with self._guard:
            return self._places.setdefault(key, _Place())

    def _start(self, plan: str) -> Child:
        with self._guard:
            if self._closed:
                raise Gone(_STOPPING.kind, _STOPPING.message)
            starting = self._starter.submit(Child, plan, self._search_path, self._environment)
        return starting.result()

    def _ready(self, place: _Place, plan: str) -> Child:
        """The running child of `place`, started and greeted if need be. Raises Gone when it cannot be."""
        if place.child is not None and not place.child.is_running():
            place.child.dispose()
            place.child = None
        child = place.child = place.child or self._start(plan)
        if not child.greeted:
            try:
                self._greet(child, plan)
            except Gone as gone:
                place.child = None
                raise Gone("import", _on_import(plan, gone.failure)) from None
        return child

    def _greet(self, child: Child, plan: str) -> None:
        greeting = _numbered(child, child.receive(self._start_seconds), 0)
        source = greeting.get("source") if isinstance(greeting, dict) and greeting.get("kind") == "ready" else None
        if not isinstance(source, str):
            child.dispose()
            failure = decode_outcome(greeting)
            raise Gone("import", failure.message if isinstance(failure, PlanFailed) else "the greeting is no greeting.")
        with self._guard:
            known = self._sources.setdefault(plan, source)
        if known != source:
            child.dispose()
            raise Gone("import", f"the file of {plan} changed since this worker loaded it; restart the worker.")
        child.greeted = True


def _numbered(child: Child, answer: object, number: int) -> object:
    """The answer's value, if it is the answer to request `number`."""
    if isinstance(answer, list) and len(answer) == 2 and answer[0] == number:
        return answer[1]
    child.dispose()
    raise Gone("bad_result", "the plan's process answered out of turn; leave its pipes alone.")


def _on_import(plan: str, failure: PlanFailed) -> str:
    if failure.kind == "import":
        return failure.message
    if failure.kind == "timeout":
        return f"{plan.partition(':')[0]} did not finish importing; move slow work from the module into the plan."
    return f"while importing {plan.partition(':')[0]}, {failure.message}"
