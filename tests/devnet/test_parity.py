"""The same signed bytes give the same blocks on our devnet and on real anvil, recorded so that neither needs the other."""

import json
import os
from pathlib import Path

from tests.devnet.scenario import play
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI, SOMEONE
from tests.support.devnet import NodeProcess

RECORD = Path(__file__).parent / "golden" / "anvil_1_7_1_blocks.json"


def test_blocks_are_equal_to_those_recorded_from_anvil(node: NodeProcess) -> None:
    played = play(node)
    if node.kind == "anvil" and os.environ.get("FENCED_RECORD"):
        RECORD.write_text(json.dumps(played, indent=1) + "\n")
    recorded = json.loads(RECORD.read_text())
    for ours, theirs in zip(played, recorded, strict=True):
        # anvil estimates the least gas, geth and we up to one and a half percent more
        for estimated, least in zip(ours.pop("estimates"), theirs.pop("estimates"), strict=True):
            assert int(least, 16) <= int(estimated, 16) <= int(least, 16) / 0.985
        assert ours == theirs


def test_both_have_the_same_accounts_and_answer_a_senders_reads_alike(node: NodeProcess) -> None:
    accounts = node.rpc("eth_accounts")
    assert len(accounts) == 10
    assert accounts[:2] == [ALICE.address, BOB.address]
    assert {node.rpc("eth_getBalance", account, "latest") for account in accounts} == {hex(10_000 * ETHER)}
    assert node.rpc("eth_chainId") == hex(31337)
    assert node.rpc("net_version") == "31337"
    assert node.rpc("web3_clientVersion").startswith("anvil/v1.7.1")
    deployer = "0x4e59b44847b379578588920ca78fbf26c0b4956c"
    assert node.rpc("eth_getCode", deployer, "latest").endswith("5b8082525050506014600cf3")
    first = ALICE.sign(0, to=BOB.address, value=ETHER)
    gapped = ALICE.sign(2)
    for signed in (first, gapped):
        assert node.rpc("eth_sendRawTransaction", signed.raw) == signed.hash
    assert node.rpc("txpool_status") == {"pending": "0x1", "queued": "0x1"}
    assert node.rpc("eth_getTransactionCount", ALICE.address, "pending") == "0x1"
    assert node.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x0"
    waiting = node.rpc("eth_getTransactionByHash", first.hash)
    assert waiting["blockHash"] is None
    assert node.rpc("eth_getTransactionReceipt", first.hash) is None
    node.rpc("evm_mine")
    assert node.rpc("eth_getTransactionByHash", first.hash)["gasPrice"] == hex(2 * GWEI)
    assert node.rpc("eth_getBalance", BOB.address, "latest") == hex(10_001 * ETHER)
    assert node.rpc("eth_getBalance", BOB.address, "0x0") == hex(10_000 * ETHER)
    for tag in ("safe", "finalized", "earliest", "0x0"):
        assert node.rpc("eth_getTransactionCount", ALICE.address, tag) == "0x0"
    assert node.rpc("eth_getBlockByNumber", "0x99", False) is None
    assert node.rpc("eth_getBalance", SOMEONE, "latest") == "0x0"
    history = node.rpc("eth_feeHistory", "0x2", "latest", [50])
    assert history["oldestBlock"] == "0x0"
    assert history["baseFeePerGas"] == [hex(GWEI), hex(GWEI), hex(875175000)]
    assert history["reward"] == [["0x0"], [hex(GWEI)]]
