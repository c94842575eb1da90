"""HTTP posts of JSON to one endpoint: counted, never repeated, never redirected.

An endpoint that answers 429 or 503 with Retry-After is left alone for so long (at most MAX_REST_SECONDS): posts then fail
without being made.

What it does not do, on purpose: no retries (a send that is posted twice is two sends; web3.py's default posts one up to
five times), no redirects (the body would go to another host), no proxies (urllib3 reads no `HTTP_PROXY` or `NO_PROXY`;
use a local forwarder as the endpoint), no cookies. TLS certificates are checked against the system's authorities.
"""

import json
import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3
from urllib3.util import Timeout, make_headers, parse_url

from chain.errors import Malformed, Unavailable
from chain.nesting import is_too_deep
from chain.submission import detail

MAX_BODY = 64 << 20
"""The longest answer that is read, in bytes."""
MAX_REST_SECONDS = 60.0
"""How long an endpoint is left alone at most, whatever it asks for."""


def label_of(url: str) -> str:
    """Name an endpoint for people: host and port, without user, path and query, which may hold keys.

    Raises ValueError, without repeating the text, if it is no http or https URL.
    """
    try:
        parsed = parse_url(url)
    except ValueError:
        parsed = None
    if parsed is None or parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError("an endpoint is an http:// or https:// URL with a host")
    return parsed.host if parsed.port is None else f"{parsed.host}:{parsed.port}"


class Transport:
    """A connection pool to one endpoint, safe to share between threads.

    `timeout_seconds` bounds a post: connecting, and then the whole of the answer. `posts` is the number of HTTP
    requests made so far. Raises ValueError for something that is not an http or https URL.
    """

    def __init__(self, url: str, *, timeout_seconds: float, max_connections: int) -> None:
        self.label = label_of(url)
        parsed = parse_url(url)
        self._path = parsed.request_uri
        self._timeout_seconds = timeout_seconds
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        if parsed.auth:
            self._headers |= make_headers(basic_auth=parsed.auth)
        kind = urllib3.HTTPSConnectionPool if parsed.scheme == "https" else urllib3.HTTPConnectionPool
        self._pool = kind(str(parsed.host).strip("[]"), parsed.port, maxsize=max_connections)
        self._lock = threading.Lock()
        self._resting_until = 0.0
        self.posts = 0

    def __repr__(self) -> str:
        return f"Transport({self.label})"

    def close(self) -> None:
        """Close all connections; further posts raise Unavailable."""
        self._pool.close()

    def post(self, body: Any) -> Any:
        """Post one JSON value and return the JSON value that answers it.

        Raises Unavailable (no answer, an HTTP error, a redirect, too long, too slow, asked to wait) and Malformed (not JSON).
        """
        rest = self._resting_until - time.monotonic()
        if rest > 0:
            raise Unavailable(f"{self.label} asked us to wait: not asked for another {rest:.0f} s", status=429)
        with self._lock:
            self.posts += 1
        until = time.monotonic() + self._timeout_seconds
        try:
            response = self._pool.request(
                "POST",
                self._path,
                body=json.dumps(body, separators=(",", ":")).encode(),
                headers=self._headers,
                timeout=Timeout(connect=self._timeout_seconds, read=self._timeout_seconds),
                redirect=False,
                retries=False,
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unavailable(f"{self.label} did not answer ({_cause(error)})") from None
        try:
            raw = self._read(response, until)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            response.close()
            raise Unavailable(f"{self.label} broke off its answer ({_cause(error)})", status=response.status) from None
        response.release_conn()
        if response.status in (429, 503):
            self._resting_until = time.monotonic() + _rest_seconds(response.headers.get("Retry-After"))
        return self._parse(response.status, raw)

    def _read(self, response: urllib3.BaseHTTPResponse, until: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        while part := response.read1(1 << 16):
            parts.append(part)
            size += len(part)
            if size > MAX_BODY or time.monotonic() > until:
                response.close()
                why = f"is larger than {MAX_BODY >> 20} MiB" if size > MAX_BODY else "took too long"
                raise Unavailable(f"the answer of {self.label} {why}", status=response.status)
        return b"".join(parts)

    def _parse(self, status: int, raw: bytes) -> Any:
        if status == 429 or 300 <= status < 400:
            what = "sent us elsewhere" if 300 <= status < 400 else "answered"
            raise Unavailable(f"{self.label} {what} with HTTP status {status}", status=status)
        try:
            reply = None if is_too_deep(raw) else json.loads(raw)
        except (ValueError, RecursionError):
            reply = None
        if status != 200 and not (is_refusal(reply) or (status < 500 and is_error(reply))):
            raise Unavailable(f"{self.label} answered with HTTP status {status}", status=status)
        if reply is None:
            raise Malformed(
                f"{self.label} answered something that is not JSON-RPC: {detail(raw[:80].decode(errors='replace'))}"
            )
        return reply


def is_error(reply: Any) -> bool:
    """Say whether this looks like the error answer of JSON-RPC."""
    return isinstance(reply, dict) and reply.get("error") is not None


def is_refusal(reply: Any) -> bool:
    """Say whether a JSON-RPC server wrote this error, or a list of them, rather than a gateway before it: it has a code."""
    if isinstance(reply, list):
        return bool(reply) and all(isinstance(item, dict) and is_refusal(item) for item in reply)
    return is_error(reply) and isinstance(reply["error"], dict) and type(reply["error"].get("code")) is int


def _rest_seconds(asked: str | None) -> float:
    """What a Retry-After header asks for, as a number of seconds or as a date; 0 for none or nonsense."""
    if asked is None:
        return 0.0
    try:
        seconds = float(asked) if asked.isdecimal() else _until(parsedate_to_datetime(asked))
    except (ValueError, TypeError):
        return 0.0
    return min(max(seconds, 0.0), MAX_REST_SECONDS)


def _until(date: datetime) -> float:
    return (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


def _cause(error: BaseException) -> str:
    """A class name tells enough: urllib3's texts repeat the URL with its secrets."""
    while (
        isinstance(error, urllib3.exceptions.ProtocolError)
        and len(error.args) > 1
        and isinstance(error.args[1], Exception)
    ):
        error = error.args[1]
    return type(error).__name__
