"""Plan: PENDING → PLANNED, in a killable child process outside the tick, so that a slow strategy delays nobody's settling (P19)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chain.client import ChainClient
from chain.transaction import intent_digest
from chain.types import Head, checksum
from executor.crashpoints import CrashPoint
from executor.database import Held, Refused
from executor.plan_process import PlanPool, PlanRequest, PlanResult
from executor.records import PendingExecution
from executor.store import accounts, executions, parking, plans
from executor.strategy_values import NothingToDo, PlanFailed, Planned, PlanOutcome
from executor.turn import Turn, record_in_halves

log = logging.getLogger("fenced.plan")
_BATCH = 250
_TRIES = 3
_RETRY_SECONDS = (1.0, 5.0)


@dataclass(frozen=True, slots=True)
class Definition:
    """A strategy as this worker has it; it plans executions of exactly this revision (P18b)."""

    revision: str
    plan: str
    params: Mapping[str, Any]
    allow_create: bool


@dataclass(frozen=True, slots=True)
class Planner:
    """How this worker makes the plans of one strategy. `endpoint_url` is where its chain reads go."""

    pool: PlanPool
    definition: Definition
    endpoint_url: str
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class PlanReport:
    """How many executions moved, and whether some wait for a worker with their revision."""

    moved: int
    is_unplannable: bool


def run(turn: Turn, client: ChainClient, strategy: str, planner: Planner | None) -> PlanReport:
    """Plan what is due of one strategy, all of it against one block.

    Raises Unavailable when no endpoint tells the head; nothing was counted then.
    """
    with turn.database.read() as tx:
        account = accounts.get(tx, turn.account.account_id)
        if account.state != "open" or account.is_rewound:
            return PlanReport(0, False)
        pending = executions.select_pending(tx, turn.account.account_id, strategy, _BATCH)
    early = [p.execution_id for p in pending if p.due_before]
    expired = [p for p in pending if p.expired and not p.due_before]
    live = [p for p in pending if not p.expired and not p.due_before]
    known = [] if planner is None else [p for p in live if p.revision == planner.definition.revision]
    is_unplannable = len(known) < len(live)
    if early:
        # No misfire or overlap policy runs what was due before a reopening after a rewind: a lost row may have paid it.
        turn.record(lambda held: parking.park(held, early))
    if expired:
        turn.record(lambda held: executions.end_unreserved(held, [_ending(p, "SKIPPED", _late(p)) for p in expired]))
        turn.crash(CrashPoint.PLAN_EXPIRED)
    if planner is None or not known:
        return PlanReport(len(early) + len(expired), is_unplannable)
    head = client.view(turn.account.address).head
    turn.record(lambda held: executions.count_planning(held, [p.execution_id for p in known]))
    turn.crash(CrashPoint.PLAN_COUNTED)
    results = planner.pool.plan([_request(turn, p, planner, head) for p in known], planner.timeout_seconds)
    turn.crash(CrashPoint.PLAN_MADE)
    rows = list(zip(known, results, strict=True))
    record_in_halves(rows, lambda some: _record(turn, head, some), lambda row, why: _offend(turn, row[0], why))
    turn.crash(CrashPoint.PLAN_RECORDED)
    log.info(
        "plans looked at",
        extra={"account": turn.account.name, "executions": {p.execution_id: _word(r.outcome) for p, r in rows}},
    )
    return PlanReport(len(early) + len(expired) + len(rows), is_unplannable)


def _word(outcome: PlanOutcome) -> str:
    if isinstance(outcome, Planned):
        return f"{len(outcome.calls)} calls"
    return "nothing to do" if isinstance(outcome, NothingToDo) else f"failed: {outcome.kind}"


def _late(pending: PendingExecution) -> str:
    return "start deadline passed before a plan was made" + (
        f" ({pending.planning_attempts} tries)" if pending.planning_attempts else ""
    )


def _request(turn: Turn, pending: PendingExecution, planner: Planner, head: Head) -> PlanRequest:
    return PlanRequest(
        execution_id=pending.execution_id,
        slot=pending.slot,
        strategy=pending.strategy,
        plan=planner.definition.plan,
        params=planner.definition.params,
        input=pending.input,
        account=checksum(turn.account.address),
        chain_id=turn.account.chain_id,
        block_number=head.number,
        block_hash="0x" + head.hash.hex(),
        endpoint_url=planner.endpoint_url,
        allow_create=planner.definition.allow_create,
    )


def _record(turn: Turn, head: Head, rows: Sequence[tuple[PendingExecution, PlanResult]]) -> None:
    def write(held: Held) -> None:
        if held.account_state != "open":
            return  # halted meanwhile: nothing is planned (P16)
        outcomes = [(p, _checked(turn, result.outcome)) for p, result in rows]
        planned = [(p, o) for p, o in outcomes if isinstance(o, Planned)]
        plans.insert(held, [row for p, o in planned for row in _intents(turn, p, o)])
        executions.record_planned(
            held,
            [
                {"execution_id": p.execution_id, "revision": p.revision, "plan_order": o.order, "steps": len(o.calls)}
                for p, o in planned
            ],
            head.number,
            head.hash,
        )
        executions.end_unreserved(
            held,
            [_ending(p, "SKIPPED", f"nothing to do: {o.reason}") for p, o in outcomes if isinstance(o, NothingToDo)],
        )
        _record_failures(held, [(p, o) for p, o in outcomes if isinstance(o, PlanFailed)])

    turn.record(write)


def _checked(turn: Turn, outcome: PlanOutcome) -> PlanOutcome:
    if isinstance(outcome, Planned) and outcome.order == "together" and len(outcome.calls) > turn.account.max_in_flight:
        most = turn.account.max_in_flight
        return PlanFailed(
            "bad_result",
            f"{len(outcome.calls)} calls together exceed the account's max_in_flight of {most}; raise it or use in_order.",
        )
    return outcome


def _record_failures(held: Held, failures: Sequence[tuple[PendingExecution, PlanFailed]]) -> None:
    """A plan is tried three times; a node that was not reachable is not the strategy's fault and counts for nothing."""
    given_up = [(p, f) for p, f in failures if f.kind != "unreachable" and p.planning_attempts + 1 >= _TRIES]
    again = [(p, f) for p, f in failures if (p, f) not in given_up]
    executions.end_unreserved(held, [_ending(p, "FAILED", f"plan {f.kind}: {f.message}") for p, f in given_up])
    executions.record_retry(
        held,
        [
            {
                "execution_id": p.execution_id,
                "reason": f"plan {f.kind}: {f.message}",
                "seconds": _RETRY_SECONDS[min(p.planning_attempts, 1)],
            }
            for p, f in again
        ],
    )


def _ending(pending: PendingExecution, state: str, reason: str) -> dict[str, str]:
    return {"execution_id": pending.execution_id, "state": state, "reason": reason}


def _intents(turn: Turn, pending: PendingExecution, plan: Planned) -> list[dict[str, Any]]:
    return [
        {
            "execution_id": pending.execution_id,
            "step": call.step,
            "once": call.once,
            "recipient": call.to,
            "creates": call.to is None,
            "value": call.value_wei,
            "data": call.data,
            "access_list": call.access_list,
            "gas": call.gas,
            "label": call.label,
            "digest": intent_digest(
                turn.account.chain_id, turn.account.address, call.to, call.value_wei, call.data, call.access_list
            ),
        }
        for call in plan.calls
    ]


def _offend(turn: Turn, pending: PendingExecution, refusal: Refused) -> None:
    turn.note_attention(f"{refusal.constraint} refused the plan of {pending.execution_id}: {refusal.detail}")
