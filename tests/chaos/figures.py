"""Figures of a run, from its rows and its proxy."""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from tests.chaos.ground import ChaosService
from tests.chaos.injuries import Kill

Memory = Sequence[tuple[float, dict[str, int]]]
"""Resident bytes of each process that is never ended, at moments of the run."""
ALLOWED_MIB = 4.0
_GENERATIONS = "SELECT account_id, extract(epoch FROM at)::float8 AS at FROM lease_generation ORDER BY account_id, at"
_DUE = "SELECT account_id, extract(epoch FROM due_at)::float8 AS due FROM execution ORDER BY account_id, due_at"
_COUNTS = {
    "executions": "SELECT count(*) FROM execution",
    "transactions": "SELECT count(*) FROM attempt WHERE status = 'FINAL'",
    "lease_generations": "SELECT count(*) FROM lease_generation",
    "stale_writes_refused": "SELECT count(*) FROM refused_write",
}


def collect(service: ChaosService, kills: Sequence[Kill], memory: Memory, lease: float) -> dict[str, Any]:
    """Counts, the time from each kill to the next hand-over in lease lengths, and memory by thirds of the run."""
    told: dict[str, Any] = {name: int(service.value(sql)) for name, sql in _COUNTS.items()}
    told["accounts_orphaned_by_kills"] = sum(len(kill.accounts) for kill in kills)
    told["kill_to_next_lease_in_leases"] = spread([gap / lease for gap in _takeovers(service, kills)])
    told["kill_to_next_broadcast_in_leases"] = spread([gap / lease for gap in _broadcasts(service, kills, lease)])
    told["resident_mib_by_thirds"] = _resident(memory)
    return told


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum, with how many there were."""
    if not values:
        return {"count": 0}
    ordered = sorted(values)
    at = {"p50": len(ordered) // 2, "p99": min(len(ordered) - 1, len(ordered) * 99 // 100), "max": -1}
    return {"count": len(ordered)} | {name: round(ordered[index], 2) for name, index in at.items()}


def _takeovers(service: ChaosService, kills: Sequence[Kill]) -> list[float]:
    taken: dict[int, list[float]] = defaultdict(list)
    for row in service.rows(_GENERATIONS):
        taken[row["account_id"]].append(row["at"])
    return [at - kill.at for kill in kills for account in kill.accounts if (at := _after(taken[account], kill.at))]


def _broadcasts(service: ChaosService, kills: Sequence[Kill], lease: float) -> list[float]:
    """Seconds to the first bytes that arrive under a later generation, where something was due before the lease ran out.

    A kill whose successor was killed too before it sent anything is counted from the later one.
    """
    senders = {bytes(row["address"]): row["account_id"] for row in service.rows("SELECT * FROM account")}
    offset = time.time() - time.monotonic()
    arrived: dict[int, list[float]] = defaultdict(list)
    for sent in service.proxy.sent:
        arrived[senders[sent.sender]].append(sent.at + offset)
    taken: dict[int, list[float]] = defaultdict(list)
    for row in service.rows(_GENERATIONS):
        taken[row["account_id"]].append(row["at"])
    due: dict[int, list[float]] = defaultdict(list)
    for row in service.rows(_DUE):
        due[row["account_id"]].append(row["due"])
    found = []
    for kill in kills:
        for account in kill.accounts:
            generation, waiting = _after(taken[account], kill.at), _after(due[account], kill.at)
            if generation is None or waiting is None or waiting > kill.at + lease:
                continue
            arrival = _after(arrived[account], generation)
            again = any(kill.at < k.at < (arrival or k.at) and account in k.accounts for k in kills)
            if arrival is not None and not again:
                found.append(arrival - kill.at)
    return found


def _after(times: Sequence[float], moment: float) -> float | None:
    index = bisect_left(times, moment)
    return times[index] if index < len(times) else None


def grown(memory: Memory) -> list[str]:
    """One sentence for each worker whose resident memory grew, from the second third of its life to the last, by more than allowed."""
    return [
        f"{name} grew from {thirds[1]} to {thirds[2]} MiB, {ALLOWED_MIB} MiB are allowed"
        for name, thirds in _resident(memory).items()
        if thirds[2] - thirds[1] > ALLOWED_MIB
    ]


def _resident(memory: Memory) -> dict[str, list[float]]:
    """MiB by thirds of its samples, of each process that was there for more than half of the run."""
    found = {}
    for name in sorted({name for _, sample in memory for name in sample}):
        sizes = [sample[name] for _, sample in memory if name in sample]
        third = len(sizes) // 3
        if third and len(sizes) > len(memory) / 2:
            parts = (sizes[:third], sizes[third : 2 * third], sizes[2 * third :])
            found[name] = [round(mean(part) / 2**20, 1) for part in parts]
    return found
