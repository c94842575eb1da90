"""Going back: snapshots put everything back, rollbacks and reorgs give transactions back to the pool; the ledger keeps all."""

from typing import Any

import pytest

from tests.devnet.wallet import ALICE, BOB, ETHER, SOMEONE
from tests.support.devnet import Devnet, RpcFailure


def head(devnet: Devnet) -> tuple[str, str]:
    block = devnet.rpc("eth_getBlockByNumber", "latest", False)
    return block["hash"], block["stateRoot"]


def send(devnet: Devnet, raw: str) -> str:
    return str(devnet.rpc("eth_sendRawTransaction", raw))


def test_a_snapshot_brings_back_state_blocks_and_pool(devnet: Devnet) -> None:
    mined, waiting, gapped = ALICE.sign(0), ALICE.sign(1), BOB.sign(4)
    send(devnet, mined.raw)
    devnet.rpc("evm_mine")
    send(devnet, waiting.raw)
    send(devnet, gapped.raw)
    before = head(devnet)
    snapshot = devnet.rpc("evm_snapshot")
    devnet.rpc("anvil_setBalance", SOMEONE, hex(9 * ETHER))
    devnet.rpc("evm_mine")
    later = BOB.sign(0)
    send(devnet, later.raw)
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getBalance", SOMEONE, "latest") == hex(9 * ETHER + 2)
    assert devnet.rpc("evm_revert", snapshot) is True
    assert head(devnet) == before
    assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x1"}
    assert devnet.rpc("eth_getBalance", SOMEONE, "latest") == "0x1"
    assert devnet.rpc("eth_getTransactionByHash", waiting.hash)["blockHash"] is None
    assert devnet.rpc("eth_getTransactionByHash", later.hash) is None
    assert devnet.rpc("evm_revert", snapshot) is False
    assert devnet.rpc("evm_revert", "0xfff") is False
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", waiting.hash)["status"] == "0x1"


def test_reverting_uses_up_later_snapshots(devnet: Devnet) -> None:
    first, second = devnet.rpc("evm_snapshot"), devnet.rpc("evm_snapshot")
    assert devnet.rpc("evm_revert", first) is True
    assert devnet.rpc("evm_revert", second) is False


def test_a_rollback_gives_transactions_back_to_the_pool(devnet: Devnet) -> None:
    start = head(devnet)
    signed = [ALICE.sign(nonce) for nonce in range(3)]
    for item in signed:
        send(devnet, item.raw)
        devnet.rpc("evm_mine")
    orphan = devnet.rpc("eth_getBlockByNumber", "latest", False)["hash"]
    devnet.rpc("anvil_rollback", 3)
    assert head(devnet) == start
    assert devnet.rpc("eth_getBlockByHash", orphan, False) is None
    assert devnet.rpc("txpool_status") == {"pending": "0x3", "queued": "0x0"}
    for item in signed:
        assert devnet.rpc("eth_getTransactionReceipt", item.hash) is None
        assert devnet.rpc("eth_getTransactionByHash", item.hash)["blockHash"] is None
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x0"
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, "pending") == "0x3"
    devnet.rpc("evm_mine")
    assert len(devnet.rpc("eth_getBlockByNumber", "latest", False)["transactions"]) == 3
    with pytest.raises(RpcFailure, match="cannot roll back"):
        devnet.rpc("anvil_rollback", 99)


def test_a_reorg_replaces_blocks_by_empty_ones(devnet: Devnet) -> None:
    signed = ALICE.sign(0)
    devnet.rpc("evm_mine")
    send(devnet, signed.raw)
    devnet.rpc("anvil_mine", 2)
    old = [devnet.rpc("eth_getBlockByNumber", hex(number), False)["hash"] for number in (1, 2, 3)]
    devnet.rpc("anvil_reorg", 2, [])
    new = [devnet.rpc("eth_getBlockByNumber", hex(number), False)["hash"] for number in (1, 2, 3)]
    assert new[0] == old[0]
    assert not set(new[1:]) & set(old)
    assert devnet.rpc("eth_getTransactionReceipt", signed.hash) is None
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", signed.hash)["blockNumber"] == "0x4"


def test_a_nonce_can_be_won_by_another_after_a_rollback(devnet: Devnet) -> None:
    first, rival = ALICE.sign(0), ALICE.sign(0, to=BOB.address, maxFeePerGas=2 * 10**10, maxPriorityFeePerGas=2 * 10**9)
    send(devnet, first.raw)
    devnet.rpc("evm_mine")
    devnet.rpc("anvil_rollback", 1)
    send(devnet, rival.raw)
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", rival.hash)["status"] == "0x1"
    assert devnet.rpc("eth_getTransactionByHash", first.hash) is None


def test_old_state_stays_readable(devnet: Devnet) -> None:
    for nonce in range(3):
        send(devnet, ALICE.sign(nonce, value=10**nonce).raw)
        devnet.rpc("evm_mine")
    seen = [int(devnet.rpc("eth_getBalance", SOMEONE, hex(number)), 16) for number in range(4)]
    assert seen == [0, 1, 11, 111]
    devnet.rpc("anvil_rollback", 1)
    seen = [int(devnet.rpc("eth_getBalance", SOMEONE, hex(number)), 16) for number in range(3)]
    assert seen == [0, 1, 11]
    with pytest.raises(RpcFailure, match="header not found"):
        devnet.rpc("eth_getBalance", SOMEONE, "0x3")


def test_the_ledger_keeps_every_submission(devnet: Devnet) -> None:
    since = len(devnet.rpc("devnet_submissions"))

    def ledger() -> list[dict[str, Any]]:
        return list(devnet.rpc("devnet_submissions", {"since": since}))

    good, gapped = ALICE.sign(0), BOB.sign(3)
    send(devnet, good.raw)
    send(devnet, gapped.raw)
    for raw in (good.raw, "0xdeadbeef"):
        with pytest.raises(RpcFailure):
            send(devnet, raw)
    devnet.rpc("evm_mine")
    items = ledger()
    assert [item["verdict"] for item in items] == ["pending", "queued", "rejected", "rejected"]
    assert [item["raw"] for item in items] == [good.raw, gapped.raw, good.raw, "0xdeadbeef"]
    assert items[0]["hash"] == items[2]["hash"] == good.hash
    assert items[2]["error"] == {"code": -32000, "message": "already known"}
    assert (items[0]["from"], items[0]["nonce"]) == (ALICE.address, "0x0")
    assert (items[0]["minedBlock"], items[1]["minedBlock"]) == ("0x1", None)
    devnet.rpc("anvil_rollback", 1)
    assert ledger()[0]["minedBlock"] is None
    assert [event["event"] for event in ledger()[0]["events"]][-2:] == ["mined", "orphaned"]
    assert [item["hash"] for item in devnet.rpc("devnet_submissions", {"sender": BOB.address, "since": since})] == [
        gapped.hash
    ]
