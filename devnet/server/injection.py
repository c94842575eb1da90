"""Carries out, on one request body, what the rules in force have decided about its calls.

A body is one HTTP request or WebSocket message. Each of its calls is judged by itself. Faults of stage `call` change that
call's answer; one of stage `request` strikes the whole body, as soon as any call in it meets it (the first one counts).
Delays add up. All calls of a body are answered by the same node.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from devnet.errors import SERVER_ERROR, RpcError
from devnet.faults.kinds import SUBMISSIONS
from devnet.faults.rulebook import Fault
from devnet.ledger import Origin, Struck
from devnet.node import Node
from devnet.server.answers import Answer, dump, failure, id_of, settle
from devnet.server.facts import Item, read
from devnet.server.faulty_call import answer_faultily, record_unseen
from devnet.server.reply import Reply
from devnet.server.response import phrase
from devnet.standpoint import seen_from
from devnet.views import View

# Orders to the devnet as a whole: the same whichever node they reach.
CONTROL = ("devnet_", "evm_", "anvil_", "hardhat_", "tenderly_")
_PAGE = "<html>\n<head><title>{title}</title></head>\n<body>\n<center><h1>{title}</h1></center>\n</body>\n</html>\n"


@dataclass(frozen=True, slots=True)
class _Judged:
    """One element of a body, and the faults of its own it meets."""

    request: object
    item: Item | None
    faults: tuple[Fault, ...] = ()


class Injection:
    """Answers bodies while there are rules or several nodes. `run` answers one call properly."""

    def __init__(self, node: Node, run: Callable[[object], Answer | None], after_call: Callable[[], None]) -> None:
        self._node = node
        self._run = run
        self._after_call = after_call

    async def respond(self, request: object, origin: Origin) -> Reply:
        """Answer one parsed body: a call, or a batch that is neither empty nor too large."""
        node = self._node
        if origin.node is not None and not node.views.has(origin.node):
            text = f"there is no node {origin.node}: devnet_nodes has made {len(node.views.nodes)}"
            return Reply(dump(failure(id_of(request), RpcError(SERVER_ERROR, text))))
        view, judged = self._judge(request, origin)
        faults = [fault for each in judged for fault in each.faults]
        struck = next((each for each in faults if each.rule.nature.stage == "request" and not _is_delay(each)), None)
        life = node.lives
        await self._wait(faults, executed=False)
        if node.lives != life:
            return Reply(b"", cut=0)
        node.ledger.origin = origin
        if struck is not None and not struck.rule.arg.executed:
            self._lose(judged, struck)
            self._after_call()
            return await _spoil(Reply(b""), struck)
        answers = [answer for each in judged if (answer := self._answer(each, view, struck)) is not None]
        await settle(answers)
        await self._wait(faults, executed=True)
        if struck is not None and struck.rule.kind == "reorder_batch":
            _reorder(answers, struck)
        body = dump(answers if isinstance(request, list) else answers[0]) if answers else None
        return Reply(body) if struck is None else await _spoil(Reply(body), struck)

    def _judge(self, request: object, origin: Origin) -> tuple[View | None, list[_Judged]]:
        node = self._node
        in_batch = isinstance(request, list)
        requests = request if isinstance(request, list) else [request]
        first = read(requests[0], origin, None, in_batch=in_batch)
        view = node.views.choose(origin, first.call.key if first else "", node.faults.seed)
        judged = []
        for each in requests:
            item = read(each, origin, view.number if view and not _is_order(each) else None, in_batch=in_batch)
            judged.append(_Judged(each, item, tuple(node.faults.decide(item.call)) if item else ()))
        return view, judged

    async def _wait(self, faults: list[Fault], *, executed: bool) -> None:
        waits = [each.rule.arg.ms for each in faults if _is_delay(each) and each.rule.arg.executed is executed]
        if waits:
            await self._node.clock.sleep(sum(waits) / 1000)

    def _lose(self, judged: list[_Judged], struck: Fault) -> None:
        self._node.ledger.fault = Struck(struck.rule.kind, struck.rule.id)
        try:
            for each in judged:
                if each.item is not None:
                    self._node.ledger.node = each.item.call.node
                    record_unseen(self._node, each.item)
        finally:
            self._node.ledger.fault = None

    def _answer(self, each: _Judged, view: View | None, struck: Fault | None) -> Answer | None:
        own = next((fault for fault in each.faults if fault.rule.nature.stage == "call"), None)
        note = struck or own or next(iter(each.faults), None)
        ledger = self._node.ledger
        ledger.fault = Struck(note.rule.kind, note.rule.id) if note else None
        ledger.node = each.item.call.node if each.item else None
        try:
            with self._standpoint(each, view):
                if own is None or each.item is None:
                    return self._run(each.request)
                return answer_faultily(self._node, each.item, own, lambda: self._run(each.request))
        finally:
            ledger.fault = None
            self._after_call()

    def _standpoint(self, each: _Judged, view: View | None) -> AbstractContextManager[None]:
        if view is None or each.item is None:
            return nullcontext()
        method = each.item.call.method
        shared = method in SUBMISSIONS and self._node.views.pool == "shared"
        return nullcontext() if shared or _is_order(each.request) else seen_from(self._node, view)


def _is_order(request: object) -> bool:
    """Whether a call addresses the devnet itself and none of its nodes."""
    return isinstance(request, dict) and str(request.get("method")).startswith(CONTROL)


def _is_delay(fault: Fault) -> bool:
    return fault.rule.kind == "delay"


def _reorder(answers: list[Answer], struck: Fault) -> None:
    """Shuffle, and where chance would leave everything in its place, turn by one."""
    before = list(answers)
    struck.random.shuffle(answers)
    if answers == before and len(answers) > 1:
        answers.append(answers.pop(0))


async def _spoil(reply: Reply, struck: Fault) -> Reply:
    """What is left of an answer. Waits for ever where none is to come."""
    arg, body = struck.rule.arg, reply.body or b""
    match struck.rule.kind:
        case "drop_before" | "drop_after":
            return Reply(b"", cut=0)
        case "hang":
            await asyncio.Event().wait()
            return reply
        case "reset_mid_body":
            return Reply(body, cut=_part(body, arg.bytes))
        case "truncate_json":
            return Reply(body[: _part(body, arg.bytes)])
        case "empty_body":
            return Reply(b"")
        case "http":
            return _status_reply(arg.status, arg.body, arg.retry_after)
        case "html":
            title = f"{arg.status} {phrase(arg.status)}"
            page = _PAGE.format(title=title) if arg.body is None else arg.body
            return Reply(page.encode(), arg.status, content_type="text/html")
        case _:  # reorder_batch has been done
            return reply


def _part(body: bytes, wanted: int | None) -> int:
    """How many bytes get through: as many as ordered or half of them, never all."""
    return max(min(len(body) // 2 if wanted is None else wanted, len(body) - 1), 0)


def _status_reply(status: int, body: str | None, retry_after: float | None) -> Reply:
    text = f"{phrase(status)}\n" if body is None else body
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    kind = "application/json" if text.startswith(("{", "[")) else "text/plain"
    return Reply(text.encode(), status, headers, kind)
