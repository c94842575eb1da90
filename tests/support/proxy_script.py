"""What a node or its provider does wrong, one rule a line: `on("eth_sendRawTransaction").times(2).hide_reply()`.

A rule says which calls (method and parameters, then `after`, `every`, `times`) and what becomes of them. Some things
happen to one call of a batch (an error, a forged result), some only to a whole post (an HTTP status, a lost reply).
"""

import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Self

import rlp
from eth_account import Account

from chain.keccak import keccak

SEND = "eth_sendRawTransaction"
Call = dict[str, Any]
Answer = dict[str, Any]
Forward = Callable[[Call], Answer]


class Ending(Enum):
    """How a connection goes on after a post."""

    KEPT = auto()
    CLOSED = auto()
    """Closed, after whatever was written."""
    RESET = auto()
    """RST instead of FIN."""
    SILENT = auto()
    """Open, and nothing is ever written."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes over the wire. `told_length` is the content length where that is a lie."""

    body: bytes = b""
    status: int = 200
    headers: tuple[str, ...] = ("Content-Type: application/json",)
    ending: Ending = Ending.KEPT
    told_length: int | None = None


@dataclass(frozen=True, slots=True)
class ForCall:
    """What becomes of one call, apart from the others of its post. `reaches` says whether the node gets it."""

    act: Callable[[Call, Forward], Answer]
    reaches: bool = True
    last_first: bool = False


@dataclass(frozen=True, slots=True)
class ForPost:
    """What becomes of the post that a call is in: the node's answer (empty unless it `reaches`) made into a reply."""

    make: Callable[[bytes], Reply]
    reaches: bool


Action = ForCall | ForPost


def on(*methods: str) -> "Rule":
    """A rule for calls of these methods; without one, for every post whatever is in it (all its calls alike)."""
    return Rule(methods)


