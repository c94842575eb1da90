"""Where the devnet listens and what it refuses before a body is looked at, in geth's words (go-ethereum rpc/http.go)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devnet.server.origin import known_path
from devnet.server.reply import Reply
from devnet.server.request import Request

MAX_BODY = 5 * 1024 * 1024  # geth's limit, in bytes
_TYPES = frozenset({"application/json", "application/json-rpc", "application/jsonrequest"})
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Listener:
    """Addresses, one port for all of them (0: a free one each), and a Unix socket where one is named.

    `allow_origin` is what CORS headers say, None leaves them out; `max_body` is in bytes, None for no limit.
    """

    hosts: Sequence[str] = ("127.0.0.1",)
    port: int = 8545
    ipc_path: Path | None = None
    allow_origin: str | None = "*"
    max_body: int | None = MAX_BODY

    def headers(self) -> Mapping[str, str]:
        """The CORS headers of every answer."""
        if self.allow_origin is None:
            return {}
        return {
            "Access-Control-Allow-Origin": self.allow_origin,
            "Access-Control-Allow-Headers": "*",
            "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
        }

    def refusal(self, request: Request) -> Reply | None:
        """The answer to a request that carries no body to answer; None for one that does."""
        if not known_path(request.path):
            return _text(404, "404 page not found")
        if request.method == "OPTIONS":
            return Reply(None)
        if request.method in {"GET", "HEAD"} and not request.length and b"?" not in request.url:
            return Reply(b"", content_type=_TEXT)  # a health check
        if request.method != "POST":
            return _text(405, "method not allowed")
        if self.max_body is not None and request.length > self.max_body:
            return _text(413, f"content length too large ({request.length}>{self.max_body})")
        if request.content_type not in _TYPES:
            return _text(415, "invalid content type, only application/json is supported")
        return None

    def overflow(self, request: Request) -> Reply | None:
        """The answer to a request whose body turned out to be above the limit without saying so before; None for others."""
        if self.max_body is None or request.size <= self.max_body:
            return None
        return _text(413, "http: request body too large")


def _text(status: int, text: str) -> Reply:
    return Reply(f"{text}\n".encode(), status, content_type=_TEXT)
