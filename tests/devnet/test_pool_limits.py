"""A full pool gives up what geth's gives up, with geth's words, and the ledger tells of each that went.

The outcomes were seen on geth 1.17.10 with --txpool.accountslots 2 --txpool.globalslots 4 --txpool.accountqueue 2
--txpool.globalqueue 3.
"""

from dataclasses import replace
from typing import Any

import pytest

from devnet.errors import RpcError
from devnet.node import Node
from devnet.settings import Settings
from devnet.txpool.profiles import GETH, profile_with
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI, Wallet
from tests.support.devnet import Devnet, RpcFailure

SENDERS = [Wallet("0x" + f"{number:02x}" * 32) for number in range(0x21, 0x29)]
ADDRESSES = [bytes.fromhex(wallet.address[2:]) for wallet in SENDERS]
SMALL = profile_with("geth", {"accountslots": 2, "globalslots": 4, "accountqueue": 2, "globalqueue": 3})
USUAL: dict[str, Any] = {"maxFeePerGas": 10 * GWEI, "maxPriorityFeePerGas": GWEI}
CHEAP = USUAL | {"maxPriorityFeePerGas": GWEI // 2}
DEAR = {"maxFeePerGas": 20 * GWEI, "maxPriorityFeePerGas": 2 * GWEI}
Place = tuple[int, int]
FULL: list[Place] = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 5), (3, 5), (4, 5)]


@pytest.fixture
def node() -> Node:
    node = Node(Settings(automine=False, accounts=0, profile=SMALL, manual_clock=True))
    for address in ADDRESSES:
        node.amend(node.world.balances, address, 100 * ETHER)
    return node


def send(node: Node, place: Place, **fields: Any) -> bytes:
    who, nonce = place
    return node.submit(bytes.fromhex(SENDERS[who].sign(nonce, **(USUAL | fields)).raw[2:])).hash


def waiting(node: Node) -> tuple[list[Place], list[Place]]:
    """Executable and queued ones as (sender, nonce)."""
    pending, queued = [], []
    for who, address in enumerate(ADDRESSES):
        lane = node.pool.lanes.get(address)
        for nonce in sorted(lane.entries) if lane else ():
            assert lane is not None
            (pending if nonce < lane.end else queued).append((who, nonce))
    return pending, queued


def fates(node: Node, *hashes: bytes) -> list[str]:
    return [node.ledger.events[tx_hash][-1].kind if tx_hash in node.ledger.events else "waits" for tx_hash in hashes]


def test_senders_with_most_executable_ones_lose_their_last(node: Node) -> None:
    own = [send(node, (0, nonce)) for nonce in range(4)]
    assert waiting(node) == ([(0, 0), (0, 1), (0, 2), (0, 3)], [])
    send(node, (1, 0))
    assert waiting(node)[0] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    send(node, (1, 1))
    third = send(node, (1, 2))
    assert waiting(node)[0] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert fates(node, *own, third) == ["waits", "waits", *["evicted: executable"] * 3]
    for who in (2, 3, 4):  # nobody is trimmed below the slots guaranteed to each
        send(node, (who, 0))
    assert waiting(node)[0] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (3, 0), (4, 0)]


def test_a_sender_keeps_the_lowest_of_too_many_queued(node: Node) -> None:
    hashes = [send(node, (0, nonce)) for nonce in (5, 6, 7, 9, 8)]
    assert waiting(node) == ([], [(0, 5), (0, 6)])
    assert fates(node, *hashes) == ["waits", "waits", *["evicted: sender_queued"] * 3]
    assert [item.verdict for item in node.ledger.submissions] == ["queued"] * 5


def test_too_many_queued_in_all_cost_the_sender_longest_untouched(node: Node) -> None:
    hashes = []
    for place in ((0, 5), (0, 6), (1, 5), (2, 5), (3, 7), (3, 6)):
        hashes.append(send(node, place))
        node.clock.advance(1)
    assert waiting(node) == ([], [(2, 5), (3, 6), (3, 7)])
    assert fates(node, *hashes) == [*["evicted: queued"] * 3, "waits", "waits", "waits"]


@pytest.mark.parametrize("fees", [USUAL, CHEAP])
def test_a_full_pool_refuses_what_pays_no_more_than_its_cheapest(node: Node, fees: dict[str, Any]) -> None:
    for place in FULL:
        send(node, place)
    with pytest.raises(RpcError, match=r"^transaction underpriced$"):
        send(node, (5, 0), **fees)
    assert waiting(node) == ([(0, 0), (0, 1), (1, 0), (1, 1)], [(2, 5), (3, 5), (4, 5)])


