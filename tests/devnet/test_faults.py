"""The rules: which call meets which fault depends on rules, seeds and what is asked, and on nothing else."""

import json
import re
from typing import Any

import pytest

from devnet.errors import InvalidParams
from devnet.faults.call import Call
from devnet.faults.kinds import KINDS
from devnet.faults.rule import parse_rule
from devnet.faults.rulebook import Rulebook
from tests.devnet.wallet import ALICE
from tests.support.devnet import ROOT, Devnet, RpcFailure, start_devnet

ALICE_BYTES = bytes.fromhex(ALICE.address[2:])
SEND = "eth_sendRawTransaction"


def book(*rules: dict[str, Any], seed: int = 7) -> Rulebook:
    made = Rulebook(seed)
    for rule in rules:
        made.add(parse_rule(rule, f"rule-{made.made + 1}"))
    return made


def send(nonce: int, sender: bytes = ALICE_BYTES, **facts: Any) -> Call:
    return Call(SEND, sender, nonce, **facts)


def fired(rulebook: Rulebook, calls: list[Call]) -> list[bool]:
    return [bool(rulebook.decide(call)) for call in calls]


def test_a_draw_depends_on_seed_rule_and_call_and_not_on_the_order_of_calls() -> None:
    rule = {"kind": "drop_after", "p": 0.5, "id": "r"}
    calls = [send(nonce) for nonce in range(40)]
    forward = fired(book(rule), calls)
    assert forward == fired(book(rule), calls)
    assert forward == fired(book(rule), calls[::-1])[::-1]
    assert 5 < sum(forward) < 35
    assert forward != fired(book(rule, seed=8), calls)
    assert forward != fired(book(rule | {"id": "s"}), calls)
    assert forward == fired(book(rule | {"seed": 7}, seed=8), calls)


def test_unrelated_calls_and_rules_do_not_shift_a_draw() -> None:
    rule = {"kind": "drop_after", "p": 0.5, "id": "r", "match": {"method": SEND}}
    calls = [send(nonce) for nonce in range(20)]
    alone = fired(book(rule), calls)
    crowded = book({"kind": "delay", "arg": 1, "p": 0.5, "id": "other", "match": {"method": "eth_get*"}}, rule)
    mixed = []
    for nonce, call in enumerate(calls):
        crowded.decide(Call("eth_getBalance", ALICE_BYTES))
        crowded.decide(send(nonce, bytes(20)))
        mixed.append(any(fault.rule.id == "r" for fault in crowded.decide(call)))
    assert mixed == alone


def test_resending_the_same_nonce_draws_anew() -> None:
    rulebook = book({"kind": "drop_after", "p": 0.5})
    assert len(set(fired(rulebook, [send(0)] * 20))) == 2
    assert [item.key_match for item in rulebook.log] == list(range(1, 21))


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"at": 3}, [3]),
        ({"at": [1, 4]}, [1, 4]),
        ({"times": 2}, [1, 2]),
        ({"skip": 4}, [5, 6]),
        ({"skip": 1, "times": 2}, [2, 3]),
        ({"p": 0}, []),
        ({"p": 1, "times": 1}, [1]),
    ],
)
def test_terms_choose_matches_by_their_number(terms: dict[str, Any], want: list[int]) -> None:
    struck = fired(book({"kind": "drop_before", **terms}), [send(nonce) for nonce in range(6)])
    assert [number for number, hit in enumerate(struck, 1) if hit] == want


