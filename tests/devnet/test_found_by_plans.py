"""What random plans have found amiss, each as the few calls that show it."""

from typing import Any

import pytest

from tests.devnet.plans.acts import GENESIS_TIME, SEND, Run
from tests.devnet.plans.transactions import COUNTING
from tests.devnet.plans.witness import root_from_scratch
from tests.devnet.test_set_code import authorization
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI


@pytest.fixture
def run() -> Run:
    """A node in process that mines on order; its clock stands still."""
    return Run()


def mined(run: Run, tx_hash: str) -> Any:
    receipt = run.call("eth_getTransactionReceipt", tx_hash)
    return receipt and receipt["blockNumber"]


def test_looking_at_the_pending_block_of_a_node_behind_leaves_the_state_root_alone(run: Run) -> None:
    run.call("evm_mine")
    run.call("anvil_setBalance", ALICE.address, hex(ETHER))
    run.call("devnet_nodes", {"n": 1, "lag": 1})
    assert run.call("eth_getBlockByNumber", "pending", False)["number"] == "0x1"
    run.call("devnet_nodes", {"n": 0})
    run.call("evm_mine")
    assert run.node.chain.head.header.state_root == root_from_scratch(run.node.world)


def test_a_transaction_that_is_mined_again_after_its_nonce_was_set_back_can_be_rolled_back_twice(run: Run) -> None:
    signed = ALICE.sign(0)
    for _ in range(2):
        run.call("anvil_setNonce", ALICE.address, "0x0")
        run.call(SEND, signed.raw)
        run.call("evm_mine")
    assert mined(run, signed.hash) == "0x2"
    run.call("anvil_rollback", 1)
    assert run.call("eth_blockNumber") == "0x1"
    assert mined(run, signed.hash) == "0x1"
    run.call("anvil_rollback", 1)
    assert run.call("eth_blockNumber") == "0x0"
    assert mined(run, signed.hash) is None


def test_with_automine_ordered_empty_blocks_come_first_and_keep_nothing_waiting(run: Run) -> None:
    run.call("evm_setAutomine", True)
    run.call("devnet_mining", {"emptyBlocks": 3})
    gapped, signed = ALICE.sign(1), BOB.sign(0)
    run.call(SEND, gapped.raw)
    assert run.call("eth_blockNumber") == "0x0"
    run.call(SEND, signed.raw)
    assert mined(run, signed.hash) == "0x4"


@pytest.mark.parametrize("order", [("evm_increaseTime", 60), ("evm_setNextBlockTimestamp", GENESIS_TIME + 60)])
def test_with_automine_a_hold_also_ends_when_the_time_of_the_chain_is_shifted(run: Run, order: tuple[Any, ...]) -> None:
    signed = ALICE.sign(0)
    run.call("devnet_holdTx", {"hash": signed.hash, "until": GENESIS_TIME + 30})
    run.call("evm_setAutomine", True)
    run.call(SEND, signed.raw)
    assert mined(run, signed.hash) is None
    run.call(*order)
    assert mined(run, signed.hash) == "0x1"


def test_a_filter_hears_of_a_transaction_that_a_set_nonce_made_executable(run: Run) -> None:
    name, signed = run.call("eth_newPendingTransactionFilter"), ALICE.sign(2)
    run.call(SEND, signed.raw)
    assert run.call("eth_getFilterChanges", name) == []
    run.call("anvil_setNonce", ALICE.address, "0x2")
    assert run.call("eth_getFilterChanges", name) == [signed.hash]
    run.call("anvil_setNonce", ALICE.address, "0x2")
    assert run.call("eth_getFilterChanges", name) == []


def test_a_filter_hears_of_a_transaction_that_an_authorization_made_executable(run: Run) -> None:
    name, waiting = run.call("eth_newPendingTransactionFilter"), BOB.sign(1)
    allowed = authorization(BOB, 0, COUNTING)
    delegating = ALICE.sign(0, type=4, gas=100_000, value=0, authorizationList=[allowed])
    run.call(SEND, waiting.raw)
    run.call(SEND, delegating.raw)
    assert run.call("eth_getFilterChanges", name) == [delegating.hash]
    run.call("evm_mine")
    assert run.call("eth_getFilterChanges", name) == [waiting.hash]


def test_a_filter_hears_once_of_orphans_and_of_what_an_injected_transaction_made_executable(run: Run) -> None:
    name, first, injected, waiting = (
        run.call("eth_newPendingTransactionFilter"),
        ALICE.sign(0),
        BOB.sign(0),
        BOB.sign(1),
    )
    run.call(SEND, first.raw)
    run.call(SEND, waiting.raw)
    run.call("evm_mine")
    assert run.call("eth_getFilterChanges", name) == [first.hash]
    run.call("devnet_reorg", {"depth": 1, "inject": [injected.raw]})
    assert run.call("eth_getFilterChanges", name) == [waiting.hash, first.hash]


def test_orphans_that_a_client_forgets_are_noted_as_lost_whoever_is_imitated_later(run: Run) -> None:
    run.call("devnet_setProfile", "anvil")
    run.call(SEND, ALICE.sign(0).raw)
    run.call("evm_mine")
    run.call("anvil_rollback", 1)
    run.call("devnet_setProfile", "geth")
    (row,) = run.call("devnet_submissions")
    assert [event["event"] for event in row["events"]] == ["mined", "orphaned", "lost"]
    assert run.call("devnet_invariants")["violations"] == []


def test_anvil_reorg_reckons_with_ordered_base_fees(run: Run) -> None:
    cheap, dear = ALICE.sign(0, maxFeePerGas=2 * GWEI), BOB.sign(0, maxFeePerGas=8 * GWEI)
    run.call("anvil_mine", "0x2")
    run.call("devnet_baseFee", {"path": [GWEI, 5 * GWEI]})
    before = run.node.chain.head.hash
    assert run.call("anvil_reorg", 2, [[dear.raw, 0], [cheap.raw, 1]]) is None
    assert run.node.chain.head.hash == before  # refused: the second block's base fee is above its fee cap
    run.call("anvil_reorg", 2, [[cheap.raw, 0], [dear.raw, 1]])
    assert [mined(run, signed.hash) for signed in (cheap, dear)] == ["0x1", "0x2"]


def test_a_restart_loses_nothing_that_is_on_the_chain(run: Run) -> None:
    run.call("devnet_nodes", {"n": 1, "pool": "gossip"})
    for nonce in range(2):
        run.call(SEND, ALICE.sign(nonce).raw)
        if not nonce:
            run.call("evm_mine")
    run.call("devnet_restart")
    rows = run.call("devnet_submissions")
    assert [[event["event"] for event in row["events"]][-1] for row in rows] == ["mined", "lost"]


def test_a_snapshot_brings_back_the_next_random_value(run: Run) -> None:
    ordered = "0x" + "ab" * 32
    snapshot = run.call("evm_snapshot")
    run.call("anvil_setNextBlockPrevRandao", ordered)
    run.call("evm_revert", snapshot)
    run.call("evm_mine")
    assert run.call("eth_getBlockByNumber", "latest", False)["mixHash"] != ordered
