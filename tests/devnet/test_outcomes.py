"""Outcomes on order: evictions, held transactions, chosen reorgs, scripted base fees, mining that stops, a rival."""

from typing import Any

import pytest

from tests.devnet.bytecode import COUNTER, deploying
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, CAROL, GWEI, Signed
from tests.support.devnet import Devnet, RpcFailure

SEND = "eth_sendRawTransaction"


def send(devnet: Devnet, *signed: Signed) -> None:
    for item in signed:
        devnet.rpc(SEND, item.raw)


def mine(devnet: Devnet) -> list[str]:
    """The hashes in a new block."""
    devnet.rpc("evm_mine")
    return list(devnet.rpc("eth_getBlockByNumber", "latest", False)["transactions"])


def fate(devnet: Devnet, signed: Signed) -> str:
    """What happened last to a transaction, by the ledger."""
    rows = [row for row in devnet.rpc("devnet_submissions") if row["hash"] == signed.hash]
    return str(rows[-1]["events"][-1]["event"])


def test_an_evicted_transaction_is_forgotten_and_later_ones_wait_behind_a_gap(devnet: Devnet) -> None:
    first, second = ALICE.sign(0), ALICE.sign(1)
    send(devnet, first, second)
    assert devnet.rpc("devnet_evict", {"hash": first.hash}) == [first.hash]
    assert devnet.rpc("eth_getTransactionByHash", first.hash) is None
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x1"}
    assert fate(devnet, first) == "evicted"
    assert devnet.rpc("devnet_evict", {"hash": first.hash}) == []
    assert mine(devnet) == []
    send(devnet, first)
    assert mine(devnet) == [first.hash, second.hash]


def test_eviction_by_sender_by_price_and_by_chance(devnet: Devnet) -> None:
    cheap = [wallet.sign(0, maxPriorityFeePerGas=price) for wallet, price in ((ALICE, 3), (BOB, 1), (CAROL, 2))]
    send(devnet, *cheap)
    assert devnet.rpc("devnet_evict", {"lowest": 2}) == [cheap[1].hash, cheap[2].hash]
    assert devnet.rpc("devnet_evict", {"sender": ALICE.address}) == [cheap[0].hash]
    many = [ALICE.sign(nonce) for nonce in range(20)]
    snapshot = devnet.rpc("evm_snapshot")
    picks = []
    for seed in (5, 5, 6):
        send(devnet, *many)
        picks.append(devnet.rpc("devnet_evict", {"p": 0.5, "seed": seed}))
        devnet.rpc("evm_revert", snapshot)
        snapshot = devnet.rpc("evm_snapshot")
    assert picks[0] == picks[1] != picks[2]
    assert 3 < len(picks[0]) < 17


@pytest.mark.parametrize("by", ["hash", "sender"])
def test_a_held_transaction_is_known_but_not_chosen_for_some_blocks(devnet: Devnet, by: str) -> None:
    held, other = ALICE.sign(0), BOB.sign(0)
    send(devnet, held, other)
    devnet.rpc("devnet_holdTx", {by: held.hash if by == "hash" else ALICE.address, "blocks": 2})
    assert [mine(devnet), mine(devnet), mine(devnet)] == [[other.hash], [], [held.hash]]


