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
    """One case: whether it held, and the time from a kill to the other worker's next broadcast (or acquisition), in lease lengths."""

    case: str
    node: str
    held: bool
    takeover: float | None


def add(run: str, figures: list[Figure]) -> str:
    """Add cases to those of this run; the summary so far as one sentence."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "crash-matrix.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = _FOLDER / "crash-matrix.json"
        stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        if stored.get("run") != run:
            stored = {"run": run, "cases": []}
        stored["cases"] += [[f.case, f.node, f.held, f.takeover] for f in figures]
        taken = sorted(found for *_, found in stored["cases"] if found is not None)
        stored |= {
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
