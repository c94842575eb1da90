"""Filters tell each follower what is new since it last asked, reorgs included."""

import pytest

from tests.devnet.bytecode import COUNTER, deploying
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE
from tests.support.devnet import Devnet, RpcFailure


def test_followers_are_told_what_is_new_once(devnet: Devnet) -> None:
    rpc = devnet.rpc
    blocks, waiting = rpc("eth_newBlockFilter"), rpc("eth_newPendingTransactionFilter")
    sent = rpc("eth_sendRawTransaction", ALICE.create(0, deploying(COUNTER)).raw)
    rpc("eth_sendRawTransaction", ALICE.sign(7).raw)
    rpc("anvil_mine", 2)
    hashes = [rpc("eth_getBlockByNumber", hex(number), False)["hash"] for number in (1, 2)]
    assert rpc("eth_getFilterChanges", blocks) == hashes
    assert rpc("eth_getFilterChanges", blocks) == []
    assert rpc("eth_getFilterChanges", waiting) == [sent]
    assert rpc("eth_uninstallFilter", blocks) is True
    assert rpc("eth_uninstallFilter", blocks) is False
    with pytest.raises(RpcFailure, match="filter not found"):
        rpc("eth_getFilterChanges", blocks)


def test_logs_of_orphaned_blocks_come_again_as_removed(devnet: Devnet) -> None:
    rpc = devnet.rpc
    rpc("eth_sendRawTransaction", ALICE.create(0, deploying(COUNTER)).raw)
    rpc("evm_mine")
    logs = rpc("eth_newFilter", {"address": deployed(0)})
    call = rpc("eth_sendRawTransaction", ALICE.call(1, deployed(0)).raw)
    rpc("evm_mine")
    [seen] = rpc("eth_getFilterChanges", logs)
    assert (seen["transactionHash"], seen["removed"]) == (call, False)
    rpc("anvil_rollback", 1)
    assert rpc("eth_getFilterChanges", logs) == [seen | {"removed": True}]
    rpc("evm_mine")
    [again] = rpc("eth_getFilterChanges", logs)
    assert (again["transactionHash"], again["removed"]) == (call, False)
    assert again["blockHash"] != seen["blockHash"]
    assert rpc("eth_getFilterLogs", logs) == [again]
