"""Plans: faults and orders from a file at set moments, the same in every run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from devnet.errors import InvalidParams, StartError
from devnet.plan import load_plan, parse_plan
from tests.devnet.sending import ask, call
from tests.devnet.wallet import ALICE, BOB, GWEI
from tests.support.devnet import ROOT, Devnet, RpcFailure, start_devnet

SEND = "eth_sendRawTransaction"
PLAN: dict[str, Any] = {
    "seed": 3,
    "rules": [
        {"id": "lost", "match": {"method": SEND}, "kind": "drop_after", "p": 0.4},
        {"id": "busy", "match": {"method": SEND, "sender": BOB.address}, "kind": "http", "arg": 503, "p": 0.4},
    ],
    "timeline": [
        {"at": {"block": 3}, "call": "devnet_baseFee", "params": [{"spike": {"factor": 3, "blocks": 2}}]},
        {"at": {"submission": 6}, "call": "devnet_reorg", "params": [{"depth": 2, "keep": "none"}]},
        {"at": {"time": 60}, "call": "devnet_rival", "params": [{"account": 2, "tx": {"gas": "0x5208"}}]},
    ],
}


def play(devnet: Devnet) -> dict[str, Any]:
    """A few senders' requests, always the same."""
    for nonce in range(6):
        for wallet in (ALICE, BOB):
            ask(devnet, call(SEND, wallet.sign(nonce).raw))
        devnet.rpc("devnet_clock", {"advance": 12})
    head = int(devnet.rpc("eth_blockNumber"), 16)
    blocks = [devnet.rpc("eth_getBlockByNumber", hex(number), False)["hash"] for number in range(head + 1)]
    return {"blocks": blocks, "log": devnet.rpc("devnet_faultLog"), "plan": devnet.rpc("devnet_plan")}


def test_a_plan_file_replays_in_two_processes_to_the_last_hash(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN))
    flags = ("--silent", "--plan", str(path), "--seed", "7", "--clock", "manual")
    with start_devnet(*flags) as one, start_devnet(*flags) as other:
        first = play(one)
        assert first == play(other)
    assert first["plan"]["seed"] == 7
    assert first["plan"]["pending"] == []
    done = {json.dumps(item["at"]): item for item in first["plan"]["done"]}
    assert set(done) == {'{"block": 3}', '{"submission": 6}', '{"time": 60}'}
    assert all(item["error"] is None for item in done.values())
    assert {entry["outcome"] for entry in first["log"]} >= {"fired", "passed"}


def test_an_entry_runs_when_its_block_is_made_within_the_call_that_makes_it(devnet: Devnet) -> None:
    spike = {"at": {"block": 3}, "call": "devnet_baseFee", "params": [{"path": [5 * GWEI, 6 * GWEI]}]}
    devnet.rpc("devnet_plan", {"timeline": [spike]})
    devnet.rpc("anvil_mine", 5)
    fees = [int(devnet.rpc("eth_getBlockByNumber", hex(number), False)["baseFeePerGas"], 16) for number in (4, 5)]
    assert fees == [5 * GWEI, 6 * GWEI]
    (done,) = devnet.rpc("devnet_plan")["done"]
    assert (done["at"], done["block"], done["result"]) == ({"block": 3}, 3, [hex(5 * GWEI), hex(6 * GWEI)])


def test_an_entry_runs_when_its_submission_has_been_answered(devnet: Devnet) -> None:
    pause = {"at": {"submission": 2}, "call": "devnet_evict", "params": [{"sender": ALICE.address}]}
    devnet.rpc("devnet_plan", {"timeline": [pause]})
    devnet.rpc(SEND, ALICE.sign(0).raw)
    assert devnet.rpc("txpool_status")["pending"] == "0x1"
    devnet.rpc(SEND, ALICE.sign(1).raw)
    assert devnet.rpc("txpool_status")["pending"] == "0x0"


def test_submissions_in_a_batch_and_those_a_fault_swallows_are_counted(devnet: Devnet) -> None:
    mine = {"at": {"submission": 3}, "call": "evm_mine"}
    lost = {"kind": "drop_before", "match": {"method": SEND}, "at": 1}
    devnet.rpc("devnet_plan", {"rules": [lost], "timeline": [mine]})
    ask(devnet, call(SEND, ALICE.sign(0).raw))
    ask(devnet, [call(SEND, ALICE.sign(nonce).raw, call_id=nonce) for nonce in range(4)])
    assert len(devnet.rpc("eth_getBlockByNumber", "latest", False)["transactions"]) == 2
    assert devnet.rpc("txpool_status")["pending"] == "0x2"


def test_snapshots_keep_what_is_pending(devnet: Devnet) -> None:
    devnet.rpc("devnet_plan", {"timeline": [{"at": {"block": 2}, "call": "evm_mine"}]})
    snapshot = devnet.rpc("evm_snapshot")
    for _ in range(2):
        devnet.rpc("anvil_mine", 2)
        assert devnet.rpc("eth_blockNumber") == "0x3"
        assert devnet.rpc("devnet_plan")["pending"] == []
        devnet.rpc("evm_revert", snapshot)
        snapshot = devnet.rpc("evm_snapshot")
        assert len(devnet.rpc("devnet_plan")["pending"]) == 1


