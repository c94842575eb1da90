"""Run a scenario: load and faults for some seconds, then quiet until everything has ended by itself, then the judgement.

`run` returns figures; whatever breaks a promise is a sentence in `violations`, what only took too long too.
"""

import heapq
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from executor import operations
from executor.audit import audit
from tests.chaos import census, figures
from tests.chaos.ground import ChaosService, Crew, furnish
from tests.chaos.injuries import Injuries, Relief
from tests.chaos.scenario import Fault, Scenario, Wanted, faults_of, once_memos, requests_of, strategy_name
from tests.support.devnet import ROOT
from tests.support.service import CHAIN_ID, Wallet

FIGURES = ROOT / ".cache" / "figures"
_STEP_SECONDS = 0.02
_SAMPLE_SECONDS = 1.0
_LASTING = 2
_START_SECONDS = 180.0
_FEEDERS = 4
"""Side by side, since one that waits for a locked row must not hold up the others."""
_FED_SECONDS = 120.0
_MEMORY_JUDGED_SECONDS = 120.0
"""A shorter run sees only how a process fills its first caches."""
_UNENDED = "SELECT count(*) FROM execution WHERE ended_at IS NULL"
_STATES = "SELECT execution_id, strategy, slot, state, reason FROM execution"


@dataclass(slots=True)
class Run:
    """A scenario at work."""

    scenario: Scenario
    seed: int
    service: ChaosService
    crew: Crew
    injuries: Injuries
    wallets: list[Wallet]
    faults: Counter[str]
    memory: list[tuple[float, dict[str, int]]]
    begun: float = 0.0


def run(
    service: ChaosService, scenario: Scenario, seed: int, restart_database: Callable[[], None] | None = None
) -> dict[str, Any]:
    """Furnish the installation, put it under load and faults, let it drain, and judge it; the figures."""
    started = time.monotonic()
    first_block = int(service.node.rpc("eth_blockNumber"), 16) + 1
    wallets = furnish(service, scenario)
    crew = Crew(service, scenario.workers, _LASTING)
    injuries = Injuries(service, crew, scenario, restart_database)
    at_work = Run(scenario, seed, service, crew, injuries, wallets, Counter(), [])
    crew.start()
    begun = "SELECT count(*) FROM account WHERE first_nonce IS NULL"
    service.wait(lambda: service.value(begun) == 0, "every account has begun", _START_SECONDS)
    requests = requests_of(scenario, seed)
    failed: list[str] = []
    feeding = [
        threading.Thread(target=_feed, args=(service, requests[n::_FEEDERS], failed), daemon=True)
        for n in range(_FEEDERS)
    ]
    at_work.begun = time.monotonic()
    for feeder in feeding:
        feeder.start()
    _strike(at_work, faults_of(scenario, seed))
    for feeder in feeding:
        feeder.join(_FED_SECONDS)
    fed = time.monotonic()
    drained = _drain(at_work)
    ended = time.monotonic()
    for worker in service.workers:
        worker.terminate()
    for worker in service.workers:
        worker.wait_ended(120)
    found = _judge(at_work, requests, first_block)
    found += [f"a request could not be made: {error}" for error in failed]
    if any(feeder.is_alive() for feeder in feeding):
        found.append("requests could not be made in time")
    if not drained:
        found.append(f"not everything ended within {scenario.drain} s after the last fault\n{service.describe()}")
    if scenario.seconds >= _MEMORY_JUDGED_SECONDS:
        found += figures.grown(at_work.memory)
    told = figures.collect(service, injuries.kills, at_work.memory, scenario.lease)
    told |= {
        "seed": seed,
        "node": service.node.kind,
        "workers": scenario.workers,
        "accounts": scenario.accounts,
        "load_seconds": round(fed - at_work.begun, 1),
        "drain_seconds": round(ended - fed, 1),
        "other_seconds": round(at_work.begun - started + time.monotonic() - ended, 1),
        "executions_per_second": round(told["executions"] / (ended - at_work.begun), 1),
        "faults": dict(sorted(at_work.faults.items())),
        "faults_total": sum(n for kind, n in at_work.faults.items() if not kind.endswith(")")),
        "worker_ends": dict(sorted(crew.ended.items())),
        "violations": found,
    }
    return told


def judged(told: dict[str, Any], name: str) -> None:
    """Print and keep the figures of a run, and fail if it shows anything that is not promised."""
    print(f"figures of {name}: {told}")
    save(name, told)
    found = told["violations"]
    assert found == [], f"FENCED_CHAOS_SEED={told['seed']} repeats the faults\n" + "\n".join(found[:30])


