"""One client's HTTP connection: its requests are answered one after the other, in their order."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableSet
from dataclasses import dataclass
from functools import partial
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from devnet.ledger import Origin
from devnet.server.listener import Listener
from devnet.server.origin import origin_of
from devnet.server.reply import Reply
from devnet.server.request import Request
from devnet.server.response import CONTINUE, Responses


@dataclass(frozen=True, slots=True)
class Service:
    """What the connections of one server share.

    `respond` answers a body, at once where nothing has to be waited for. `upgrade` gives the protocol that goes on with
    a connection as a WebSocket. `transports` are the open connections; `numbers` numbers those that have asked something.
    """

    listener: Listener
    responses: Responses
    respond: Callable[[bytes, Origin], Reply | Awaitable[Reply]]
    upgrade: Callable[[Origin], asyncio.Protocol]
    transports: MutableSet[asyncio.Transport]
    numbers: Iterator[int]


class HttpConnection(asyncio.Protocol):
    """HTTP/1.1 on httptools' parser, which calls the methods whose names begin with `on_`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._parser = HttpRequestParser(self)
        self._request = Request()
        self._refusal: Reply | None = None
        self._complete: deque[tuple[Request, Reply | None]] = deque()
        self._waiting: asyncio.Future[Reply] | None = None
        self._stalled = False
        self._number: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._service.transports.add(self._transport)

    def data_received(self, data: bytes) -> None:
        """Read on, and answer what is complete."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as stop:
            self._answer()
            self._change(data[stop.args[0] :])
        except HttpParserError:
            self._refuse()
        self._answer()

    def pause_writing(self) -> None:
        """The client takes no answers: take no requests."""
        self._stalled = True
        self._regulate()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._stalled = False
        self._regulate()

    # -- called by the parser --

    def on_message_begin(self) -> None:
        """A request begins."""
        self._request, self._refusal = Request(), None

    def on_url(self, url: bytes) -> None:
        """A part of what it asks for."""
        self._request.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._request.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """The head is there: decide whether the body is wanted."""
        request = self._request
        request.method = self._parser.get_method().decode()
        request.keep_alive = self._parser.should_keep_alive()
        self._refusal = self._service.listener.refusal(request)
        if b"expect" in request.headers and self._refusal is None:
            self._transport.write(CONTINUE)

    def on_body(self, part: bytes) -> None:
        """A part of the body; of one that is refused nothing is kept."""
        request = self._request
        request.size += len(part)
        if self._refusal is None:
            request.parts.append(part)
            self._refusal = self._service.listener.overflow(request)

    def on_message_complete(self) -> None:
        """The request is whole, unless it asks for another protocol: then the parser stops and has left out its body."""
        if not self._parser.should_upgrade():
            self._complete.append((self._request, self._refusal))

    # -- answering --

    def _answer(self) -> None:
        """Answer what is complete, until something has to be waited for."""
        while self._complete and self._waiting is None:
            request, refusal = self._complete.popleft()
            reply = refusal or self._service.respond(request.body, self._origin(request))
            if isinstance(reply, Reply):
                self._service.responses.send(self._transport, request, reply)
            else:
                self._waiting = asyncio.ensure_future(reply)
                self._waiting.add_done_callback(partial(self._answer_late, request))
                self._regulate()

    def _answer_late(self, request: Request, done: asyncio.Future[Reply]) -> None:
        self._waiting = None
        if done.cancelled():  # the server ends
            self._transport.abort()
            return
        try:
            self._service.responses.send(self._transport, request, done.result())
        except Exception:
            self._transport.abort()
            raise
        self._answer()
        self._regulate()

    def _regulate(self) -> None:
        """Read on unless requests wait here already, or answers there."""
        wanted = not (self._stalled or self._complete)
        if wanted is not self._transport.is_reading() and not self._transport.is_closing():
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _origin(self, request: Request) -> Origin:
        if self._number is None:
            self._number = next(self._service.numbers)
        return origin_of(request, self._number)

    def _change(self, rest: bytes) -> None:
        """Leave the connection to a WebSocket, which reads the request again, or pass over the offer of anything else."""
        request = self._request
        if request.wants_websocket:
            heir = self._service.upgrade(self._origin(request))
            self._transport.set_protocol(heir)
            heir.connection_made(self._transport)
            heir.data_received(request.head + rest)
        elif request.headers.pop(b"upgrade", None) is not None:
            self._parser = HttpRequestParser(self)
            self.data_received(request.head + rest)
        else:  # CONNECT
            self._refuse()

    def _refuse(self) -> None:
        self._request.keep_alive = False
        self._complete.append((self._request, Reply(b"bad request\n", 400, content_type="text/plain")))