def test_an_entry_runs_at_its_second_of_the_clock(timeless: Devnet) -> None:
    timeless.rpc("devnet_plan", {"timeline": [{"at": {"time": 1.5}, "call": "evm_mine"}]})
    timeless.rpc("devnet_clock", {"advance": 1.4})
    assert timeless.rpc("eth_blockNumber") == "0x0"
    timeless.rpc("devnet_clock", {"advance": 0.1})
    assert timeless.rpc("eth_blockNumber") == "0x1"


def test_entries_that_call_for_each_other_run_once_and_in_order(devnet: Devnet) -> None:
    timeline = [
        {"at": {"block": 2}, "call": "anvil_mine", "params": [2]},
        {"at": {"block": 3}, "call": "devnet_reorg", "params": [{"depth": 1, "newDepth": 3}]},
        {"at": {"block": 5}, "call": "evm_mine"},
    ]
    devnet.rpc("devnet_plan", {"timeline": timeline})
    devnet.rpc("anvil_mine", 2)
    assert devnet.rpc("eth_blockNumber") == "0x7"
    assert [item["at"]["block"] for item in devnet.rpc("devnet_plan")["done"]] == [2, 3, 5]


def test_an_entry_that_fails_is_told_and_the_plan_goes_on(devnet: Devnet) -> None:
    timeline = [
        {"at": {"block": 1}, "call": "devnet_reorg", "params": [{"depth": 50}]},
        {"at": {"block": 1}, "call": "evm_mine"},
    ]
    devnet.rpc("devnet_plan", {"timeline": timeline})
    devnet.rpc("evm_mine")
    done = devnet.rpc("devnet_plan")["done"]
    assert "cannot reorganize 50 blocks" in done[0]["error"]
    assert devnet.rpc("eth_blockNumber") == "0x2"


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ([], "a plan must be an object with fields of rules, seed, timeline"),
        ({"rule": []}, "a plan has no field 'rule': it takes rules, seed, timeline"),
        ({"seed": "x"}, "seed must be a whole number"),
        ({"rules": {}}, "rules must be a list"),
        ({"rules": [{"kind": "boom"}]}, "kind must be one of"),
        ({"timeline": [{"at": {"block": 1}, "call": "devnet_boom"}]}, "the timeline calls devnet_boom, which"),
        ({"timeline": [{"at": {"block": 1, "time": 2}, "call": "evm_mine"}]}, "at must name exactly one moment"),
        (
            {"timeline": [{"at": {"height": 1}, "call": "evm_mine"}]},
            "at has no field 'height': it takes block, submission",
        ),
        ({"timeline": [{"at": {"block": 0}, "call": "evm_mine"}]}, "block must be a whole number of 1 or more"),
        ({"timeline": [{"at": {"time": -1}, "call": "evm_mine"}]}, "time must be a number of 0 or more"),
        ({"timeline": [{"call": "evm_mine"}]}, "at must be an object with fields of block, submission, time"),
        ({"timeline": [{"at": {"block": 1}, "call": "evm_mine", "params": 1}]}, "params must be a list or an object"),
    ],
)
def test_a_bad_plan_is_refused_with_what_is_allowed(plan: Any, sentence: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        parse_plan(plan, {"evm_mine"})
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot read the plan {path}: No such file or directory"),
        ("{", "the plan {path} is no JSON: "),
        ('{"rules": [{"kind": "boom"}]}', "the plan {path} cannot be used: kind must be one of"),
    ],
)
def test_a_bad_plan_file_is_told_in_one_sentence(tmp_path: Path, text: str | None, sentence: str) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(StartError) as caught:
        load_plan(path, {"evm_mine"})
    assert str(caught.value).startswith(sentence.format(path=path))
    assert "\n" not in str(caught.value)


def test_a_bad_plan_ends_the_start_with_code_2() -> None:
    command = [sys.executable, "-m", "devnet", "--port", "0", "--plan", "none.json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "devnet: cannot read the plan none.json: No such file or directory\n"


def test_a_bad_plan_by_rpc_changes_nothing(devnet: Devnet) -> None:
    with pytest.raises(RpcFailure, match="the timeline calls x") as caught:
        devnet.rpc("devnet_plan", {"rules": [{"kind": "hang"}], "timeline": [{"at": {"block": 1}, "call": "x"}]})
    assert caught.value.code == -32602
    assert devnet.rpc("devnet_faults") == []


def test_flags_make_nodes_and_fix_time() -> None:
    with start_devnet("--silent", "--seed", "5", "--nodes", "3") as devnet:
        assert devnet.rpc("devnet_nodes")["n"] == 3
        assert devnet.rpc("devnet_seed", 6) == 5
        assert devnet.rpc("eth_getBlockByNumber", "0x0", False)["timestamp"] == hex(1_700_000_000)
        devnet.rpc("anvil_mine", 3)
        assert devnet.rpc("eth_getBlockByNumber", "latest", False)["timestamp"] == hex(1_700_000_003)
