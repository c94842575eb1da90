"""Random plans: whole histories of sends, faults, reorgs and orders, each judged after every act and played twice.

The same fifty by default. `make plans` draws FENCED_PLANS new ones (2000) or, with FENCED_PLAN_SEED, those of that seed, and
sends blobs too.
"""

import os
from random import randrange
from typing import Any

from hypothesis import HealthCheck, given, note, seed, settings

from tests.devnet.plans.acts import Act, Answered, Run, plans
from tests.devnet.plans.witness import Witness

MANY = "FENCED_PLANS" in os.environ
PLANS = int(os.environ.get("FENCED_PLANS", "50"))
SEED = int(os.environ.get("FENCED_PLAN_SEED", randrange(2**32) if MANY else 7))
ON_THE_WALL = {"devnet_clock", "evm_increaseTime"}  # they tell how far the chain's time is from the machine's


@seed(SEED)
@settings(max_examples=PLANS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(plan=plans())
def test_everything_stays_in_order_whatever_happens(plan: list[Act]) -> None:
    run = Run(blobs=MANY)
    witness = Witness(run)
    try:
        for act in plan:
            witness.begin(act)
            run.perform(act)
            witness.end(act)
        witness.finish()
    finally:
        note(f"FENCED_PLAN_SEED={SEED}, and what was asked and answered:")
        for call in run.calls[run.prepared :]:
            note(f"{_short(call.request)} -> {_short(call.answer)}")
    again = Run(blobs=MANY)
    for act in plan:
        again.perform(act)
    assert _story(again) == _story(run), "the same plan makes the same story"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 400 else f"{text[:200]} ... {text[-200:]}"


def _story(run: Run) -> dict[str, Any]:
    """All that a plan leads to, but for the time on the wall."""
    node = run.node
    return {
        "calls": [(call.request, _timeless(call)) for call in run.calls],
        "blocks": [block.hash.hex() for block in node.chain.blocks],
        "faults": node.faults.log,
        "ledger": [(row.raw, row.verdict, row.fault, row.resend) for row in node.ledger.submissions],
        "events": node.ledger.events,
    }


def _timeless(call: Answered) -> Any:
    """An answer without what compares the chain's time with the wall's."""
    if isinstance(call.request, dict) and call.request["method"] in ON_THE_WALL:
        return None
    return _without(call.answer, "time")


def _without(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, name) for key, item in value.items() if key != name}
    return [_without(item, name) for item in value] if isinstance(value, list) else value