def test_a_full_pool_gives_up_its_cheapest_for_one_that_pays_more(node: Node) -> None:
    hashes = [send(node, place) for place in FULL]
    winners = [send(node, (who, 0), **DEAR) for who in (5, 6, 7)]
    assert waiting(node) == ([(0, 0), (0, 1), (1, 0), (1, 1), (5, 0), (6, 0), (7, 0)], [])
    assert fates(node, *hashes[4:]) == ["evicted: underpriced"] * 3
    assert [node.ledger.events[tx_hash][-1].by for tx_hash in hashes[:3:-1]] == winners


def test_one_behind_a_gap_never_pushes_an_executable_one_out(node: Node) -> None:
    for place in FULL:
        send(node, place, **(DEAR if place[1] == 5 else {}))
    before = waiting(node)
    with pytest.raises(RpcError, match=r"^future transaction tries to replace pending$"):
        send(node, (5, 3), **DEAR)
    assert waiting(node) == before
    send(node, (5, 0), **DEAR)
    assert waiting(node) == ([(0, 0), (0, 1), (1, 0), (5, 0)], [(2, 5), (3, 5), (4, 5)])


def test_room_is_counted_in_slots_of_32_kib(node: Node) -> None:
    for place in FULL:
        send(node, place)
    send(node, (5, 0), **DEAR, data="0x" + "00" * 100_000, gas=1_500_000)
    assert waiting(node) == ([(0, 0), (0, 1), (1, 0), (5, 0)], [])


def test_a_pool_too_small_for_a_transaction_is_full(node: Node) -> None:
    node.pool.rules.limits = replace(SMALL.limits, total=1)
    send(node, (0, 0))
    with pytest.raises(RpcError, match=r"^txpool is full$"):
        send(node, (1, 0), **DEAR, data="0x" + "00" * 40_000, gas=1_000_000)
    assert waiting(node) == ([(0, 0)], [])


def test_queued_ones_expire_when_nothing_moved_for_three_hours() -> None:
    node = Node(Settings(automine=False, accounts=2, manual_clock=True))
    assert GETH.limits.lifetime == 3 * 3600

    def submit(wallet: Wallet, nonce: int) -> bytes:
        return node.submit(bytes.fromhex(wallet.sign(nonce).raw[2:])).hash

    lost, kept, executable = submit(ALICE, 2), submit(BOB, 2), submit(ALICE, 0)
    node.clock.advance(3 * 3600 - 10)
    submit(BOB, 0)  # touches what Bob has queued
    node.clock.advance(11)
    assert node.pool.counts() == (2, 1)
    assert fates(node, lost, kept, executable) == ["expired", "waits", "waits"]
    node.clock.advance(3 * 3600)
    node.miner.mine()
    assert fates(node, kept, executable) == ["expired", "mined"]


def test_limits_can_be_set_at_run_time(devnet: Devnet) -> None:
    usual = devnet.rpc("devnet_poolLimits")
    assert (usual["total"], usual["queued"], usual["senderQueued"], usual["lifetime"]) == (6144, 1024, 64, 10800)
    try:
        for nonce in (0, 2, 4, 6):
            devnet.rpc("eth_sendRawTransaction", ALICE.sign(nonce).raw)
        gone = ALICE.sign(6).hash
        limits = devnet.rpc("devnet_poolLimits", {"perSender": 2, "queueTtl": 60})
        assert (limits["senderQueued"], limits["lifetime"], limits["total"]) == (2, 60, 6144)
        assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x2"}
        assert devnet.rpc("eth_getTransactionByHash", gone) is None
        ledger = devnet.rpc("devnet_submissions", {"sender": ALICE.address})
        assert next(item for item in reversed(ledger) if item["hash"] == gone)["events"][-1]["event"] == (
            "evicted: sender_queued"
        )
        devnet.rpc("devnet_poolLimits", {"global": 2})
        assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x1"}
        with pytest.raises(RpcFailure, match="transaction underpriced"):
            devnet.rpc("eth_sendRawTransaction", BOB.sign(0).raw)
        for wrong, text in (({"size": 1}, "there is no limit size"), ({"global": -1}, "invalid limit global")):
            with pytest.raises(RpcFailure, match=text):
                devnet.rpc("devnet_poolLimits", wrong)
    finally:
        devnet.rpc("devnet_setProfile", "geth")
    assert devnet.rpc("devnet_poolLimits") == usual


def test_a_client_that_refuses_has_its_words_for_one_more_of_a_sender() -> None:
    profile = profile_with("reth", {})
    node = Node(Settings(automine=False, accounts=2, profile=replace(profile, limits=profile.limits.per_sender(2))))
    for nonce in (0, 4):
        node.submit(bytes.fromhex(ALICE.sign(nonce).raw[2:]))
    with pytest.raises(RpcError, match="txpool is full") as caught:
        node.submit(bytes.fromhex(ALICE.sign(1).raw[2:]))
    assert caught.value.code == -32003
    node.submit(bytes.fromhex(ALICE.sign(4, **DEAR).raw[2:]))