class Rule:
    """Built by one selecting and one acting line. `fired` is how often it acted so far."""

    def __init__(self, methods: tuple[str, ...]) -> None:
        self.fired = 0
        self.action: Action = ForCall(lambda call, forward: forward(call))
        self.before: Callable[[Call], object] = lambda _: None
        self._methods = methods
        self._tests: list[Callable[[Call], bool]] = []
        self._after, self._every, self._times = 0, 1, -1
        self._seen = 0
        self._lock = threading.Lock()

    @property
    def for_post(self) -> bool:
        """Whether it decides for whole posts, and so counts posts and not calls."""
        return not self._methods or isinstance(self.action, ForPost)

    def matches(self, call: Call) -> bool:
        """Whether this call is one that the rule counts."""
        return (not self._methods or call["method"] in self._methods) and all(test(call) for test in self._tests)

    def take(self) -> bool:
        """Count one call, or one post where the rule is for whole posts; whether the rule acts on it."""
        with self._lock:
            self._seen += 1
            place = self._seen - self._after
            if place <= 0 or place % self._every or self.fired == self._times:
                return False
            self.fired += 1
            return True

    # Which

    def times(self, count: int) -> Self:
        """Act so often, then never again."""
        self._times = count
        return self

    def after(self, count: int) -> Self:
        """Let so many pass first."""
        self._after = count
        return self

    def every(self, count: int) -> Self:
        """Act on each `count`-th only."""
        self._every = count
        return self

    def sometimes(self, share: float, dice: random.Random) -> Self:
        """Only this share of the calls, by chance: counted with `every`, a batch of a fitting size lost the same ones each time."""
        return self.where(lambda _: dice.random() < share)

    def where(self, test: Callable[[Call], bool]) -> Self:
        """Only calls for which this is true."""
        self._tests.append(test)
        return self

    def param(self, index: int, value: object) -> Self:
        """Only calls with this parameter."""
        return self.where(lambda call: call["params"][index] == value)

    def nonce(self, nonce: int) -> Self:
        """Only raw transactions of this nonce."""
        return self.where(lambda call: nonce_of(raw_of(call)) == nonce)

    def sender(self, address: bytes) -> Self:
        """Only raw transactions of this account."""
        return self.where(lambda call: sender_of(raw_of(call)) == address)

    # What: one call

    def do(self, callback: Callable[[Call], object]) -> Self:
        """Call this before anything else happens to the call (and go on as the rest of the rule says)."""
        self.before = callback
        return self

    def error(self, code: int, message: str, data: object = None, *, forward: bool = False) -> Self:
        """Answer with an error; with `forward` the node does what it was asked nevertheless."""
        told = {"code": code, "message": message} | ({} if data is None else {"data": data})
        return self.error_object(told, forward=forward)

    def error_object(self, told: object, *, forward: bool = False) -> Self:
        """Answer with this as the error, whatever its shape."""

        def act(call: Call, give: Forward) -> Answer:
            if forward:
                give(call)
            return {"jsonrpc": "2.0", "id": call["id"], "error": told}

        return self._set(ForCall(act, forward))

    def answer(self, result: object) -> Self:
        """Answer with this result; the node hears nothing of it."""
        return self._set(ForCall(lambda call, _: _answer(call, result), reaches=False))

    def forge(self, change: Callable[[Any], Any]) -> Self:
        """Let `change` make the result out of the node's."""

        def act(call: Call, give: Forward) -> Answer:
            true = give(call)
            return true if "result" not in true else true | {"result": change(true["result"])}

        return self._set(ForCall(act))

    def forget(self) -> Self:
        """Answer a transaction with its hash and do not tell the node (a mempool that forgets)."""
        return self._set(ForCall(lambda call, _: _answer(call, "0x" + keccak(raw_of(call)).hex()), reaches=False))

    def wrong_id(self, change: Callable[[Any], Any] = lambda true: true + 1_000_000) -> Self:
        """Answer under another id."""
        return self._set(ForCall(lambda call, give: give(call) | {"id": change(call["id"])}))

    def duplicate(self) -> Self:
        """Give it to the node twice; the second answer counts."""
        return self._set(ForCall(lambda call, give: [give(call), give(call)][1]))

    def reorder(self) -> Self:
        """Give the calls of a post to the node one by one, the last first."""
        return self._set(ForCall(lambda call, give: give(call), last_first=True))

    def delay(self, seconds: float) -> Self:
        """Give it to the node so much later than the rest of its post."""
        return self._set(ForCall(lambda call, give: (time.sleep(seconds), give(call))[1]))

    def hold(self, until: threading.Event, seconds: float = 30.0) -> Self:
        """Give it to the node when `until` is set, or after `seconds`."""
        return self._set(ForCall(lambda call, give: (until.wait(seconds), give(call))[1]))

    def stale(self, blocks: int) -> Self:
        """Answer reads as a node that is so many blocks behind; sends go through."""
        return self._set(ForCall(lambda call, give: _stale(call, give, blocks)))

    # What: the whole post

    def hide_reply(self) -> Self:
        """Let the node have it and close the connection without an answer."""
        return self._set(ForPost(lambda _: Reply(ending=Ending.CLOSED), reaches=True))

    def refuse(self) -> Self:
        """Close the connection without an answer; the node hears nothing of it."""
        return self._set(ForPost(lambda _: Reply(ending=Ending.CLOSED), reaches=False))

    def silence(self, *, forward: bool = True) -> Self:
        """Never answer."""
        return self._set(ForPost(lambda _: Reply(ending=Ending.SILENT), forward))

    def reset(self, *, forward: bool) -> Self:
        """Reset the connection, before or after the node had it."""
        return self._set(ForPost(lambda _: Reply(ending=Ending.RESET), forward))

    def http(self, status: int, body: bytes = b"", *headers: str, forward: bool = False) -> Self:
        """Answer with this status and body."""
        return self._set(ForPost(lambda _: Reply(body, status, headers), forward))

    def too_many(self, retry_after: str | None = None) -> Self:
        """HTTP 429, with `Retry-After` if that is given."""
        return self.http(429, b"slow down", *([] if retry_after is None else [f"Retry-After: {retry_after}"]))

    def html(self, status: int = 200, *, forward: bool = False) -> Self:
        """A gateway's page."""
        return self.http(
            status, b"<html><body>502 Bad Gateway</body></html>", "Content-Type: text/html", forward=forward
        )

    def status(self, status: int) -> Self:
        """The node's own answer under another HTTP status."""
        return self._set(ForPost(lambda body: Reply(body, status), reaches=True))

    def truncate(self) -> Self:
        """Half of the node's answer, as if that were all."""
        return self._set(ForPost(lambda body: Reply(body[: len(body) // 2]), reaches=True))

    def break_off(self) -> Self:
        """The headers and half of the node's answer, then a reset."""

        def make(body: bytes) -> Reply:
            return Reply(body[: len(body) // 2], ending=Ending.RESET, told_length=len(body))

        return self._set(ForPost(make, reaches=True))

    def _set(self, action: Action) -> Self:
        self.action = action
        return self


def raw_of(call: Call) -> bytes:
    """The raw transaction of a send."""
    return bytes.fromhex(call["params"][0][2:])


def nonce_of(raw: bytes) -> int:
    """The nonce in the bytes (type 2 only)."""
    return int.from_bytes(rlp.decode(raw[1:])[1], "big")


def sender_of(raw: bytes) -> bytes:
    """Who signed the bytes."""
    return bytes.fromhex(Account.recover_transaction(raw)[2:])


def _answer(call: Call, result: object) -> Answer:
    return {"jsonrpc": "2.0", "id": call["id"], "result": result}


def _stale(call: Call, give: Forward, blocks: int) -> Answer:
    if call["method"] == SEND:
        return give(call)
    newest = int(give(call | {"method": "eth_blockNumber", "params": []})["result"], 16)
    at = max(0, newest - blocks)
    if call["method"] == "eth_blockNumber":
        return _answer(call, hex(at))
    params = [hex(at) if item in ("latest", "pending") else item for item in call["params"]]
    given = give(call | {"params": params})
    found = given.get("result")
    number = (found.get("number") or found.get("blockNumber")) if isinstance(found, dict) else None
    return given if number is None or int(number, 16) <= at else _answer(call, None)


def parsed(body: bytes) -> tuple[list[Call], bool]:
    """The calls of a post, and whether they came as a batch."""
    found = json.loads(body)
    return (found, True) if isinstance(found, list) else ([found], False)
