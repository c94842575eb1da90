"""A request over HTTP."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Request:
    """What its head says, header names in lower case, and its body. `size` is how long that body turned out to be."""

    url: bytes = b""
    method: str = ""
    headers: dict[bytes, bytes] = field(default_factory=dict)
    keep_alive: bool = True
    size: int = 0
    parts: list[bytes] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The path without what follows a question mark."""
        return "/" if self.url == b"/" else self.url.partition(b"?")[0].decode("latin-1")

    @property
    def length(self) -> int:
        """The length of the body as announced, 0 where nothing is."""
        return int(self.headers.get(b"content-length", 0))

    @property
    def content_type(self) -> str:
        """The kind of body in lower case, without parameters."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")

    @property
    def body(self) -> bytes:
        """The whole body."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    @property
    def wants_websocket(self) -> bool:
        """Whether it asks to go on as a WebSocket."""
        return self.headers.get(b"upgrade", b"").lower() == b"websocket"

    @property
    def head(self) -> bytes:
        """The head as it may have come, for another to read it again."""
        lines = [b"%b %b HTTP/1.1" % (self.method.encode(), self.url)]
        lines += [b"%b: %b" % header for header in self.headers.items()]
        return b"\r\n".join(lines) + b"\r\n\r\n"
