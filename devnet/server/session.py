"""One client on a lasting connection, WebSocket or IPC: calls come in, answers and notifications go out in their order.

Each call runs in a task of its own, so that one which a fault holds up does not hold up the others, and it is carried
through when the client goes meanwhile. A client that does not read is not waited for: once too much is unsent its
connection is cut.
"""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from devnet.feed import Event
from devnet.node import Node
from devnet.server.reply import Reply
from devnet.subscription import CALLER, Caller, Subscription

MAX_UNSENT = 16 * 1024 * 1024  # bytes of messages the client has not taken yet
_FAILURE = 400  # HTTP statuses from here on

Respond = Callable[[bytes], Awaitable[Reply]]


class Wire(Protocol):
    """How messages go out. Each method does nothing where the connection is gone."""

    async def send(self, message: bytes) -> None:
        """One whole message; waits while the client takes nothing."""

    async def close(self) -> None:
        """End in good order, to be tried again later."""

    def cut(self) -> None:
        """Break off at once."""

    def tear(self, message: bytes, count: int) -> None:
        """Break off after so many bytes of a message, 0 for none."""


class Session:
    """Serves one connection of a node. `calls` keeps the running calls of all sessions."""

    def __init__(self, node: Node, respond: Respond, wire: Wire, calls: set[asyncio.Task[None]]) -> None:
        self._node = node
        self._respond = respond
        self._wire = wire
        self._calls = calls
        self._subscriptions: dict[str, Subscription] = {}
        self._news: deque[tuple[Subscription, Event]] = deque()
        self._unsent: deque[tuple[bytes | Reply, int]] = deque()
        self._size = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._over = False

    async def run(self, bodies: AsyncIterator[bytes]) -> None:
        """Serve until the client goes or is cut off."""
        writing = asyncio.create_task(self._write())
        try:
            async for body in bodies:
                call = asyncio.create_task(self._call(body))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
                await asyncio.sleep(0)  # let it run first: calls on one connection keep their order
                await self._room.wait()
        finally:
            self._end()
            writing.cancel()

    def tell(self, subscription: Subscription, event: Event) -> None:
        """Notify of an event, after the answer of the call that is running now."""
        if subscription.held is not None:
            subscription.held.append(event)
            return
        if not self._news:
            asyncio.get_running_loop().call_soon(self._pass_on)
        self._news.append((subscription, event))

    def cut(self) -> None:
        """Break the connection off at once; its subscriptions end with it."""
        self._end()
        self._wire.cut()

    async def _call(self, body: bytes) -> None:
        caller = Caller(self, self._subscriptions)
        CALLER.set(caller)
        reply = await self._respond(body)
        if self._over:
            for subscription in caller.opened:
                self._forget(subscription)
            return
        self._put(reply, len(reply.body or b""))
        for subscription in caller.opened:
            held, subscription.held = subscription.held, None
            for event in held or ():
                self.tell(subscription, event)

    def _pass_on(self) -> None:
        while self._news:
            subscription, event = self._news.popleft()
            if subscription.name not in self._subscriptions:
                continue
            for message in subscription.messages(event):
                if self._size > MAX_UNSENT:
                    sys.stderr.write(f"devnet: cut off a client that left {MAX_UNSENT} bytes of messages unread\n")
                    self.cut()
                    return
                self._put(message, len(message))

    def _put(self, message: bytes | Reply, size: int) -> None:
        self._unsent.append((message, size))
        self._size += size
        if self._size > MAX_UNSENT:
            self._room.clear()  # take no further calls from a client that leaves their answers unread
        self._filled.set()

    async def _write(self) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._unsent:
                message, size = self._unsent.popleft()
                if isinstance(message, Reply):
                    await self._carry_out(message)
                else:
                    await self._wire.send(message)
                self._size -= size
                if self._size <= MAX_UNSENT:
                    self._room.set()

    async def _carry_out(self, reply: Reply) -> None:
        """Send an answer, or break the connection as a fault wants it."""
        if reply.cut is not None:
            self._end()
            self._wire.tear(reply.body or b"", reply.cut)
        elif reply.status >= _FAILURE:
            self._end()
            await self._wire.close()
        elif reply.body is not None:
            await self._wire.send(reply.body)
        if reply.then is not None:
            reply.then()

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        self._room.set()
        self._news.clear()
        for subscription in list(self._subscriptions.values()):
            self._forget(subscription)

    def _forget(self, subscription: Subscription) -> None:
        subscription.end()
        self._subscriptions.pop(subscription.name, None)
        self._node.subscriptions.pop(subscription.name, None)
