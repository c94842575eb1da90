"""Any mix of submissions, faults and orders: nothing accepted vanishes, nodes agree with themselves, and it replays."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devnet.invariants import judge
from devnet.ledger import Origin
from devnet.node import Node
from devnet.server.rpc import Dispatcher
from devnet.settings import Settings
from tests.devnet.sending import call
from tests.devnet.wallet import ALICE, BOB, GWEI

SEND = "eth_sendRawTransaction"
SIGNED = [
    wallet.sign(nonce, value=value, maxFeePerGas=fee * GWEI, maxPriorityFeePerGas=fee * GWEI // 2)
    for wallet in (ALICE, BOB)
    for nonce in range(4)
    for value, fee in ((1, 10), (1, 12), (2, 20))
]
signed = st.sampled_from(SIGNED)
sending = signed.map(lambda item: (SEND, item.raw))
orders = st.one_of(
    st.just(("evm_mine",)),
    st.integers(1, 3).map(lambda depth: ("anvil_rollback", depth)),
    st.builds(
        lambda depth, new, keep, requeue, item: (
            "devnet_reorg",
            {"depth": depth, "newDepth": new, "keep": keep, "requeue": requeue, "inject": [item.raw]},
        ),
        st.integers(1, 3),
        st.integers(0, 3),
        st.sampled_from(["all", "none"]),
        st.booleans(),
        signed,
    ),
    st.integers(1, 3).map(lambda count: ("devnet_evict", {"lowest": count})),
    st.builds(lambda item, blocks: ("devnet_holdTx", {"hash": item.hash, "blocks": blocks}), signed, st.integers(1, 3)),
    st.builds(
        lambda lag, pool: ("devnet_nodes", {"n": 2, "lag": [0, lag], "pool": pool}),
        st.integers(0, 3),
        st.sampled_from(["shared", "gossip"]),
    ),
    st.just(("devnet_gossip",)),
    st.booleans().map(lambda lose: ("devnet_restart", {"losePool": lose})),
    st.booleans().map(lambda on: ("evm_setAutomine", on)),
    st.sampled_from([1, 30 * GWEI]).map(lambda fee: ("devnet_baseFee", {"path": [fee, fee]})),
    st.sampled_from(["error", "lie_accept", "accept_as_error", "duplicate", "drop_after", "drop_before"]).map(
        lambda kind: (
            "devnet_fault",
            {"kind": kind, "p": 0.5, "match": {"method": SEND}}
            | ({"arg": "geth.underpriced"} if kind == "error" else {}),
        )
    ),
)
histories = st.lists(st.one_of(sending, sending, orders), max_size=30)


def run(coroutine: Any) -> Any:
    """Finish what never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    pytest.fail("it waited")


def play(history: list[tuple[Any, ...]]) -> tuple[Node, list[bytes | None]]:
    node = Node(Settings(automine=False, timestamp=1_700_000_000, manual_clock=True))
    dispatcher = Dispatcher(node)

    def ask(method: str, *params: Any, at: int | None = None) -> bytes | None:
        import json

        body = json.dumps(call(method, *params)).encode()
        reply = run(dispatcher.respond(body, Origin(connection=1, node=at)))
        return b"cut" if reply.cut is not None else reply.body

    heard = []
    for step in history:
        heard.append(ask(*step))
        for number in range(len(node.views.nodes)):
            status = [ask("eth_getTransactionCount", ALICE.address, tag, at=number) for tag in ("latest", "pending")]
            latest, pending = (int(item.split(b'"0x')[1].split(b'"')[0], 16) for item in status if item)
            assert latest <= pending
            heard += status
    return node, heard


@settings(max_examples=40, deadline=None)
@given(histories)
def test_any_history_replays_and_leaves_nothing_unexplained(history: list[tuple[Any, ...]]) -> None:
    node, heard = play(history)
    again, heard_again = play(history)
    assert heard == heard_again
    assert [block.hash for block in node.chain.blocks] == [block.hash for block in again.chain.blocks]
    assert node.faults.log == again.faults.log
    assert [finding for finding in judge(node).violations if finding.kind == "vanished"] == []
