"""A fault rule as it is ordered, `{id?, match, kind, p|at|times|skip, per?, seed?, arg?}`, and which calls it concerns."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, cast

from devnet.faults.call import Call
from devnet.faults.fields import Json, address, an_object, count, counts, hash32, one_of, optional, share, text, texts
from devnet.faults.kinds import KINDS, Arg, Kind

MATCH_FIELDS = ("method", "sender", "hash", "nonce", "node", "connection")
RULE_FIELDS = ("id", "match", "kind", "p", "at", "times", "skip", "per", "seed", "arg")
CONTROL = "devnet_"  # orders to the devnet itself never meet a fault: no rule can lock its maker out


@dataclass(frozen=True, slots=True)
class Match:
    """What a call must be like; None and an empty tuple ask for nothing. `methods` are globs (`eth_get*`)."""

    methods: tuple[str, ...] = ()
    sender: bytes | None = None
    hash: bytes | None = None
    nonce: int | None = None
    node: int | None = None
    connection: int | None = None

    def covers(self, call: Call) -> bool:
        """Whether a call is like that."""
        if call.method.startswith(CONTROL):
            return False
        if self.methods and not any(fnmatchcase(call.method, glob) for glob in self.methods):
            return False
        pairs = (
            (self.sender, call.sender),
            (self.hash, call.hash),
            (self.nonce, call.nonce),
            (self.node, call.node),
            (self.connection, call.connection),
        )
        return all(want is None or want == have for want, have in pairs)


@dataclass(frozen=True, slots=True)
class Rule:
    """When a matching call meets a fault: all of `p`, `at`, `skip` and `times` must agree.

    Matches count from 1: `at` names the ones that fire, `skip` lets the first ones pass, `times` ends it after so many
    firings; with `per` "key" each sender and nonce (or hash) is counted by itself. `spec` is the order as it came.
    """

    id: str
    match: Match
    kind: str
    arg: Arg
    p: float
    at: frozenset[int] | None
    times: int | None
    skip: int
    per: Literal["rule", "key"]
    seed: int | None
    spec: Json

    @property
    def nature(self) -> Kind:
        """The entry of the catalogue."""
        return KINDS[self.kind]

    def concerns(self, call: Call) -> bool:
        """Whether a call counts as a match: like `match`, and one that this kind can strike."""
        return self.match.covers(call) and self.nature.applies(call)

    def due(self, match: int, fired: int) -> bool:
        """Whether the `match`-th match may fire, after `fired` firings."""
        if self.at is not None and match not in self.at:
            return False
        return match > self.skip and (self.times is None or fired < self.times)


def parse_rule(value: object, fallback_id: str) -> Rule:
    """Read an order. Raises InvalidParams with one sentence saying what is allowed."""
    fields = an_object(value, "a fault", RULE_FIELDS)
    kind = one_of(fields.get("kind"), "kind", KINDS)
    p = optional(fields, "p", share)
    return Rule(
        id=optional(fields, "id", text) or fallback_id,
        match=_match(fields.get("match")),
        kind=kind,
        arg=KINDS[kind].parse(kind, fields.get("arg")),
        p=1.0 if p is None else p,
        at=optional(fields, "at", counts),
        times=optional(fields, "times", count),
        skip=optional(fields, "skip", count) or 0,
        per=cast("Literal['rule', 'key']", one_of(fields.get("per", "rule"), "per", ("rule", "key"))),
        seed=optional(fields, "seed", count),
        spec=fields,
    )


def _match(value: object) -> Match:
    if value is None:
        return Match()
    fields = an_object(value, "match", MATCH_FIELDS)
    return Match(
        methods=optional(fields, "method", texts) or (),
        sender=optional(fields, "sender", address),
        hash=optional(fields, "hash", hash32),
        nonce=optional(fields, "nonce", count),
        node=optional(fields, "node", count),
        connection=optional(fields, "connection", count),
    )
