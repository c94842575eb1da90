"""Reserve: intents → nonce reservations and drafts, all steps of an execution in one transaction or one after the other.

Everything that can fail for outside reasons is asked before: simulation, fees, funds, policy. What must wait costs no
nonce and says what it waits for; a nonce once reserved is only used or cancelled on chain.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from chain.answers import Estimate
from chain.client import ChainClient
from chain.fees import Fees, quote
from chain.types import ChainView
from executor.crashpoints import CrashPoint
from executor.database import Held, Refused
from executor.records import Intent, NewReservation, Spent
from executor.store import executions, plans, reservations
from executor.turn import Turn, record_in_halves
from executor.units import format_wei

log = logging.getLogger("fenced.reserve")
_BATCH = 250
_TYPE = 2
_ESTIMATE_MARGIN = 6, 5
"""A gas limit is the estimate times 6/5: state may move between simulation and inclusion."""


@dataclass(slots=True)
class Choice:
    """What one pass decides, before anything is recorded."""

    reserve: list[tuple[list[Intent], list[NewReservation], list[tuple[str, int, Spent]]]] = field(default_factory=list)
    end: list[dict[str, str]] = field(default_factory=list)
    wait: list[dict[str, str]] = field(default_factory=list)


def run(turn: Turn, client: ChainClient, view: ChainView) -> int:
    """Give nonces to what may go now; how many executions moved.

    Raises Unavailable when the simulation reaches no endpoint; nothing was reserved then.
    """
    with turn.database.read() as tx:
        ready = plans.select_ready(tx, turn.account.account_id, _BATCH)
        if not ready:
            return 0
        frontier = reservations.frontier(tx, turn.account.account_id, view.nonce_latest)
        once = sorted({i.once for i in ready if i.once is not None})
        spent = reservations.select_spent(tx, once) if once else {}
    if frontier.state != "open" or frontier.next_nonce is None:
        return 0
    if view.nonce_latest > frontier.next_nonce:
        # P15. The rows were read after the chain, so honest ones can only be ahead of it.
        turn.halt(
            f"the chain counts nonce {view.nonce_latest}, the rows reach {frontier.next_nonce - 1}: "
            "the key was used elsewhere or rows are lost"
        )
        turn.crash(CrashPoint.RESERVE_HALTED)
        return 0
    choice = _choose(turn, client, view, ready, spent, frontier)
    turn.crash(CrashPoint.RESERVE_PREPARED)
    if choice.end or choice.wait:
        turn.record(lambda held: _record_unreserved(held, choice))
        turn.crash(CrashPoint.RESERVE_WAITING)
    moved = record_in_halves(
        choice.reserve, lambda groups: _record(turn, groups), lambda group, why: _offend(turn, group[0], why)
    )
    if moved:
        turn.crash(CrashPoint.RESERVE_RECORDED)
    return moved + len(choice.end)


def _choose(
    turn: Turn,
    client: ChainClient,
    view: ChainView,
    ready: Sequence[Intent],
    spent: dict[str, Spent],
    frontier: reservations.Frontier,
) -> Choice:
    choice = Choice()
    room = frontier.max_in_flight - frontier.in_flight
    funds = view.balance_wei - frontier.committed_wei
    cap, tip_cap = turn.policy.max_fee_per_gas_wei, turn.policy.max_priority_fee_per_gas_wei
    fees = quote(view.head.base_fee_wei, view.tip_wei, cap_wei=cap, tip_cap_wei=tip_cap)
    candidates = _candidates(ready, spent, room, choice)
    estimates = _estimate(turn, client, [intent for _, intents, _ in candidates for intent in intents])
    for execution_id, intents, paid in candidates:
        wait, news, cost = _price(view, intents, fees, estimates)
        if wait is None and len(news) > room:
            wait = f"in-flight limit: {frontier.in_flight} of {frontier.max_in_flight} nonces are under way"
        if wait is None and cost > funds:
            wait = f"funds: {format_wei(cost)} may be needed, {format_wei(max(funds, 0))} is free"
        refused = _policy(turn, news) if wait is None and intents and intents[0].execution_state == "PLANNED" else None
        if refused is not None:
            choice.end.append({"execution_id": execution_id, "state": "FAILED", "reason": f"policy: {refused}"})
        elif wait is not None:
            choice.wait.append({"execution_id": execution_id, "reason": wait})
        else:
            choice.reserve.append((intents, news, paid))
            room, funds = room - len(news), funds - cost
    return choice


def _candidates(
    ready: Sequence[Intent], spent: dict[str, Spent], room: int, choice: Choice
) -> list[tuple[str, list[Intent], list[tuple[str, int, Spent]]]]:
    """Group by execution; sort out the expired, and steps whose `once` is spent (recorded) or in flight (waits)."""
    found: list[tuple[str, list[Intent], list[tuple[str, int, Spent]]]] = []
    taken: set[str] = set()
    wanted = 0
    for execution_id, group in groupby(ready, key=lambda intent: intent.execution_id):
        intents = list(group)
        head = intents[0]
        if head.expired and head.execution_state == "PLANNED":
            why = "start deadline passed while " + (f"waiting for {head.reason}" if head.reason else "it was planned")
            choice.end.append({"execution_id": execution_id, "state": "SKIPPED", "reason": why})
            continue
        paid = [(execution_id, i.step, spent[i.once]) for i in intents if i.once in spent and spent[i.once].effect]
        unpaid = [i for i in intents if (execution_id, i.step) not in {(e, s) for e, s, _ in paid}]
        pending = next((i.once for i in unpaid if i.once is not None and (i.once in spent or i.once in taken)), None)
        if pending is not None:
            by = spent[pending].execution_id if pending in spent else "another execution"
            choice.wait.append({"execution_id": execution_id, "reason": f"once: {pending} is under way in {by}"})
            continue
        taken |= {i.once for i in unpaid if i.once is not None}
        found.append((execution_id, unpaid, paid))
        wanted += len(unpaid)
        if wanted > room:
            break
    return found


def _estimate(turn: Turn, client: ChainClient, intents: Sequence[Intent]) -> dict[tuple[str, int], Estimate]:
    """Simulate the calls that name no gas limit of their own, in one batch."""
    unknown = [i for i in intents if i.gas is None]
    calls = [(turn.account.address, i.recipient, i.value, i.data, i.access_list) for i in unknown]
    return {(i.execution_id, i.step): e for i, e in zip(unknown, client.estimate(calls), strict=True)} if calls else {}


def _price(
    view: ChainView, intents: Sequence[Intent], fees: Fees, estimates: dict[tuple[str, int], Estimate]
) -> tuple[str | None, list[NewReservation], int]:
    """What the execution waits for, or its reservations and the most they can cost in wei."""
    if fees.max_fee_wei < view.head.base_fee_wei:
        return f"fee cap: the base fee is {format_wei(view.head.base_fee_wei)} per gas", [], 0
    news, cost = [], 0
    for intent in intents:
        gas = intent.gas
        if gas is None:
            estimate = estimates[intent.execution_id, intent.step]
            if estimate.gas is None:
                verb = "would revert" if estimate.reverted else "cannot be simulated"
                return f"step {intent.step} {verb}: {(estimate.error or 'no reason given')[:200]}", [], 0
            gas = max(
                21_000,
                estimate.gas if estimate.gas == 21_000 else estimate.gas * _ESTIMATE_MARGIN[0] // _ESTIMATE_MARGIN[1],
            )
        gas = min(gas, view.head.gas_limit) if intent.gas is None else gas
        if gas > view.head.gas_limit:
            return f"step {intent.step} wants {gas} gas, a block holds {view.head.gas_limit}", [], 0
        news.append(NewReservation(intent, gas, fees.max_fee_wei, fees.tip_wei))
        cost += intent.value + gas * fees.max_fee_wei
    return None, news, cost


def _policy(turn: Turn, news: Sequence[NewReservation]) -> str | None:
    """What the signer's policy would say, so that it costs no nonce to hear it."""
    for new in news:
        refused = turn.policy.check_offer(new.gas, new.max_fee, new.tip, _TYPE) or turn.policy.check_call(
            new.intent.recipient, new.intent.value, new.intent.data, new.intent.access_list, turn.account.address
        )
        if refused is not None:
            return f"step {new.intent.step}: {refused}"
    return None