def test_terms_by_key_count_each_nonce_by_itself() -> None:
    rulebook = book({"kind": "drop_after", "times": 1, "per": "key"})
    assert fired(rulebook, [send(0), send(1), send(0), send(1), send(2)]) == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("match", "call", "covered"),
    [
        ({"method": "eth_get*"}, Call("eth_getBalance"), True),
        ({"method": "eth_get*"}, send(0), False),
        ({"method": ["net_version", SEND]}, send(0), True),
        ({"sender": ALICE.address.upper().replace("0X", "0x")}, send(0), True),
        ({"sender": "0x" + "00" * 20}, send(0), False),
        ({"nonce": "0x2"}, send(2), True),
        ({"nonce": 2}, send(3), False),
        ({"hash": "0x" + "11" * 32}, Call("eth_getTransactionReceipt", hash=b"\x11" * 32), True),
        ({"node": 1}, send(0, node=1), True),
        ({"node": 1}, send(0), False),
        ({"connection": 4}, send(0, connection=4), True),
        ({}, Call("devnet_faults"), False),
        ({"method": "*"}, Call("devnet_clearFaults"), False),
    ],
)
def test_a_match_asks_for_what_it_names(match: dict[str, Any], call: Call, covered: bool) -> None:
    assert fired(book({"kind": "drop_before", "match": match}), [call]) == [covered]


def test_the_first_rule_that_fires_settles_a_call_and_delays_add_up() -> None:
    rulebook = book(
        {"kind": "delay", "arg": 5, "id": "slow"},
        {"kind": "html", "id": "first", "at": 2},
        {"kind": "drop_before", "id": "second"},
        {"kind": "delay", "arg": 7, "id": "slower"},
    )
    assert [fault.rule.id for fault in rulebook.decide(send(0))] == ["slow", "second"]
    assert [fault.rule.id for fault in rulebook.decide(send(1))] == ["slow", "first"]
    log = [(item.rule, item.match, item.outcome) for item in rulebook.log]
    assert log[4:] == [
        ("slow", 2, "fired"),
        ("first", 2, "fired"),
        ("second", 2, "shadowed"),
        ("slower", 2, "shadowed"),
    ]


