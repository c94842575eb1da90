"""What the matrix has measured, over all processes of one test run: .cache/figures/crash-matrix.json."""

import fcntl
import json
import statistics
from dataclasses import dataclass
from typing import Any

from tests.support.devnet import ROOT

_FOLDER = ROOT / ".cache" / "figures"


@dataclass(frozen=True, slots=True)
class Figure:
    """One case: whether it held, and the seconds from a kill to the next broadcast (or acquisition) of the other worker."""

    case: str
    node: str
    held: bool
    takeover_seconds: float | None


def add(run: str, ttl_seconds: float, figures: list[Figure]) -> str:
    """Add cases to those of this run; the summary so far as one sentence."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "crash-matrix.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = _FOLDER / "crash-matrix.json"
        stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        if stored.get("run") != run:
            stored = {"run": run, "ttl_seconds": ttl_seconds, "cases": []}
        stored["cases"] += [[f.case, f.node, f.held, f.takeover_seconds] for f in figures]
        taken = sorted(seconds / ttl_seconds for *_, seconds in stored["cases"] if seconds is not None)
        stored |= {
            "executions_struck": len(stored["cases"]),
            "faults_injected": len(stored["cases"]),
            "violations": sum(not held for _, _, held, _ in stored["cases"]),
            "kills_measured": len(taken),
            "takeover_in_ttl": {"p50": round(statistics.median(taken), 2), "max": round(taken[-1], 2)}
            if taken
            else None,
        }
        file.write_text(json.dumps(stored, indent=1))
    return (
        f"crash matrix: {stored['faults_injected']} faults, {stored['violations']} violations,"
        f" from kill to the next broadcast in TTLs: {stored['takeover_in_ttl']}"
    )
