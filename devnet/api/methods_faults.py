"""devnet_fault and its kin: rules by which calls meet faults, and what they have decided."""

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.errors import InvalidParams
from devnet.faults import fields as read
from devnet.faults.kinds import KINDS
from devnet.faults.rule import parse_rule
from devnet.faults.rulebook import Decision
from devnet.node import Node
from devnet.plan import Action, Plan, parse_plan

METHODS = Methods()


@METHODS.named("devnet_fault")
def fault(node: Node, params: Params) -> str:
    """Put a rule in force; returns its id. One with the same id is replaced and counts anew."""
    rule = parse_rule(params.required(0), f"fault-{node.faults.made + 1}")
    node.faults.add(rule)
    return rule.id


@METHODS.named("devnet_clearFaults")
def clear_faults(node: Node, params: Params) -> int:
    """Take rules out, all of them or those of the id or ids given; returns how many there were. Their log stays."""
    given = params.optional(0)
    names = list(node.faults.rules) if given is None else read.texts(given, "the id of a fault")
    return sum([node.faults.remove(name) for name in names])


@METHODS.named("devnet_faults")
def faults(node: Node, _params: Params) -> list[dict[str, object]]:
    """The rules in force, in the order they are asked, with what they have counted."""
    return [
        {"id": rule.id, **rule.spec, "does": KINDS[rule.kind].does}
        | {"matches": node.faults.tallies[rule.id].matches, "fired": node.faults.tallies[rule.id].fired}
        for rule in node.faults.rules.values()
    ]


@METHODS.named("devnet_faultLog")
def fault_log(node: Node, params: Params) -> list[dict[str, object]]:
    """Every decision of every rule in order. `{since, rule, outcome}` narrows it; `since` is an index."""
    wanted = read.an_object(params.optional(0) or {}, "the filter", ("since", "rule", "outcome"))
    since = read.optional(wanted, "since", read.count) or 0
    rule = read.optional(wanted, "rule", read.text)
    outcome = wanted.get("outcome")
    if outcome is not None:
        read.one_of(outcome, "outcome", ("fired", "passed", "shadowed"))
    return [
        _shape(index, item)
        for index, item in enumerate(node.faults.log[since:], since)
        if (rule is None or item.rule == rule) and (outcome is None or item.outcome == outcome)
    ]


def _shape(index: int, item: Decision) -> dict[str, object]:
    return {
        "index": index,
        "rule": item.rule,
        "kind": item.kind,
        "key": item.key,
        "match": item.match,
        "keyMatch": item.key_match,
        "draw": item.draw,
        "outcome": item.outcome,
    }


@METHODS.named("devnet_plan")
def plan(node: Node, params: Params) -> dict[str, object]:
    """Follow a plan (`devnet.plan`) from now on, its rules besides those in force; without one, how the present stands."""
    if params.optional(0) is not None:
        wanted = parse_plan(params.required(0), node.timeline.known)
        follow(node, wanted)
    return {
        "seed": node.faults.seed,
        "pending": [_action(item) for item in node.timeline.pending],
        "done": [
            _action(item.action) | {"block": item.block, "result": item.result, "error": item.error}
            for item in node.timeline.done
        ],
    }


def follow(node: Node, wanted: Plan) -> None:
    """Put a plan's seed and rules in force and begin its timeline."""
    if wanted.seed is not None:
        node.faults.seed = wanted.seed
    for rule in wanted.rules:
        node.faults.add(rule)
    node.timeline.begin(wanted, node.clock, node.chain.head.number, node.ledger.sent)


def _action(item: Action) -> dict[str, object]:
    return {"at": {item.moment: item.at}, "call": item.call, "params": item.params}


@METHODS.named("devnet_seed")
def seed(node: Node, params: Params) -> int:
    """Set what all draws follow from, where a rule has no seed of its own; returns the former one."""
    former = node.faults.seed
    if len(params) > 1:
        raise InvalidParams("devnet_seed takes one number")
    node.faults.seed = read.count(params.required(0), "the seed")
    return former
