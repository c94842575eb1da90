"""A worker as `fenced run` starts it, that also notes where its time goes: `python -m tests.bench.timed_worker CONFIG NAME`.

Writes NAME.json beside the configuration at its end. With BENCH_PROFILE set it profiles its ticks and plans into that file.
"""

import cProfile
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chain.client import ChainClient
from executor import app, config
from executor.plan_process import PlanPool
from executor.stages import broadcast, confirm, finalize, plan, reconcile, reserve, sign
from executor.worker import Worker
from signer.service import Signer

_seconds: Counter[str] = Counter()
_lock = threading.Lock()


def _timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            with _lock:
                _seconds[name] += time.perf_counter() - began

    return run


def _profiled(profile: cProfile.Profile, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        return profile.runcall(function, *args)

    return run


def main(path: Path, name: str) -> int:
    """Work until SIGTERM."""
    for stage in (plan, reserve, sign, broadcast, confirm, finalize, reconcile):
        stage.run = _timed(stage.__name__.rpartition(".")[2], stage.run)  # type: ignore[attr-defined]
    PlanPool.plan = _timed("plan.child", PlanPool.plan)  # type: ignore[method-assign]
    Signer.sign = _timed("sign.signer", Signer.sign)  # type: ignore[method-assign]
    ChainClient.send = _timed("broadcast.node", ChainClient.send)  # type: ignore[method-assign]
    profile = cProfile.Profile(time.thread_time) if os.environ.get("BENCH_PROFILE") else None
    if profile is not None:
        what = os.environ.get("BENCH_PROFILE_WHAT", "_tick")
        setattr(Worker, what, _profiled(profile, getattr(Worker, what)))
    try:
        return app.run_worker(config.load(path), name=name)
    finally:
        _seconds["cpu"] = time.process_time()
        (path.parent / f"{name}.json").write_text(json.dumps(dict(_seconds)))
        if profile is not None:
            profile.dump_stats(os.environ["BENCH_PROFILE"])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
