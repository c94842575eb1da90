"""Automine where submissions come at the same time over several connections: they may share a block, as on anvil."""

import asyncio
import json
from typing import Any

from devnet.ledger import Origin
from devnet.node import Node
from devnet.server.reply import Reply
from devnet.server.rpc import Dispatcher
from devnet.settings import Settings
from tests.devnet.sending import call
from tests.devnet.wallet import ALICE, BOB, CAROL

SEND = "eth_sendRawTransaction"
SIGNED = [wallet.sign(0) for wallet in (ALICE, BOB, CAROL)]


class Clients:
    """Each call comes over a connection of its own, in one turn of the event loop until something is awaited."""

    def __init__(self) -> None:
        self.node = Node(Settings())
        self._dispatcher = Dispatcher(self.node)

    def ask(self, payload: Any) -> Any:
        """The answer, or a future of the reply."""
        reply = self._dispatcher.reply(json.dumps(payload).encode(), Origin(connection=1))
        return reply if isinstance(reply, asyncio.Future) else self.heard(reply)

    def heard(self, reply: Any) -> Any:
        assert isinstance(reply, Reply)
        assert reply.body is not None
        return json.loads(reply.body)

    def blocks(self) -> list[list[str]]:
        """The hashes of the transactions in each block above genesis."""
        return [["0x" + tx.hash.hex() for tx in block.transactions] for block in self.node.chain.blocks[1:]]


def test_submissions_of_one_moment_share_a_block_and_are_answered_after_it() -> None:
    async def main() -> None:
        clients = Clients()
        coming = [clients.ask(call(SEND, signed.raw)) for signed in SIGNED]
        assert clients.blocks() == []
        replies = await asyncio.gather(*coming)
        assert [clients.heard(reply)["result"] for reply in replies] == [signed.hash for signed in SIGNED]
        assert [sorted(block) for block in clients.blocks()] == [sorted(signed.hash for signed in SIGNED)]
        await asyncio.sleep(0)
        assert len(clients.blocks()) == 1

    asyncio.run(main())


def test_whoever_asks_meanwhile_finds_the_block_made() -> None:
    async def main() -> None:
        clients = Clients()
        coming = clients.ask(call(SEND, SIGNED[0].raw))
        receipt = clients.ask(call("eth_getTransactionReceipt", SIGNED[0].hash))["result"]
        assert receipt["blockNumber"] == "0x1"
        later = clients.ask(call(SEND, SIGNED[1].raw))
        assert len(clients.blocks()) == 1
        await asyncio.gather(coming, later)
        assert clients.blocks() == [[SIGNED[0].hash], [SIGNED[1].hash]]

    asyncio.run(main())


def test_what_needs_no_block_is_answered_at_once() -> None:
    async def main() -> None:
        clients = Clients()
        assert clients.ask(call(SEND, ALICE.sign(5).raw))["result"] == ALICE.sign(5).hash
        assert clients.ask(call(SEND, "0x00"))["error"]["code"] == -32000
        clients.ask(call("evm_setAutomine", False))
        assert clients.ask(call(SEND, SIGNED[0].raw))["result"] == SIGNED[0].hash
        assert clients.blocks() == []

    asyncio.run(main())


def test_calls_of_a_batch_have_a_block_each() -> None:
    clients = Clients()
    answers = clients.ask([call(SEND, signed.raw) for signed in SIGNED])
    assert [answer["result"] for answer in answers] == [signed.hash for signed in SIGNED]
    assert clients.blocks() == [[signed.hash] for signed in SIGNED]


def test_a_plan_that_counts_submissions_keeps_their_blocks_apart() -> None:
    clients = Clients()
    plan = {"timeline": [{"at": {"submission": 9}, "call": "evm_mine"}]}
    assert "error" not in clients.ask(call("devnet_plan", plan))
    for signed in SIGNED:
        assert clients.ask(call(SEND, signed.raw))["result"] == signed.hash
    assert clients.blocks() == [[signed.hash] for signed in SIGNED]


def test_blocks_that_must_not_depend_on_the_moment_are_made_one_by_one() -> None:
    for order in ("devnet_clock", {"manual": True}), ("anvil_setBlockTimestampInterval", 1):
        clients = Clients()
        assert "error" not in clients.ask(call(*order))
        for signed in SIGNED:
            assert clients.ask(call(SEND, signed.raw))["result"] == signed.hash
        assert clients.blocks() == [[signed.hash] for signed in SIGNED]