def test_a_held_transaction_is_released_by_order_or_by_time(devnet: Devnet) -> None:
    held = ALICE.sign(0)
    send(devnet, held)
    devnet.rpc("devnet_holdTx", {"hash": held.hash, "blocks": 1000})
    assert mine(devnet) == []
    assert devnet.rpc("devnet_holdTx", {"hash": held.hash, "release": True}) is True
    now = int(devnet.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    devnet.rpc("devnet_holdTx", {"hash": held.hash, "until": now + 1000})
    assert mine(devnet) == []
    devnet.rpc("evm_setNextBlockTimestamp", now + 1000)
    assert mine(devnet) == [held.hash]


def test_automine_goes_on_by_itself_when_a_hold_ends(timeless: Devnet) -> None:
    timeless.rpc("evm_setAutomine", True)
    timeless.rpc("evm_mine")
    now = int(timeless.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    held = ALICE.sign(0)
    timeless.rpc("devnet_holdTx", {"sender": ALICE.address, "until": now + 60})
    send(timeless, held)
    timeless.rpc("devnet_clock", {"advance": 58})
    assert timeless.rpc("eth_blockNumber") == "0x1"
    timeless.rpc("devnet_clock", {"advance": 2})
    assert timeless.rpc("eth_getTransactionReceipt", held.hash)["blockNumber"] == "0x2"


def test_in_a_reorg_another_transaction_wins_the_nonce(devnet: Devnet) -> None:
    loser, winner, bystander = ALICE.sign(0), ALICE.sign(0, to=BOB.address, value=5), BOB.sign(0)
    send(devnet, loser, bystander)
    mine(devnet)
    done = devnet.rpc("devnet_reorg", {"depth": 1, "keep": "all", "inject": [winner.raw]})
    assert done == {"included": [bystander.hash], "requeued": [], "lost": [loser.hash], "refused": []}
    assert devnet.rpc("eth_getTransactionReceipt", winner.hash)["blockNumber"] == "0x1"
    assert devnet.rpc("eth_getTransactionByHash", loser.hash) is None
    assert fate(devnet, loser) == "overtaken"


def test_a_reorg_requeues_loses_drops_and_keeps_as_ordered(devnet: Devnet) -> None:
    signed = [wallet.sign(0) for wallet in (ALICE, BOB, CAROL)]
    send(devnet, *signed)
    mine(devnet)
    alice, bob, carol = (item.hash for item in signed)
    done = devnet.rpc("devnet_reorg", {"depth": 1, "newDepth": 2, "keep": [alice], "drop": [bob], "requeue": True})
    assert done == {"included": [alice], "requeued": [carol], "lost": [bob], "refused": []}
    assert devnet.rpc("eth_blockNumber") == "0x2"
    assert fate(devnet, signed[1]) == "dropped"
    assert mine(devnet) == [carol]
    done = devnet.rpc("devnet_reorg", {"depth": 3, "requeue": False})
    assert sorted(done["lost"]) == sorted([alice, carol])
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}
    assert devnet.rpc("devnet_invariants", {"sender": CAROL.address})["violations"] == []


def test_a_reorg_puts_kept_transactions_into_blocks_at_their_places(devnet: Devnet) -> None:
    signed = [ALICE.sign(nonce) for nonce in range(3)]
    for item in signed:
        send(devnet, item)
        mine(devnet)
    devnet.rpc("devnet_reorg", {"depth": 3, "newDepth": 2, "keep": "all"})
    contents = [devnet.rpc("eth_getBlockByNumber", hex(number), False)["transactions"] for number in (1, 2)]
    assert contents == [[signed[0].hash], [signed[1].hash, signed[2].hash]]


def test_a_reorg_tells_filters_of_removed_logs_before_the_new_ones(devnet: Devnet) -> None:
    send(devnet, ALICE.create(0, deploying(COUNTER)))
    mine(devnet)
    name = devnet.rpc("eth_newFilter", {"address": deployed(0)})
    count = ALICE.call(1, deployed(0))
    send(devnet, count)
    mine(devnet)
    old = devnet.rpc("eth_getBlockByNumber", "latest", False)["hash"]
    devnet.rpc("devnet_reorg", {"depth": 1, "newDepth": 2, "keep": "all"})
    changes = devnet.rpc("eth_getFilterChanges", name)
    new = devnet.rpc("eth_getTransactionReceipt", count.hash)["blockHash"]
    assert [(log["removed"], log["blockHash"]) for log in changes] == [(False, old), (True, old), (False, new)]


def test_an_injected_transaction_that_does_not_fit_is_named(devnet: Devnet) -> None:
    mine(devnet)
    gapped = ALICE.sign(3)
    assert devnet.rpc("devnet_reorg", {"depth": 1, "inject": [gapped.raw]})["refused"] == [gapped.hash]


def test_base_fees_follow_a_path_and_a_spike_keeps_transactions_waiting(devnet: Devnet) -> None:
    def base_fee() -> int:
        mine(devnet)
        return int(devnet.rpc("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)

    assert devnet.rpc("devnet_baseFee", {"path": [5 * GWEI, "0x77359400", 8 * GWEI]})[1] == hex(2 * GWEI)
    assert [base_fee() for _ in range(3)] == [5 * GWEI, 2 * GWEI, 8 * GWEI]
    assert base_fee() == 7 * GWEI
    usual = int(devnet.rpc("eth_feeHistory", 1, "latest", [])["baseFeePerGas"][1], 16)
    devnet.rpc("devnet_baseFee", {"spike": {"factor": 10, "blocks": 2}})
    waiting = ALICE.sign(0)
    send(devnet, waiting)
    assert [base_fee(), base_fee(), base_fee()] == [10 * usual, 10 * usual, usual]
    assert devnet.rpc("eth_getTransactionReceipt", waiting.hash)["blockNumber"] == devnet.rpc("eth_blockNumber")


def test_mining_makes_empty_small_and_ordered_blocks(devnet: Devnet) -> None:
    poor, rich = ALICE.sign(0, maxPriorityFeePerGas=1), BOB.sign(0)
    send(devnet, poor, rich)
    assert devnet.rpc("devnet_mining", {"emptyBlocks": 2, "limit": 1, "order": "fifo"}) == {
        "paused": False,
        "emptyBlocks": 2,
        "limit": 1,
        "order": "fifo",
    }
    assert [mine(devnet) for _ in range(4)] == [[], [], [poor.hash], [rich.hash]]


def test_paused_mining_makes_a_block_by_explicit_order_only(devnet: Devnet) -> None:
    devnet.rpc("evm_setAutomine", True)
    devnet.rpc("devnet_mining", {"pause": True})
    first = ALICE.sign(0)
    send(devnet, first)
    assert devnet.rpc("eth_blockNumber") == "0x0"
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", first.hash)["blockNumber"] == "0x1"
    send(devnet, ALICE.sign(1))
    assert devnet.rpc("eth_blockNumber") == "0x1"
    devnet.rpc("devnet_mining", {"resume": True})
    assert devnet.rpc("eth_blockNumber") == "0x2"


def test_snapshots_keep_standing_orders(devnet: Devnet) -> None:
    devnet.rpc("devnet_mining", {"limit": 1})
    snapshot = devnet.rpc("evm_snapshot")
    devnet.rpc("devnet_mining", {"limit": None, "pause": True, "emptyBlocks": 3})
    devnet.rpc("devnet_baseFee", {"path": [1, 2]})
    devnet.rpc("evm_revert", snapshot)
    assert devnet.rpc("devnet_mining") == {"paused": False, "emptyBlocks": 0, "limit": 1, "order": "fees"}
    send(devnet, ALICE.sign(0), ALICE.sign(1))
    assert len(mine(devnet)) == 1


def test_a_rival_takes_the_nonce_a_sender_was_about_to_use(devnet: Devnet) -> None:
    taken = devnet.rpc("devnet_rival", {"account": 0})
    mine(devnet)
    with pytest.raises(RpcFailure, match="nonce too low"):
        send(devnet, ALICE.sign(0))
    row = next(row for row in devnet.rpc("devnet_submissions") if row["hash"] == taken)
    assert (row["author"], row["from"], row["nonce"], row["minedBlock"]) == ("rival", ALICE.address, "0x0", "0x1")


def test_a_rival_outbids_what_waits_and_is_no_violation_of_the_sender(devnet: Devnet) -> None:
    since = len(devnet.rpc("devnet_submissions"))
    waiting = ALICE.sign(0)
    send(devnet, waiting)
    taken = devnet.rpc("devnet_rival", {"key": ALICE.key, "nonce": 0, "tx": {"to": BOB.address, "value": "0x9"}})
    assert devnet.rpc("eth_getTransactionByHash", waiting.hash) is None
    assert mine(devnet) == [taken]
    assert devnet.rpc("eth_getTransactionByHash", taken)["value"] == "0x9"
    assert devnet.rpc("devnet_invariants", {"since": since})["violations"] == []


@pytest.mark.parametrize(
    ("method", "order", "sentence"),
    [
        ("devnet_evict", {}, "give exactly one of hash, sender, lowest, p"),
        ("devnet_evict", {"lowest": 1, "p": 1}, "give exactly one of"),
        ("devnet_evict", {"lowest": 1, "node": 0}, "there is no node 0"),
        ("devnet_holdTx", {"hash": "0x" + "11" * 32}, "give exactly one of blocks, until, release"),
        ("devnet_reorg", {}, "depth must be a whole number"),
        ("devnet_reorg", {"depth": 1, "keep": "some"}, 'keep must be "all", "none" or a list'),
        ("devnet_reorg", {"depth": 99}, "cannot reorganize 99 blocks: the chain has 0 above genesis"),
        ("devnet_reorg", {"depth": 1, "inject": ["0x01"]}, "inject holds bytes that are no transaction"),
        ("devnet_baseFee", {"spike": {"factor": -1}}, "factor must be a number of 0 or more"),
        ("devnet_baseFee", {"spike": {"times": 2}}, "spike has no field 'times': it takes blocks, factor"),
        (
            "devnet_mining",
            {"stop": True},
            "devnet_mining has no field 'stop': it takes emptyBlocks, limit, order, pause",
        ),
        ("devnet_mining", {"order": "random"}, "order must be one of fees, fifo"),
        ("devnet_restart", {"downtimeMs": "long"}, "downtimeMs must be a number"),
        ("devnet_rival", {}, "give exactly one of key, account"),
        ("devnet_rival", {"account": 10}, "there is no account 10: the devnet has 10"),
        ("devnet_rival", {"account": "0x" + "11" * 20}, "the devnet has no key of"),
    ],
)
def test_bad_orders_are_refused(devnet: Devnet, method: str, order: Any, sentence: str) -> None:
    with pytest.raises(RpcFailure) as caught:
        devnet.rpc(method, order)
    assert caught.value.code == -32602
    assert sentence in caught.value.message
