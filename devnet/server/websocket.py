"""The WebSocket on the port of HTTP, by aiohttp: one message a JSON-RPC body, answers and notifications as text."""

import asyncio
from collections.abc import AsyncIterator

from aiohttp import WSCloseCode, WSMsgType, web

from devnet.node import Node
from devnet.server.session import Respond, Session

MAX_MESSAGE = 64 * 1024 * 1024


def websocket_protocol(node: Node, respond: Respond, calls: set[asyncio.Task[None]]) -> asyncio.Protocol:
    """What a connection goes on with when it has asked for a WebSocket: upgrades it and serves it until it ends."""

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE, compress=False)
        await socket.prepare(request)
        await Session(node, respond, _WebSocketWire(socket, request.transport), calls).run(_bodies(socket))
        return socket

    return web.Server(serve)()


async def _bodies(socket: web.WebSocketResponse) -> AsyncIterator[bytes]:
    async for message in socket:
        if message.type is WSMsgType.TEXT:
            yield message.data.encode()
        elif message.type is WSMsgType.BINARY:
            yield message.data


class _WebSocketWire:
    """Text frames, uncompressed as geth's."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self._socket = socket
        self._transport = transport

    async def send(self, message: bytes) -> None:
        if not self._socket.closed:
            try:
                await self._socket.send_frame(message, WSMsgType.TEXT)
            except ConnectionError:
                self.cut()

    async def close(self) -> None:
        await self._socket.close(code=WSCloseCode.TRY_AGAIN_LATER)

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def tear(self, message: bytes, count: int) -> None:
        if self._transport is not None:
            if count:
                self._transport.write(_frame_head(len(message)) + message[:count])
            self._transport.close()


def _frame_head(size: int) -> bytes:
    """The head of an unmasked, final text frame (RFC 6455, section 5.2)."""
    if size < 126:
        return bytes([0x81, size])
    if size < 2**16:
        return bytes([0x81, 126]) + size.to_bytes(2, "big")
    return bytes([0x81, 127]) + size.to_bytes(8, "big")
