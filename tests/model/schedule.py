"""A counterexample as a schedule of faults: which worker ends or stands still where, and what the chain does meanwhile.

The right build has to come through it. Everything a healthy worker does by itself is left out.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tests.model.explore import Told

LOST_REPLY, MINED, FINAL, REORG, EVICTED = "lost reply", "mined", "final", "reorg", "evicted"
_CHAIN = {MINED, FINAL, REORG, EVICTED}
_TAKES = ("lease.acquired", "dies")


class Fault(NamedTuple):
    """A worker that reaches `point` is killed there, or stands still until another has taken over and then goes on ("stop")."""

    point: str
    action: str


Schedule = tuple[Fault | str, ...]


def schedule_of(trace: Sequence[Told]) -> Schedule | None:
    """The schedule of a trace; None where it takes a backup, an operator, or a stranger."""
    faults = _faults(trace)
    found: list[Fault | str] = []
    for place, told in enumerate(trace):
        if told.actor < 0:
            if told.name not in _CHAIN:
                return None
            found.append(told.name)
        elif told.name == "broadcast.sent" and (": timeout" in told.detail or ": an error" in told.detail):
            found.append(LOST_REPLY)
        elif told.detail.endswith("no reply"):  # to a COMMIT
            found.append(Fault(told.name, "kill"))
        if place in faults:
            found.append(faults[place])
    return tuple(found)


def _faults(trace: Sequence[Told]) -> dict[int, Fault]:
    """By their place: the last step of each worker before it dies or is overtaken.

    What an overtaken worker looks up before it writes might as well have been looked up before the takeover: it stands
    still right before the last thing it does.
    """
    found: dict[int, Fault] = {}
    for place, told in enumerate(trace):
        if told.name not in _TAKES or told.actor < 0:
            continue
        overtaken = told.actor if told.name == "dies" else 1 - told.actor
        before = _own(trace, overtaken, place)
        if told.name == "dies":
            if before:
                found[before[-1]] = Fault(trace[before[-1]].name, "kill")
            continue
        after = []
        for later in range(place + 1, len(trace)):
            if trace[later].actor == overtaken:
                if trace[later].name in _TAKES:
                    break
                after.append(later)
        steps = [*before, *after]
        if after and len(steps) > 1:
            found[steps[-2]] = Fault(trace[steps[-2]].name, "stop")
        elif before and not after:
            found[before[-1]] = Fault(trace[before[-1]].name, "kill")
    return found


def _own(trace: Sequence[Told], worker: int, place: int) -> list[int]:
    """The steps of a worker under the generation it has at `place`."""
    found: list[int] = []
    for earlier in range(place - 1, -1, -1):
        if trace[earlier].actor == worker:
            if trace[earlier].name in _TAKES:
                break
            found.insert(0, earlier)
    return found
