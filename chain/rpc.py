"""JSON-RPC calls and batches to one endpoint, over `chain.transport`: one call is one POST, never repeated.

A batch is posted in chunks. A node that refuses batches, by answering one object or by saying so, is asked in smaller
chunks, in the end one by one; the extra posts show in `posts`. Safe for sends too: the bytes are the same. After some posts
larger chunks are tried again: one odd answer of a gateway is not what the node can do.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from chain.errors import ChainError, Malformed, RpcError
from chain.submission import Verdict, classify, detail
from chain.transport import Transport

Call = tuple[str, Sequence[Any]]
"""A method and its parameters."""

Result = Any
"""A call's JSON result, or in its place an RpcError (the node's error) or Malformed (no answer in the batch)."""

MAX_BATCH = 100
POSTS_UNTIL_LARGER = 100
"""After how many posts since it last changed a chunk that was made smaller is doubled."""


class Rpc:
    """JSON-RPC to one endpoint, safe to share between threads.

    `timeout_seconds` bounds each post. Up to `max_connections` stay open: as many as a worker has threads that may ask one
    chain at once (planners, ticks, hand-overs), for a connection above it is closed after each post. Raises ValueError for something that is not an http or https URL.
    """

    def __init__(self, url: str, *, timeout_seconds: float = 10.0, max_connections: int = 32) -> None:
        self._transport = Transport(url, timeout_seconds=timeout_seconds, max_connections=max_connections)
        self.label = self._transport.label
        self._ids = itertools.count(1)
        self._chunk = MAX_BATCH
        self._chunked_at = 0

    def __repr__(self) -> str:
        return f"Rpc({self.label})"

    @property
    def posts(self) -> int:
        """How many HTTP requests were made, answered or not."""
        return self._transport.posts

    @property
    def chunk(self) -> int:
        """How many calls this endpoint takes in one post, as far as known."""
        return self._chunk

    def close(self) -> None:
        """Close all connections; further calls raise Unavailable."""
        self._transport.close()

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        """Ask one thing in one post. Raises RpcError, Unavailable, Malformed."""
        request = self._request((method, params))
        reply = self._transport.post(request)
        if not isinstance(reply, dict):
            raise Malformed(f"{self.label} answered {method} with something that is not an object")
        result = self._result(reply, request["id"], method)
        if isinstance(result, ChainError):
            raise result
        return result

    def batch(self, calls: Sequence[Call]) -> list[Result]:
        """Ask many things, in order, and answer in order; see `Result` for calls that failed alone.

        Raises Unavailable or Malformed if a post failed as a whole; what earlier chunks answered is then lost, so a
        caller that must know gives at most `chunk` calls.
        """
        results: list[Result] = []
        at = 0
        while at < len(calls):
            if self._chunk < MAX_BATCH and self.posts - self._chunked_at >= POSTS_UNTIL_LARGER:
                self._set_chunk(min(MAX_BATCH, 2 * self._chunk))
            chunk = calls[at : at + self._chunk]
            answered = self._chunk_of(chunk)
            if answered is not None:
                results += answered
                at += len(chunk)
        return results

    def _chunk_of(self, calls: Sequence[Call]) -> list[Result] | None:
        """Post one chunk. None if it must be asked again in smaller ones."""
        if len(calls) == 1:
            try:
                return [self.call(*calls[0])]
            except RpcError as error:
                return [error]
        requests = [self._request(call) for call in calls]
        reply = self._transport.post(requests)
        if isinstance(reply, list):
            refused = self._refused_whole(reply, len(calls))
            if refused is None:
                return self._match(reply, requests)
            reply = refused
        if not isinstance(reply, dict):
            raise Malformed(f"{self.label} answered a batch with something that is neither a list nor an object")
        refusal = _error_of(reply)
        if refusal is not None and classify(refusal.code, refusal.message) is Verdict.RATE_LIMITED:
            return [refusal for _ in calls]
        text = "" if refusal is None else refusal.message.lower()
        too_large = any(word in text for word in ("large", "limit", "size", "too many", "exceed", "maximum"))
        self._set_chunk(max(1, len(calls) // 2) if too_large else 1)
        return None

    def _set_chunk(self, calls: int) -> None:
        self._chunk, self._chunked_at = calls, self.posts

    @staticmethod
    def _refused_whole(reply: list[Any], count: int) -> dict[str, Any] | None:
        """A list of one error without an id for many calls is a refusal of the batch (geth's "batch too large")."""
        if count > 1 and len(reply) == 1 and isinstance(reply[0], dict) and reply[0].get("id") is None:
            return dict(reply[0]) if _error_of(reply[0]) is not None else None
        return None

    def _match(self, reply: list[Any], requests: list[dict[str, Any]]) -> list[Result]:
        by_id: dict[Any, dict[str, Any]] = {}
        known = {request["id"] for request in requests}
        for item in reply:
            key = item.get("id") if isinstance(item, dict) else None
            if type(key) is not int or key not in known or key in by_id:
                raise Malformed(f"{self.label} answered a batch with an item under an id that was not asked, or twice")
            by_id[key] = item
        return [
            self._result(by_id[request["id"]], request["id"], request["method"])
            if request["id"] in by_id
            else Malformed(f"{self.label} left {request['method']} out of its answer to a batch")
            for request in requests
        ]

    def _request(self, call: Call) -> dict[str, Any]:
        method, params = call
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": list(params)}

    def _result(self, reply: dict[str, Any], request_id: int, method: str) -> Result:
        error = _error_of(reply)
        if error is not None and reply.get("id") in (request_id, None):
            return error
        if type(reply.get("id")) is not int or reply["id"] != request_id:
            return Malformed(f"{self.label} answered {method} under another id")
        if "result" not in reply:
            return Malformed(f"{self.label} answered {method} with neither a result nor an error")
        return reply["result"]


def _error_of(reply: dict[str, Any]) -> RpcError | None:
    error = reply.get("error")
    if error is None:
        return None
    if not isinstance(error, dict):
        return RpcError(0, detail(str(error)))
    code, message = error.get("code"), error.get("message")
    return RpcError(code if type(code) is int else 0, detail(str(message or "")), error.get("data"))