def _record_unreserved(held: Held, choice: Choice) -> None:
    executions.end_unreserved(held, choice.end)
    executions.record_waiting(held, choice.wait)


def _record(
    turn: Turn, groups: Sequence[tuple[list[Intent], list[NewReservation], list[tuple[str, int, Spent]]]]
) -> None:
    news = [new for _, rows, _ in groups for new in rows]

    def write(held: Held) -> int | None:
        if held.account_state != "open":
            return None  # hold itself halts an account whose database was restored or promoted (P13): keep that, reserve nothing
        reservations.record_already_paid(held, [row for _, _, rows in groups for row in rows])
        first = reservations.insert(held, news, _TYPE) if news else None
        executions.record_running(
            held,
            [
                intents[0].execution_id
                for intents, _, _ in groups
                if intents and intents[0].execution_state == "PLANNED"
            ],
        )
        concerned = [rows[0][0] for _, _, rows in groups if rows]
        executions.end_paid(held, concerned)
        executions.end_settled(held, concerned)
        return first

    first = turn.record(write)
    if first is not None:
        given = {f"{n.intent.execution_id} step {n.intent.step}": first + i for i, n in enumerate(news)}
        log.info("nonces reserved", extra={"account": turn.account.name, "token": turn.token, "executions": given})


def _offend(turn: Turn, intents: Sequence[Intent], refusal: Refused) -> None:
    """One execution that a constraint refuses: the account shows it, the execution keeps waiting (it has no nonce)."""
    turn.note_attention(f"{refusal.constraint} refused {intents[0].execution_id}: {refusal.detail}")
