"""Breadth-first search over every interleaving, with the shortest trace to each kind of violation, and liveness."""

import gc
import time
from collections import deque
from dataclasses import dataclass, field

from tests.model import invariants
from tests.model.build import Build, Scenario
from tests.model.state import IDLE, PENDING, Account, Execution, State, Step, Worker
from tests.model.steps import worker_steps
from tests.model.world import events


@dataclass(frozen=True, slots=True)
class Told:
    """One line of a trace: who (0, 1, or -1 for the world) did what, about what."""

    actor: int
    name: str
    detail: str

    def __str__(self) -> str:
        return f"{'world' if self.actor < 0 else f'w{self.actor + 1}'}: {self.name} {self.detail}".rstrip()


@dataclass(slots=True)
class Result:
    """What a search found. `traces` has the shortest way to the first of each kind of violation; `ways`, where one step is
    the violation, the shortest to each such step by its name."""

    states: int
    seconds: float
    is_complete: bool
    traces: dict[str, list[Told]] = field(default_factory=dict)
    ways: dict[tuple[str, str], list[Told]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    stuck: int = 0

    @property
    def broken(self) -> set[str]:
        """The kinds of violation."""
        return set(self.traces)

    def tell(self, kind: str) -> str:
        """A counterexample as text."""
        return "\n".join([f"{kind}: {invariants.MEANING[kind]}", *(f"  {told}" for told in self.traces[kind])])


def beginning(b: Build, c: Scenario) -> State:
    """Nothing is reserved, nobody works."""
    first = Worker(1, b.journal, ()) if c.threads else IDLE
    executions = tuple(Execution(PENDING, 0, 0) for _ in c.executions)
    return State(executions, (), (), (), 0, frozenset(), Account(), frozenset(), False, None, False, -1, (first, first))


def steps_from(b: Build, c: Scenario, s: State) -> list[Step]:
    """Every transition from a state."""
    found = list(events(b, c, s))
    for w in range(c.workers):
        found += worker_steps(b, c, s, w)
    return found


def canonical(c: Scenario, s: State) -> tuple[State, bool]:
    """Workers have no names: two states that differ in which is which are one. Whether they were swapped."""
    one, other = s.workers
    if one <= other or c.workers == 1:
        return s, False
    swapped = s.working((other, one))
    if s.snapshot is not None and s.snapshot.holder >= 0:
        swapped = swapped._replace(snapshot=s.snapshot._replace(holder=1 - s.snapshot.holder))
    return swapped, True


class Search:
    """One exhaustive search, or one that ends as soon as all of `until` is found or `limit` states are seen."""

    def __init__(self, b: Build, c: Scenario, limit: int = 10_000_000) -> None:
        self._build, self._scenario, self._limit = b, c, limit
        self._ids: dict[State, int] = {}
        self._states: list[State] = []
        self._from: list[tuple[int, Step | None, bool]] = []
        self._before: list[list[int]] = []

    def run(self, until: frozenset[str] = frozenset()) -> Result:
        """Search."""
        began = time.process_time()
        result = Result(0, 0.0, True)
        self._add(canonical(self._scenario, beginning(self._build, self._scenario))[0], (-1, None, False))
        todo: deque[int] = deque([0])
        while todo:
            if len(self._states) > self._limit or (until and until <= result.broken):
                result.is_complete = False
                break
            self._expand(todo.popleft(), todo, result)
        result.states = len(self._states)
        if result.is_complete:
            self._look_for_stuck(result)
        result.seconds = time.process_time() - began
        return result

    def _expand(self, here: int, todo: deque[int], result: Result) -> None:
        b, c = self._build, self._scenario
        for step in steps_from(b, c, self._states[here]):
            result.names.add(step.name)
            to, swapped = canonical(c, step.to)
            there = self._ids.get(to)
            if there is None:
                there = self._add(to, (here, step, swapped))
                todo.append(there)
                for kind in invariants.broken(b, c, to):
                    if kind not in result.traces:
                        result.traces[kind] = self._trace(there)
            self._before[there].append(here)
            for kind in step.broken:
                if (kind, step.name) not in result.ways:
                    way = result.ways[kind, step.name] = [*self._trace(here), self._told(step, here)]
                    result.traces.setdefault(kind, way)

    def _add(self, state: State, how: tuple[int, Step | None, bool]) -> int:
        number = self._ids[state] = len(self._states)
        self._states.append(state)
        self._from.append(how)
        self._before.append([])
        return number

    def _told(self, step: Step, here: int) -> Told:
        """The step with the worker's name as it was at the beginning, whatever was swapped on the way."""
        swaps = 0
        while here > 0:
            here, _, swapped = self._from[here]
            swaps += swapped
        actor = step.actor if step.actor < 0 or swaps % 2 == 0 else 1 - step.actor
        return Told(actor, step.name, step.detail)

    def _trace(self, there: int) -> list[Told]:
        told = []
        while there > 0:
            before, step, _ = self._from[there]
            assert step is not None
            told.append(self._told(step, before))
            there = before
        return told[::-1]

    def _look_for_stuck(self, result: Result) -> None:
        """Backwards from where a search may rest: what is never met cannot get there."""
        reached = bytearray(len(self._states))
        todo = [i for i, state in enumerate(self._states) if invariants.is_goal(state)]
        for i in todo:
            reached[i] = 1
        while todo:
            for before in self._before[todo.pop()]:
                if not reached[before]:
                    reached[before] = 1
                    todo.append(before)
        result.stuck = len(self._states) - sum(reached)
        if result.stuck:
            result.traces["stuck"] = self._trace(reached.index(0) or reached.rindex(0))


def explore(b: Build, c: Scenario, *, until: frozenset[str] = frozenset(), limit: int = 10_000_000) -> Result:
    """Search a scenario with a build."""
    # A search makes millions of tuples and no cycles.
    gc.disable()
    try:
        return Search(b, c, limit).run(until)
    finally:
        gc.enable()
