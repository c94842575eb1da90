"""Automine for clients that submit at the same time: what arrives in one turn of the event loop shares a block, as on anvil.

Each is still answered after its block. Whatever else is asked meanwhile has the block made first.
"""

import asyncio
import sys
import traceback
from typing import cast

from devnet.node import Node
from devnet.server.reply import Reply

SUBMISSION = "eth_sendRawTransaction"


class SharedBlocks:
    """Makes the blocks of one node, and keeps the replies that wait for the next one."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._waiting: list[tuple[asyncio.Future[Reply], Reply]] = []

    def concerns(self, request: object) -> bool:
        """Whether a call is one that may share a block: a submission, unless a plan counts them.

        A manual clock or a seed asks for blocks that do not depend on the moment something came.
        """
        node = self._node
        return (
            isinstance(request, dict)
            and cast("dict[str, object]", request).get("method") == SUBMISSION
            and node.miner.mode.automine
            and not node.timeline.pending
            and not node.clock.manual
            and node.clock.block_interval is None
        )

    def wait(self, reply: Reply) -> asyncio.Future[Reply]:
        """The reply, once the block that is due has been made: at the end of this turn, if nobody asks for it before."""
        self._node.collected = False
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self.make)
        future: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append((future, reply))
        return future

    def make(self) -> None:
        """Make the block that replies wait for, if there are any."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        try:
            self._node.miner.mine_all()
            self._node.mine_ready()
        except Exception:  # noqa: BLE001  (a defect of ours must not take the devnet down)
            traceback.print_exc(file=sys.stderr)
        for future, reply in waiting:
            future.set_result(reply)
