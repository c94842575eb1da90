"""Filters tell each follower what is new since it last asked, reorgs included."""

import pytest

from devnet.api.following import block_hashes
from devnet.encoding import data
from devnet.feed import MAX_UNREAD, Notice
from devnet.node import Node
from devnet.settings import Settings
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


def test_whole_transactions_are_given_on_request(devnet: Devnet) -> None:
    waiting = devnet.rpc("eth_newPendingTransactionFilter", True)
    signed = ALICE.sign(0)
    devnet.rpc("eth_sendRawTransaction", signed.raw)
    [told] = devnet.rpc("eth_getFilterChanges", waiting)
    assert (told["hash"], told["nonce"], told["blockHash"]) == (signed.hash, "0x0", None)


def test_a_filter_keeps_what_happened_below_the_head_it_began_at(devnet: Devnet) -> None:
    """A filter without bounds follows every block, those too that a reorg makes at lower heights."""
    rpc = devnet.rpc
    rpc("eth_sendRawTransaction", ALICE.create(0, deploying(COUNTER)).raw)
    rpc("evm_mine")
    call = rpc("eth_sendRawTransaction", ALICE.call(1, deployed(0)).raw)
    rpc("anvil_mine", 3)
    logs, blocks = rpc("eth_newFilter", {"fromBlock": "latest"}), rpc("eth_newBlockFilter")
    rpc("anvil_rollback", 3)
    rpc("anvil_mine", 2)
    changes = rpc("eth_getFilterChanges", logs)
    assert [(log["transactionHash"], log["blockNumber"], log["removed"]) for log in changes] == [
        (call, "0x2", True),
        (call, "0x2", False),
    ]
    new = [rpc("eth_getBlockByNumber", number, False)["hash"] for number in ("0x2", "0x3")]
    assert rpc("eth_getFilterChanges", blocks) == new


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"fromBlock": "pending"}, "-32602: pending logs are not supported"),
        ({"toBlock": "0x5"}, "-32602: invalid block range params"),
        ({"fromBlock": "0x5", "toBlock": "0x1"}, "-32602: invalid block range params"),
        ({"fromBlock": "latest", "toBlock": "safe"}, "-32602: invalid block range params"),
    ],
)
def test_a_filter_is_refused_as_by_geth(devnet: Devnet, wanted: dict[str, str], message: str) -> None:
    with pytest.raises(RpcFailure, match=message):
        devnet.rpc("eth_newFilter", wanted)


def test_a_filter_nobody_asks_is_forgotten_after_five_minutes(devnet: Devnet) -> None:
    rpc = devnet.rpc
    rpc("devnet_clock", {"manual": True})
    try:
        asked, forgotten = rpc("eth_newBlockFilter"), rpc("eth_newFilter", {})
        rpc("devnet_clock", {"advance": 299})
        assert rpc("eth_getFilterChanges", asked) == []
        assert rpc("eth_getFilterLogs", forgotten) == []  # as in geth, this does not count as asking
        rpc("devnet_clock", {"advance": 2})
        assert rpc("eth_getFilterChanges", asked) == []
        assert rpc("eth_uninstallFilter", forgotten) is False
    finally:
        rpc("devnet_clock", {"manual": False})


def test_a_snapshot_brings_filters_back_with_what_they_had_unread(devnet: Devnet) -> None:
    rpc = devnet.rpc
    read, dropped = rpc("eth_newBlockFilter"), rpc("eth_newBlockFilter")
    rpc("evm_mine")
    first = rpc("eth_getBlockByNumber", "0x1", False)["hash"]
    snapshot = rpc("evm_snapshot")
    rpc("evm_mine")
    younger = rpc("eth_newBlockFilter")
    assert len(rpc("eth_getFilterChanges", read)) == 2
    rpc("eth_uninstallFilter", dropped)
    rpc("evm_revert", snapshot)
    assert rpc("eth_getFilterChanges", read) == [first]
    assert rpc("eth_getFilterChanges", dropped) == [first]
    assert rpc("eth_getFilterChanges", younger) == []
    rpc("evm_mine")
    new = rpc("eth_getBlockByNumber", "latest", False)["hash"]
    assert [rpc("eth_getFilterChanges", name) for name in (read, dropped, younger)] == [[new]] * 3


def test_a_filter_that_is_never_read_does_not_grow_for_ever() -> None:
    node = Node(Settings(automine=False))
    read, unread = (node.feed.install(block_hashes()) for _ in range(2))
    for _ in range(MAX_UNREAD):
        node.feed.append(Notice("block", node.chain.head))
    assert len(node.feed.read(read) or ()) == MAX_UNREAD
    node.feed.append(Notice("block", node.chain.head))
    assert node.feed.read(unread) is None
    assert node.feed.read(read) == [data(node.chain.head.hash)]
