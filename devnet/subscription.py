"""What a client on a lasting connection is told without asking, and the losses a tester orders of it.

The connection puts each notification behind the answer of the call that caused it, and tells nothing of a subscription
before the client has been told its id, as geth does.
"""

import json
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from devnet.feed import Event, Feed, Interest


@dataclass(slots=True)
class Losses:
    """How many notifications will be dropped or sent twice, and of how many events (blocks, arrivals) nothing is told."""

    drop: int = 0
    gap: int = 0
    dup: int = 0


class Subscription:
    """One eth_subscribe. `connection` is told of each event that concerns it."""

    def __init__(
        self, name: str, connection: "Connection", feed: Feed, interest: Interest, *, early: bool = False
    ) -> None:
        self.name = name
        self.connection = connection
        self.losses = Losses()
        self.held: list[Event] | None = []
        self._interest = interest
        self._stop = feed.listen(self._hear, early=early)

    def end(self) -> None:
        """Hear no more; does nothing the second time."""
        stop, self._stop = self._stop, lambda: None
        stop()

    def messages(self, event: Event) -> Iterator[bytes]:
        """The notifications an event makes, less what a loss takes away."""
        for item in self._interest.news(event):
            if self.losses.drop:
                self.losses.drop -= 1
                continue
            params = {"subscription": self.name, "result": item}
            body = {"jsonrpc": "2.0", "method": "eth_subscription", "params": params}
            message = json.dumps(body, separators=(",", ":")).encode()
            yield message
            if self.losses.dup:
                self.losses.dup -= 1
                yield message

    def _hear(self, event: Event) -> None:
        if not self._interest.concerns(event):
            return
        if self.losses.gap:
            self.losses.gap -= 1
            return
        self.connection.tell(self, event)


class Connection(Protocol):
    """What a subscription needs of the connection it lives on."""

    def tell(self, subscription: Subscription, event: Event) -> None:
        """Notify the client as soon as its turn has come."""

    def cut(self) -> None:
        """Break off at once, without a word."""


@dataclass(slots=True)
class Caller:
    """Who makes the running call: its connection, that connection's subscriptions by id, and those this call opened."""

    connection: Connection
    subscriptions: dict[str, Subscription]
    opened: list[Subscription] = field(default_factory=list)


# Set in each call's own task; None where the transport cannot notify, as over HTTP.
CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
