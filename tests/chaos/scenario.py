"""What a run does to an installation, and what it asks of it: decided by one seed before anything starts.

A scenario is data: how many workers and accounts, how many executions in how many seconds, and weights of faults. The
same scenario and seed give the same faults at the same moments against the same targets, and the same requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

WORKER_FAULTS: Mapping[str, float] = {"kill": 3, "freeze": 2, "terminate": 1}
DATABASE_FAULTS: Mapping[str, float] = {"cut_sessions": 2, "lock_account": 1, "lock_lease": 1}
SEND_FAULTS: Mapping[str, float] = {
    "send.drop_after": 3,
    "send.drop_before": 1,
    "send.accept_as_error": 1,
    "send.lie_accept": 1,
    "send.null_result": 0.5,
    "send.wrong_id": 0.5,
    "send.duplicate": 0.5,
    "send.partial_batch": 0.5,
    "send.reorder_batch": 0.5,
    "send.http": 1,
    "send.html": 0.5,
    "send.truncate_json": 0.5,
    "send.empty_body": 0.5,
    "send.error": 0.5,
    "send.delay": 0.5,
}
READ_FAULTS: Mapping[str, float] = {
    "read.http": 1,
    "read.drop_after": 0.5,
    "read.html": 0.5,
    "read.truncate_json": 0.5,
    "read.empty_body": 0.5,
    "read.wrong_id": 0.5,
    "read.partial_batch": 0.5,
    "read.reorder_batch": 0.5,
    "read.error": 0.5,
    "read.delay": 0.5,
    "read.stale": 1,
    "receipt.null_result": 1,
}
"""Kinds of devnet_fault rules, on the calls that send, that read, or that ask for receipts."""
CHAIN_FAULTS: Mapping[str, float] = {"evict": 2, "reorg": 2, "lagging_nodes": 1, "node_restart": 0.5, "fee_spike": 0.5}
LOST_REPLIES: Mapping[str, float] = {"lost_replies": 2, "refused_sends": 1}
"""Made by the recording proxy, so that they work with any node."""
ANY_NODE: Mapping[str, float] = {**LOST_REPLIES, "evict": 2, "reorg": 2}
"""What can be done to anvil too."""
DEVNET: Mapping[str, float] = {**LOST_REPLIES, **SEND_FAULTS, **READ_FAULTS, **CHAIN_FAULTS}

_SHAPES = {"single": 12, "ordered": 3, "together": 3, "once": 3, "refused": 1, "reverting": 1, "nothing": 1}
"""Kinds of plans that are triggered, with their weights."""
_RIVALS = 3
"""How many executions want one and the same `once`."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Durations in seconds; `gap` is the mean time between two faults of one group, by group.

    `groups` are weights of faults by group; each group strikes on its own, so that faults of different groups overlap.
    """

    workers: int
    accounts: int
    executions: int
    seconds: float
    groups: Mapping[str, Mapping[str, float]]
    gap: Mapping[str, float]
    lease: int = 4
    every: int = 5
    depth: int = 4
    block_time: float = 0.5
    drain: float = 60.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: when it begins (seconds after the load), which, how long, and a seed for what it still has to choose."""

    at: float
    kind: str
    target: int
    seconds: float
    seed: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """One execution to ask for. `memos` are the calls that must be in a block exactly once, `ends` the ends it may have."""

    at: float
    account: int
    key: str
    payload: dict[str, Any] = field(hash=False)
    memos: tuple[str, ...]
    ends: tuple[str, ...]
    cancels: int = 0


def faults_of(scenario: Scenario, seed: int) -> list[Fault]:
    """The faults of a run, in order of time."""
    found: list[Fault] = []
    for group in sorted(scenario.groups):
        rng, weights = Random(f"{seed} {group}"), scenario.groups[group]
        kinds, at = sorted(weights), 1.0
        while weights and (at := at + rng.expovariate(1 / scenario.gap[group])) < scenario.seconds - 1:
            (kind,) = rng.choices(kinds, [weights[kind] for kind in kinds])
            found.append(Fault(at, kind, rng.randrange(1 << 16), _lasting(kind, scenario, rng), rng.randrange(1 << 32)))
    return sorted(found, key=lambda fault: (fault.at, fault.kind))


def _lasting(kind: str, scenario: Scenario, rng: Random) -> float:
    if kind == "freeze":
        return scenario.lease * rng.uniform(0.3, 2.5)
    if kind in {"kill", "terminate"}:
        return rng.uniform(0.1, scenario.lease)
    return rng.uniform(0.5, 3.0) if not kind.startswith("lock") else rng.uniform(0.3, 1.3)


def requests_of(scenario: Scenario, seed: int) -> list[Wanted]:
    """What is triggered during a run, in order of time; what the schedules add is counted in `executions` too."""
    rng = Random(f"{seed} requests")
    slots = int(scenario.seconds / scenario.every) * scenario.accounts
    shapes = sorted(_SHAPES)
    found: list[Wanted] = []
    while len(found) < max(scenario.executions - slots, _RIVALS):
        (shape,) = rng.choices(shapes, [_SHAPES[shape] for shape in shapes])
        number = len(found)
        copies = _RIVALS if shape == "once" else 1
        for copy in range(copies):
            at = rng.uniform(0, scenario.seconds)
            found.append(_wanted(shape, number, copy, at, rng.randrange(scenario.accounts)))
    return sorted(found, key=lambda wanted: (wanted.at, wanted.key))


def _wanted(shape: str, number: int, copy: int, at: float, account: int) -> Wanted:
    key = f"{shape}-{number}-{copy}"
    payload: dict[str, Any] = {"shape": shape}
    execution = f"{strategy_name(account)}/id/{key}"
    steps = {"ordered": 3, "together": 3, "nothing": 0, "once": 0}.get(shape, 1)
    ends = {
        "refused": ("PARTIAL",),
        "reverting": ("REVERTED",),
        "nothing": ("SKIPPED",),
        "once": ("SUCCEEDED", "SKIPPED"),
    }
    if shape == "once":
        payload["once"] = f"invoice/{number}"
    memos = tuple(f"{execution}#{step}" for step in range(steps))
    return Wanted(at, account, key, payload, memos, ends.get(shape, ("SUCCEEDED",)), cancels=int(shape == "refused"))


def strategy_name(account: int) -> str:
    """The only strategy of an account."""
    return f"work-{account}"


def once_memos(requests: list[Wanted]) -> set[str]:
    """The calls that several executions want and one may make."""
    return {f"once {wanted.payload['once']}" for wanted in requests if "once" in wanted.payload}