def save(name: str, told: dict[str, Any]) -> Path:
    """Keep the figures of a run below .cache; where."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    path = FIGURES / f"{name}.json"
    path.write_text(json.dumps(told, indent=1) + "\n")
    return path


def _feed(service: ChaosService, requests: list[Wanted], failed: list[str]) -> None:
    begun = time.monotonic()
    for wanted in requests:
        time.sleep(max(0.0, begun + wanted.at - time.monotonic()))
        try:
            service.ask(wanted)
        except Exception as error:
            failed.append(f"{wanted.key}: {error}")


def _strike(at_work: Run, faults: list[Fault]) -> None:
    """Begin and end the faults at their times, and look after the workers meanwhile."""
    order = itertools.count()
    agenda: list[tuple[float, int, Callable[[], object]]] = []

    def begin(fault: Fault) -> None:
        try:
            relief: Relief | None = at_work.injuries.begin(fault)
        except LookupError:
            at_work.faults[f"{fault.kind} (nothing there)"] += 1
            return
        at_work.faults[fault.kind] += 1
        if relief is not None:
            heapq.heappush(agenda, (fault.at + fault.seconds, next(order), relief))

    for fault in faults:
        start: Callable[[], object] = partial(begin, fault)
        heapq.heappush(agenda, (fault.at, next(order), start))
    sampled = 0.0
    while (now := time.monotonic() - at_work.begun) < at_work.scenario.seconds or agenda:
        while agenda and agenda[0][0] <= now:
            heapq.heappop(agenda)[2]()
        at_work.crew.tend()
        if now >= sampled:
            at_work.memory.append((now, at_work.crew.memory()))
            sampled = now + _SAMPLE_SECONDS
        time.sleep(_STEP_SECONDS)


def _drain(at_work: Run) -> bool:
    """Faults are over: the schedules are paused once they have caught up, and everything ends by itself."""
    service, crew = at_work.service, at_work.crew
    crew.thaw()
    deadline = time.monotonic() + at_work.scenario.drain
    quiet = service.value("SELECT clock_timestamp()")
    behind = "SELECT count(*) FROM strategy WHERE high_water_mark < %s"

    def turn(done: Callable[[], bool]) -> bool:
        while not done():
            if time.monotonic() > deadline:
                return False
            crew.tend()
            time.sleep(0.05)
        return True

    caught_up = turn(lambda: service.value(behind, quiet) == 0)
    for account in range(at_work.scenario.accounts):
        service.patiently(partial(operations.pause, service.database, strategy_name(account), "the load is over"))
    return turn(lambda: service.value(_UNENDED) == 0) and turn(crew.is_full) and caught_up


def _judge(at_work: Run, requests: list[Wanted], first_block: int) -> list[str]:
    """Every sentence says what is wrong; none means that all promises held."""
    service = at_work.service
    found = list(at_work.crew.unexpected) + list(service.proxy.complaints)
    rows = {row["execution_id"]: row for row in service.rows(_STATES)}
    for wanted in requests:
        row = rows.pop(f"{strategy_name(wanted.account)}/id/{wanted.key}", None)
        if row is None or row["state"] not in wanted.ends:
            told = "is lost" if row is None else f"ended as {row['state']} ({row['reason']})"
            found.append(f"{wanted.key} {told}, wanted {' or '.join(wanted.ends)}")
    found += [
        f"{r['execution_id']} is {r['state']} ({r['reason']})" for r in rows.values() if r["state"] != "SUCCEEDED"
    ]
    found += _slots(at_work, [row["slot"] for row in rows.values()], [row["strategy"] for row in rows.values()])
    memos = [memo for wanted in requests for memo in wanted.memos]
    memos += [f"{execution}#0" for execution in rows] + sorted(once_memos(requests))
    counted = census.count_effects(service.node, [wallet.address for wallet in at_work.wallets], first_block)
    found += census.judge(counted, memos, sum(wanted.cancels for wanted in requests))
    found += [
        f"account {r['name']} is {r['state']}: {r['reason']}"
        for r in service.rows("SELECT * FROM account")
        if r["state"] != "open"
    ]
    stored = {bytes(row["raw"]) for row in service.rows("SELECT raw FROM attempt WHERE raw IS NOT NULL")}
    found += [
        f"bytes that are not stored went out: 0x{raw.hex()}" for raw in {s.raw for s in service.proxy.sent} - stored
    ]
    found += [str(violation) for violation in audit(service.database_url, {CHAIN_ID: [service.node.url]}).violations]
    return found


def _slots(at_work: Run, slots: list[Any], strategies: list[str]) -> list[str]:
    """Each strategy has an unbroken row of slots (G1, and nothing lost)."""
    found = []
    for strategy in sorted(set(strategies)):
        own = sorted(slot for slot, name in zip(slots, strategies, strict=True) if name == strategy)
        steps = {(after - before).total_seconds() for before, after in itertools.pairwise(own)}
        if steps - {at_work.scenario.every}:
            found.append(f"{strategy} has lost or doubled a slot: steps of {sorted(steps)} s")
    if len(set(strategies)) != at_work.scenario.accounts:
        found.append("a strategy has no slot at all")
    return found
