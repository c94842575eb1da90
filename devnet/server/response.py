"""Replies as HTTP/1.1 writes them, in good order or with the connection broken."""

import asyncio
import socket
import struct
import time
from collections.abc import Mapping
from http import HTTPStatus

from devnet.server.reply import Reply
from devnet.server.request import Request

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: closing resets the connection


class Responses:
    """Sends replies with the same headers besides their own."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._date = (0, "")

    def send(self, transport: asyncio.Transport, request: Request, reply: Reply) -> None:
        """Send the reply to a request, or do to the connection what is ordered instead."""
        if not transport.is_closing():
            if reply.cut is not None:
                self._break_off(transport, request, reply, reply.cut)
            else:
                body = b"" if reply.body is None or request.method == "HEAD" else reply.body
                transport.write(self._head(request, reply) + body)
                if not request.keep_alive:
                    transport.close()
        if reply.then is not None:
            reply.then()

    def _head(self, request: Request, reply: Reply) -> bytes:
        if reply.body is None:
            head = "HTTP/1.1 204 No Content\r\n"
        else:
            status = f"HTTP/1.1 {reply.status} {phrase(reply.status)}\r\n"
            head = f"{status}Content-Type: {reply.content_type}\r\nContent-Length: {len(reply.body)}\r\n"
        own = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items()) if reply.headers else ""
        end = "" if request.keep_alive else "Connection: close\r\n"
        return f"{head}{self._headers}{own}{end}Date: {self._present()}\r\n\r\n".encode()

    def _present(self) -> str:
        second = int(time.time())
        if second != self._date[0]:
            self._date = second, time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(second))
        return self._date[1]

    def _break_off(self, transport: asyncio.Transport, request: Request, reply: Reply, cut: int) -> None:
        """Close without a word, or send so much of the body, announced at full length, and reset the connection."""
        if not cut or reply.body is None:
            transport.abort()
            return
        transport.write(self._head(request, reply) + reply.body[:cut])
        connection: socket.socket | None = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        transport.close()


def phrase(status: int) -> str:
    """The words that go with a status."""
    return _PHRASES.get(status, "Unknown")
