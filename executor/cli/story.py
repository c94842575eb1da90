"""One execution's story as text."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from executor.cli.calls import call_text, per_gas, short
from executor.cli.output import count, instant, say
from executor.units import format_wei

if TYPE_CHECKING:
    from executor.store.stories import Attempt, Sighting, Step, Verdict
    from executor.stories import Story


def say_story(story: "Story") -> None:
    """Print the whole story, with what to do next at the end."""
    for line in _head(story):
        say(line)
    for step in story.steps:
        say()
        for line in _step(story, step):
            say(line)
    if story.events:
        say("\nhistory")
        for event in story.events:
            change = event.to_state if event.from_state is None else f"{event.from_state} → {event.to_state}"
            held = "" if event.token is None else f", token {event.token} held by {event.holder}"
            why = f": {event.why}" if event.why else ""
            subject = _subject(story, event.kind, event.subject)
            say(f"  {instant(event.at)}  {event.kind} {subject} {change}{why} (by {event.actor or '-'}{held})")
    say(f"\ncost: {format_wei(story.fees_wei)} in fees, {format_wei(story.value_wei)} moved")
    say(f"next: {story.next}")


def _subject(story: "Story", kind: str, subject: str) -> str:
    """Nonces and attempts are recorded under the account's number; people know its name."""
    return subject if kind == "execution" else story.execution.account + subject[subject.index("/") :]


def _head(story: "Story") -> Iterator[str]:
    one = story.execution
    yield f"{one.execution_id}: {one.state}" + (f" ({one.reason})" if one.reason else "")
    origin = f"slot {instant(one.slot)}" if one.slot is not None else f"trigger with id {one.trigger_key}"
    yield f"  asked for by {origin}, recorded {instant(one.created_at)}"
    if one.reissue_no:
        yield f"  reissue {one.reissue_no}"
    yield f"  strategy {one.strategy}, revision {one.revision[:12]}, account {one.account} on chain {one.chain_id}"
    if one.input is not None:
        text = json.dumps(one.input, ensure_ascii=False)
        yield f"  input {text if len(text) <= 500 else text[:500] + '…'}"
    if one.plan_block_number is not None:
        yield (
            f"  planned {instant(one.planned_at)} on block {one.plan_block_number} ({short(one.plan_block_hash)}), "
            f"attempt {one.planning_attempts}, {_order(one.plan_order)}"
        )
    elif one.planning_attempts:
        yield f"  {count(one.planning_attempts, 'attempt')} to plan it, next at {instant(one.retry_at)}"
    if one.ended_at is not None:
        took = "" if one.steps is None else f", {one.steps_effective or 0} of {one.steps} steps took effect"
        yield f"  ended {instant(one.ended_at)}{took}"
    elif one.expires_at is not None and one.state in {"PENDING", "PLANNED"}:
        yield f"  begins by {instant(one.expires_at)} or not at all"
    if one.evidence is not None:
        yield f"  evidence {json.dumps(one.evidence)}"


def _order(order: str | None) -> str:
    return {"final": "each call once the one before is final", "mined": "each call once the one before is mined"}.get(
        str(order), "all calls together"
    )


def _step(story: "Story", step: "Step") -> Iterator[str]:
    label = f" “{step.label}”" if step.label else ""
    once = f", once {step.once}" if step.once else ""
    yield f"step {step.step}{label}: {call_text(step.recipient, step.value_wei, step.data)}{once}"
    if step.paid_execution_id is not None:
        yield f"  already paid by {step.paid_execution_id} in {short(step.paid_hash)}; not sent again"
        return
    if step.nonce is None:
        yield "  has no nonce yet" if story.execution.ended_at is None else "  never got a nonce"
        return
    yield f"  nonce {story.execution.account}/{step.nonce}, reserved {instant(step.reserved_at)}, {_closing(step)}"
    for attempt in (one for one in story.attempts if one.nonce == step.nonce):
        yield from _attempt(story, attempt)


def _closing(step: "Step") -> str:
    if step.state == "OPEN":
        return "open"
    proof = f"proved by block {step.witness_number} ({step.witness_rule})"
    if step.closed_as == "foreign":
        return f"used by a transaction that is not ours, {short(step.foreign_hash)}, {proof}"
    effect = "took effect" if step.effect else "had no effect"
    return f"closed by attempt {step.closed_seq}: {effect}, {proof}"


def _attempt(story: "Story", attempt: "Attempt") -> Iterator[str]:
    fees = f"gas {attempt.gas}, at most {per_gas(attempt.max_fee_wei)}, tip {per_gas(attempt.tip_wei)}"
    why = f" ({attempt.reason})" if attempt.reason else ""
    yield f"  attempt {attempt.seq} {attempt.kind} {attempt.status}{why}: {fees}"
    if attempt.hash is not None:
        signed = f"signed {instant(attempt.signed_at)} under token {attempt.signed_token}"
        sent = "" if attempt.sent_at is None else f", sent {instant(attempt.sent_at)} under token {attempt.sent_token}"
        yield f"    {short(attempt.hash)} {signed}{sent}"
    for verdict in story.verdicts:
        if (verdict.nonce, verdict.seq) == (attempt.nonce, attempt.seq):
            yield _verdict(verdict)
    for sighting in story.sightings:
        if (sighting.nonce, sighting.seq) == (attempt.nonce, attempt.seq):
            yield _sighting(sighting)


def _verdict(verdict: "Verdict") -> str:
    detail = f": {verdict.detail}" if verdict.detail else ""
    times = f"{verdict.count} times until {instant(verdict.last_at)}" if verdict.count > 1 else instant(verdict.last_at)
    return f"    {verdict.endpoint} said {verdict.verdict}{detail} ({times})"


def _sighting(sighting: "Sighting") -> str:
    outcome = "success" if sighting.status else "reverted"
    cost = sighting.gas_used * sighting.gas_price_wei + (sighting.l1_fee_wei or 0)
    text = (
        f"    in block {sighting.block_number} ({short(sighting.block_hash)}): {outcome}, gas {sighting.gas_used} at "
        f"{per_gas(sighting.gas_price_wei)}, cost {format_wei(cost)}"
    )
    return text if sighting.orphaned_at is None else f"{text}; the block left the chain {instant(sighting.orphaned_at)}"
