"""The rules in force, what they have counted, and every decision they made."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from devnet.faults.call import Call
from devnet.faults.draw import chance
from devnet.faults.rule import Rule


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that fires on a call, with a random source of its own for choices within the fault."""

    rule: Rule
    random: Random


@dataclass(frozen=True, slots=True)
class Decision:
    """One look of one rule at one matching call. `draw` is None where `p` left nothing to chance.

    `match` counts the rule's matches, `key_match` those of this key. `outcome` is fired, passed, or shadowed: an
    earlier rule had struck already.
    """

    rule: str
    kind: str
    key: str
    match: int
    key_match: int
    draw: float | None
    outcome: str


@dataclass
class Tally:
    """What one rule has counted: matches and firings, in all and by key."""

    matches: int = 0
    fired: int = 0
    key_matches: Counter[str] = field(default_factory=Counter)
    key_fired: Counter[str] = field(default_factory=Counter)

    def copy(self) -> "Tally":
        """An independent copy."""
        return Tally(self.matches, self.fired, self.key_matches.copy(), self.key_fired.copy())


RulebookState: TypeAlias = tuple[dict[str, Rule], dict[str, Tally], int]


@dataclass
class Rulebook:
    """Rules by id, asked in the order they were made. `seed` is that of rules without one of their own."""

    seed: int = 0
    rules: dict[str, Rule] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    log: list[Decision] = field(default_factory=list)
    made: int = 0

    def add(self, rule: Rule) -> None:
        """Put a rule in force; one with the same id is replaced, its counts start anew."""
        self.rules.pop(rule.id, None)
        self.rules[rule.id] = rule
        self.tallies[rule.id] = Tally()
        self.made += 1

    def remove(self, name: str) -> bool:
        """Take a rule out; False where there is none of that id."""
        self.tallies.pop(name, None)
        return self.rules.pop(name, None) is not None

    def clear(self) -> None:
        """Take all rules out; the log stays."""
        self.rules.clear()
        self.tallies.clear()

    def decide(self, call: Call) -> list[Fault]:
        """Which faults a call meets. The first rule that fires settles it; delays add up and leave the rest open.

        Every matching rule counts the call, whether it was its turn or not, so that rules do not shift each other.
        """
        faults: list[Fault] = []
        settled = False
        for rule in self.rules.values():
            if not rule.concerns(call):
                continue
            fault = self._look(rule, call, settled=settled)
            if fault is not None:
                faults.append(fault)
                settled = settled or rule.kind != "delay"
        return faults

    def _look(self, rule: Rule, call: Call, *, settled: bool) -> Fault | None:
        tally, key = self.tallies[rule.id], call.key
        tally.matches += 1
        tally.key_matches[key] += 1
        key_match = tally.key_matches[key]
        seed = self.seed if rule.seed is None else rule.seed
        draw = chance(seed, rule.id, key, key_match).random() if 0 < rule.p < 1 else None
        by_key = rule.per == "key"
        due = rule.due(key_match if by_key else tally.matches, tally.key_fired[key] if by_key else tally.fired)
        fires = due and (rule.p == 1 if draw is None else draw < rule.p)
        outcome = "passed" if not fires else "shadowed" if settled else "fired"
        self.log.append(Decision(rule.id, rule.kind, key, tally.matches, key_match, draw, outcome))
        if outcome != "fired":
            return None
        tally.fired += 1
        tally.key_fired[key] += 1
        return Fault(rule, chance(seed, f"{rule.id} in detail", key, key_match))

    def state(self) -> RulebookState:
        """Rules and counts for a snapshot; the log is no part of it."""
        return dict(self.rules), {name: tally.copy() for name, tally in self.tallies.items()}, self.made

    def restore(self, state: RulebookState) -> None:
        """Come back to a `state`."""
        rules, tallies, self.made = state
        self.rules = dict(rules)
        self.tallies = {name: tally.copy() for name, tally in tallies.items()}