def test_kinds_count_only_calls_they_can_strike() -> None:
    rulebook = book({"kind": "lie_accept", "at": 1}, {"kind": "partial_batch"}, {"kind": "stale"})
    assert fired(rulebook, [Call("eth_chainId"), send(0)]) == [True, True]
    assert [item.kind for item in rulebook.log] == ["stale", "lie_accept"]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"kind": "explode"}, "kind must be one of drop_before, drop_after, delay"),
        ({}, "kind must be one of"),
        ({"kind": "drop_before", "when": 1}, "a fault has no field 'when': it takes arg, at, id, kind, match, p"),
        (
            {"kind": "drop_before", "match": {"metod": "x"}},
            "match has no field 'metod': it takes connection, hash, method",
        ),
        ({"kind": "drop_before", "match": {"sender": "0x12"}}, "sender has 1 bytes, want 20"),
        ({"kind": "drop_before", "match": "eth_call"}, "match must be an object"),
        ({"kind": "drop_before", "p": 1.5}, "p must be a number from 0 to 1"),
        ({"kind": "drop_before", "p": True}, "p must be a number"),
        ({"kind": "drop_before", "at": 0}, "at must be a whole number of 1 or more"),
        ({"kind": "drop_before", "times": -1}, "times must be a whole number of 0 or more"),
        ({"kind": "drop_before", "per": "call"}, "per must be one of rule, key: 'call' is none of them"),
        ({"kind": "drop_before", "arg": 1}, "drop_before takes no arg"),
        ({"kind": "delay"}, "delay needs arg: ms, executed"),
        ({"kind": "delay", "arg": "soon"}, "ms must be a number of 0 or more"),
        (
            {"kind": "http", "arg": {"code": 1}},
            "arg of http has no field 'code': it takes body, executed, retryAfter, status",
        ),
        ({"kind": "http", "arg": 42}, "status must be an HTTP status from 200 to 599"),
        ({"kind": "error", "arg": "besu"}, "the error of besu must be one of"),
        ({"kind": "error", "arg": "parity.x"}, "the client of an error must be one of"),
        ({"kind": "error", "arg": {"code": "x"}}, "code must be a whole number"),
        ("drop_before", "a fault must be an object with fields of arg, at, id"),
    ],
)
def test_a_bad_rule_is_refused_with_what_is_allowed(rule: Any, sentence: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        parse_rule(rule, "x")
    assert sentence in caught.value.message
    assert "\n" not in caught.value.message


def test_rules_are_listed_replaced_and_cleared(devnet: Devnet) -> None:
    assert devnet.rpc("devnet_fault", {"id": "a", "kind": "delay", "arg": 0, "match": {"method": "eth_chainId"}}) == "a"
    named = devnet.rpc("devnet_fault", {"kind": "http", "arg": 503, "match": {"method": "net_version"}, "times": 0})
    devnet.rpc("eth_chainId")
    devnet.rpc("net_version")
    listed = {rule["id"]: (rule["kind"], rule["matches"], rule["fired"]) for rule in devnet.rpc("devnet_faults")}
    assert listed == {"a": ("delay", 1, 1), named: ("http", 1, 0)}
    devnet.rpc("devnet_fault", {"id": "a", "kind": "stale"})
    assert [(rule["id"], rule["matches"]) for rule in devnet.rpc("devnet_faults")] == [(named, 1), ("a", 0)]
    assert devnet.rpc("devnet_clearFaults", "a") == 1
    assert devnet.rpc("devnet_clearFaults", [named, "unknown"]) == 1
    assert devnet.rpc("devnet_faults") == []
    with pytest.raises(RpcFailure, match="kind must be one of") as caught:
        devnet.rpc("devnet_fault", {"kind": "x"})
    assert caught.value.code == -32602


def test_snapshots_keep_rules_and_their_counts_and_the_log_goes_on(devnet: Devnet) -> None:
    match = {"method": "eth_chainId"}
    devnet.rpc("devnet_fault", {"id": "third", "kind": "error", "arg": {"message": "third"}, "at": 3, "match": match})
    devnet.rpc("eth_chainId")
    snapshot = devnet.rpc("evm_snapshot")
    log = len(devnet.rpc("devnet_faultLog"))
    devnet.rpc("eth_chainId")
    with pytest.raises(RpcFailure, match="third"):
        devnet.rpc("eth_chainId")
    devnet.rpc("devnet_clearFaults")
    assert devnet.rpc("evm_revert", snapshot) is True
    (rule,) = devnet.rpc("devnet_faults")
    assert (rule["id"], rule["matches"], rule["fired"]) == ("third", 1, 0)
    devnet.rpc("eth_chainId")
    with pytest.raises(RpcFailure, match="third"):
        devnet.rpc("eth_chainId")
    entries = devnet.rpc("devnet_faultLog", {"since": log, "rule": "third"})
    assert [(entry["match"], entry["outcome"]) for entry in entries] == [(2, "passed"), (3, "fired")] * 2
    fired_ones = devnet.rpc("devnet_faultLog", {"since": log, "outcome": "fired"})
    assert [entry["match"] for entry in fired_ones] == [3, 3]


def test_the_recipes_of_the_documentation_are_valid_orders() -> None:
    text = (ROOT / "docs" / "devnet.md").read_text()
    recipes = re.findall(r"^    call (devnet_\w+) '(.*)'$", text, re.MULTILINE)
    assert len(recipes) > 8
    plan = re.search(r"\n((?:    .*\n)+)", text.partition("### Plans")[2])
    assert plan is not None
    with start_devnet("--no-mining") as devnet:  # of its own: the plan goes on
        for method, order in recipes:
            if "…" not in order and method != "devnet_restart":
                devnet.rpc(method, json.loads(order))
        assert len(devnet.rpc("devnet_plan", json.loads(plan[1]))["pending"]) == 3


def test_the_documentation_names_every_kind() -> None:
    section = (ROOT / "docs" / "devnet.md").read_text().partition("### Rules")[2].partition("###")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(KINDS) | {"kind"}
