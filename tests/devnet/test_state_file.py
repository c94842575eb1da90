"""A chain goes through a file: from one run to the next, from anvil to here and from here to anvil."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from devnet.api.state_dump import dump_state, load_state
from devnet.errors import RpcError
from devnet.node import Node
from devnet.settings import Settings
from tests.devnet.bytecode import COUNTER, deploying
from tests.devnet.in_process import InProcess
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI, SOMEONE
from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import ROOT, NodeProcess, start_devnet

GENESIS_TIME = "1700000000"


def fill(node: NodeProcess | InProcess) -> list[str]:
    """Three blocks: a creation, a call with a log and a legacy transfer, one without a signature. The hashes."""
    sent = [node.rpc("eth_sendRawTransaction", ALICE.create(0, deploying(COUNTER)).raw)]
    node.rpc("evm_mine")
    following = (ALICE.call(1, deployed(0)), ALICE.sign(2, gasPrice=3 * GWEI))
    sent += [node.rpc("eth_sendRawTransaction", signed.raw) for signed in following]
    node.rpc("evm_mine")
    node.rpc("anvil_impersonateAccount", SOMEONE)
    node.rpc("anvil_setBalance", SOMEONE, hex(ETHER))
    sent.append(node.rpc("eth_sendTransaction", {"from": SOMEONE, "to": BOB.address, "value": "0x1"}))
    node.rpc("evm_mine")
    return sent


def picture(node: NodeProcess | InProcess, sent: list[str]) -> dict[str, Any]:
    """What must be the same on both sides of a file."""
    blocks = [node.rpc("eth_getBlockByNumber", hex(number), False) for number in range(4)]
    receipts = [node.rpc("eth_getTransactionReceipt", item) for item in sent]
    told = ("status", "gasUsed", "cumulativeGasUsed", "effectiveGasPrice", "from", "to", "contractAddress", "blockHash")
    return {
        "blocks": [(block["hash"], block["transactions"]) for block in blocks],
        "receipts": [[receipt[name] for name in told] for receipt in receipts],
        "logs": [(log["data"], log["logIndex"], log["transactionHash"]) for log in receipts[1]["logs"]],
        "raw": [node.rpc("debug_getRawTransaction", item) for item in sent],
        "nonces": [node.rpc("eth_getTransactionCount", who, "latest") for who in (ALICE.address, SOMEONE)],
        "count": node.rpc("eth_getStorageAt", deployed(0), "0x0", "latest"),
        "code": node.rpc("eth_getCode", deployed(0), "latest"),
        "balance": node.rpc("eth_getBalance", BOB.address, "latest"),
    }


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    flags = ("--silent", "--no-mining", "--timestamp", GENESIS_TIME, "--state", str(state))
    with start_devnet(*flags) as devnet:
        sent = fill(devnet)
        waiting = devnet.rpc("eth_sendRawTransaction", ALICE.sign(3).raw)
        before = picture(devnet, sent)
        assert devnet.stop() == 0
    with start_devnet(*flags) as devnet:
        assert picture(devnet, sent) == before
        counts = [devnet.rpc("eth_getStorageAt", deployed(0), "0x0", hex(number)) for number in (1, 2)]
        assert [int(count, 16) for count in counts] == [0, 1]
        assert devnet.rpc("eth_getTransactionByHash", waiting)["blockHash"] is None
        head = devnet.rpc("eth_getBlockByNumber", "latest", False)
        devnet.rpc("anvil_rollback", 0)
        devnet.rpc("evm_mine")
        assert devnet.rpc("eth_getTransactionReceipt", waiting)["blockNumber"] == "0x4"
        assert int(devnet.rpc("eth_getBlockByNumber", "0x4", False)["timestamp"], 16) >= int(head["timestamp"], 16)
        devnet.rpc("anvil_rollback", 3)
        assert devnet.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x1"


def test_the_right_nonce_is_accepted_after_a_restart_a_reset_and_a_return(tmp_path: Path) -> None:
    state = str(tmp_path / "state.json")
    with start_devnet("--silent", "--dump-state", state) as devnet:
        for nonce in range(5):
            devnet.rpc("eth_sendRawTransaction", ALICE.sign(nonce).raw)
    with start_devnet("--silent", "--load-state", state) as devnet:

        def agrees(nonce: int) -> None:
            counts = {devnet.rpc("eth_getTransactionCount", ALICE.address, tag) for tag in ("latest", "pending")}
            assert counts == {hex(nonce)}
            sent = devnet.rpc("eth_sendRawTransaction", ALICE.sign(nonce, value=7).raw)
            assert devnet.rpc("eth_getTransactionReceipt", sent)["status"] == "0x1"

        snapshot = devnet.rpc("evm_snapshot")
        agrees(5)
        assert devnet.rpc("evm_revert", snapshot)
        agrees(5)
        devnet.rpc("anvil_reset")
        agrees(0)
        assert devnet.rpc("eth_blockNumber") == "0x1"


def test_a_dump_loads_into_another_node_at_any_time() -> None:
    first, second = (
        InProcess("--no-mining", "--timestamp", GENESIS_TIME),
        InProcess("--no-mining", "--timestamp", GENESIS_TIME),
    )
    sent = fill(first)
    dump = first.rpc("anvil_dumpState")
    second.rpc("evm_mine")
    assert second.rpc("anvil_loadState", dump) is True
    assert picture(second, sent) == picture(first, sent)
    plain = json.loads(gzip.decompress(bytes.fromhex(dump[2:])))
    assert second.rpc("anvil_loadState", "0x" + json.dumps(plain).encode().hex()) is True
    del plain["blocks"][2]
    with pytest.raises(RpcError, match="it lacks block 2") as caught:
        second.rpc("anvil_loadState", "0x" + json.dumps(plain).encode().hex())
    assert caught.value.code == -32602
    assert picture(second, sent) == picture(first, sent)


def test_accounts_alone_are_written_on_top_of_the_head() -> None:
    node = InProcess("--no-mining", "--timestamp", GENESIS_TIME)
    account = {"nonce": 3, "balance": "0x7", "code": "0x00", "storage": {"0x" + "00" * 32: "0x" + "00" * 31 + "09"}}
    node.rpc("anvil_loadState", "0x" + json.dumps({"accounts": {SOMEONE: account}}).encode().hex())
    assert node.rpc("eth_getAccountInfo", SOMEONE, "latest") == {"balance": "0x7", "nonce": "0x3", "code": "0x00"}
    assert node.rpc("eth_getStorageAt", SOMEONE, "0x0", "latest").endswith("09")
    assert node.rpc("eth_getBalance", ALICE.address, "latest") == hex(10_000 * ETHER)


def test_every_type_of_transaction_goes_through_a_dump() -> None:
    delegation = Account.from_key(BOB.key).sign_authorization({"chainId": 31337, "address": SOMEONE, "nonce": 0})
    listed = [{"address": SOMEONE, "storageKeys": ["0x" + "11" * 32]}]
    sent = [
        ALICE.sign(0, gasPrice=3 * GWEI),
        ALICE.sign(1, gasPrice=3 * GWEI, accessList=listed, gas=50_000),
        ALICE.sign(2, accessList=listed, data="0x0102", gas=50_000),
        ALICE.sign(3, authorizationList=[delegation], gas=100_000),
    ]
    node = Node(Settings(automine=False, timestamp=1_700_000_000))
    for signed in sent:
        node.submit(bytes.fromhex(signed.raw[2:]))
    node.miner.mine()
    other = Node(Settings(automine=False))
    load_state(other, json.loads(json.dumps(dump_state(node))))
    assert other.chain.blocks == node.chain.blocks
    assert [tx.type for tx in other.chain.head.transactions] == [0, 1, 2, 4]
    assert [tx.authorizations for tx in other.chain.head.transactions] == [
        tx.authorizations for tx in node.chain.head.transactions
    ]
    assert dump_state(other)["accounts"] == dump_state(node)["accounts"]


@pytest.mark.anvil
def test_anvil_and_the_devnet_load_each_others_dumps() -> None:
    path, trouble = anvil_binary()
    if path is None:
        pytest.skip(trouble)
    devnet = InProcess("--no-mining", "--timestamp", GENESIS_TIME)
    with start_anvil("--no-mining", "--timestamp", GENESIS_TIME) as anvil:
        sent = fill(anvil)
        dump = anvil.rpc("anvil_dumpState")
        assert devnet.rpc("anvil_loadState", dump) is True
        assert picture(devnet, sent) == picture(anvil, sent)
        with pytest.raises(RpcError, match=r"historical state .* is not available"):
            devnet.rpc("eth_getBalance", ALICE.address, "0x1")
        with pytest.raises(RpcError, match=r"historical state .* is not available"):
            devnet.rpc("anvil_rollback", 1)
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(3).raw)
        devnet.rpc("evm_mine")
        assert devnet.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x4"
        devnet.rpc("anvil_reset")
        sent = fill(devnet)
        anvil.rpc("anvil_reset")
        assert anvil.rpc("anvil_loadState", devnet.rpc("anvil_dumpState")) is True
        theirs, ours = picture(anvil, sent), picture(devnet, sent)
        assert theirs == ours
        anvil.rpc("eth_sendRawTransaction", ALICE.sign(3).raw)
        anvil.rpc("evm_mine")
        assert anvil.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x4"


def test_a_state_file_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "other.json").write_text('{"accounts": 3}')
    for flags, text in (
        (["--load-state", "missing.json"], "cannot read missing.json: No such file or directory"),
        (["--load-state", "bad.json"], "bad.json is no state file of anvil's format: it is neither JSON nor"),
        (["--state", "other.json"], "other.json is no state file of anvil's format: "),
        (["--dump-state", "nowhere/state.json"], "cannot write nowhere/state.json: there is no directory nowhere"),
    ):
        command = [sys.executable, "-m", "devnet", "--port", "0", *flags]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith(f"devnet: {text}")


def test_the_state_is_written_at_intervals_too(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with start_devnet(
        "--silent", "--clock", "manual", "--dump-state", str(tmp_path), "--state-interval", "5"
    ) as devnet:
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
        assert not state.exists()
        devnet.rpc("devnet_clock", {"advance": 5})
        assert json.loads(state.read_text())["best_block_number"] == 1
        assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]
