"""JSON-RPC 2.0: one body to one answer, single calls and batches."""

import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

from devnet.api import (
    methods_access_list,
    methods_accounts,
    methods_blobs,
    methods_call,
    methods_chain,
    methods_clock,
    methods_control,
    methods_debug,
    methods_devnet,
    methods_dump,
    methods_erc20,
    methods_faults,
    methods_fees,
    methods_filters,
    methods_forks,
    methods_impersonation,
    methods_logs,
    methods_node,
    methods_outcomes,
    methods_pool,
    methods_profiles,
    methods_proof,
    methods_raw,
    methods_reorg,
    methods_simulate,
    methods_state,
    methods_subscriptions,
    methods_sync,
    methods_views,
)
from devnet.api.deferred import Deferred
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RpcError,
)
from devnet.ledger import Origin
from devnet.node import Node, Restart
from devnet.server.answers import Answer, dump, failure, id_of, settle, success
from devnet.server.injection import Injection
from devnet.server.reply import Reply
from devnet.server.shared_blocks import SharedBlocks

MAX_BATCH = 1000
METHODS = Methods(
    {
        name: function
        for table in (
            methods_access_list.METHODS,
            methods_accounts.METHODS,
            methods_blobs.METHODS,
            methods_call.METHODS,
            methods_chain.METHODS,
            methods_clock.METHODS,
            methods_control.METHODS,
            methods_debug.METHODS,
            methods_devnet.METHODS,
            methods_dump.METHODS,
            methods_erc20.METHODS,
            methods_faults.METHODS,
            methods_fees.METHODS,
            methods_filters.METHODS,
            methods_forks.METHODS,
            methods_impersonation.METHODS,
            methods_logs.METHODS,
            methods_node.METHODS,
            methods_outcomes.METHODS,
            methods_pool.METHODS,
            methods_proof.METHODS,
            methods_raw.METHODS,
            methods_profiles.METHODS,
            methods_reorg.METHODS,
            methods_simulate.METHODS,
            methods_state.METHODS,
            methods_subscriptions.METHODS,
            methods_sync.METHODS,
            methods_views.METHODS,
        )
        for name, function in table.items()
    }
)


class Dispatcher:
    """Answers bodies for one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._injection = Injection(node, self._execute, self._called)
        self._blocks = SharedBlocks(node)
        node.timeline.known = METHODS
        node.timeline.perform = self._perform
        self.on_restart: Callable[[Restart], None] = lambda _order: None

    async def respond(self, body: bytes, origin: Origin) -> Reply:
        """As `reply`, waiting for what has to be waited for."""
        reply = self.reply(body, origin, shares_block=False)
        return reply if isinstance(reply, Reply) else await reply

    def reply(self, body: bytes, origin: Origin, *, shares_block: bool = True) -> Reply | Awaitable[Reply]:
        """Answer a body that came over a connection, faults and lagging views included; at once where that can be.

        With `shares_block` a submission waits for others that come at the same time, and automine includes them together.
        A fault may make the reply take its time, or for ever: a transport that carries several requests at once awaits
        each in a task of its own.
        """
        node = self._node
        request, trouble = _parse(body)
        if trouble is not None:
            return Reply(dump(trouble))
        if node.faults.rules or node.views.nodes or origin.node is not None:
            return self._inject(request, origin)
        node.ledger.origin, node.ledger.node = origin, None
        if isinstance(request, list):
            return self._reply_to_batch(request)
        node.collecting = shares_block and self._blocks.concerns(request)
        try:
            answer = self._one(request)
        finally:
            node.collecting = False
        if answer is not None and isinstance(answer.get("result"), Deferred):
            return self._settle([answer], in_batch=False)
        reply = self._finish(Reply(None if answer is None else dump(answer)))
        return self._blocks.wait(reply) if node.collected else reply

    def _reply_to_batch(self, requests: list[object]) -> Reply | Awaitable[Reply]:
        answers = [answer for each in requests if (answer := self._one(each)) is not None]
        if any(isinstance(answer.get("result"), Deferred) for answer in answers):
            return self._settle(answers, in_batch=True)
        return self._finish(Reply(dump(answers) if answers else None))

    async def _inject(self, request: object, origin: Origin) -> Reply:
        return self._finish(await self._injection.respond(request, origin))

    async def _settle(self, answers: list[Answer], *, in_batch: bool) -> Reply:
        await settle(answers)
        return self._finish(Reply(dump(answers if in_batch else answers[0])))

    def _finish(self, reply: Reply) -> Reply:
        """Have a restart that was ordered begin when the reply is out."""
        node = self._node
        if node.restart is not None:
            order, node.restart = node.restart, None
            reply.then = partial(self.on_restart, order)
        return reply

    def _one(self, request: object) -> Answer | None:
        answer = self._execute(request)
        self._called()
        return answer

    def _called(self) -> None:
        self._node.timeline.after_call(self._node.ledger.sent)

    def _perform(self, method: str, params: object) -> object:
        """Call a method on a plan's behalf."""
        ledger = self._node.ledger
        kept = ledger.origin, ledger.node, ledger.fault, ledger.author
        ledger.origin, ledger.node, ledger.fault, ledger.author = Origin(), None, None, "order"
        try:
            return self.call(method, params)
        finally:
            ledger.origin, ledger.node, ledger.fault, ledger.author = kept

    def _execute(self, request: object) -> Answer | None:
        if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
            return failure(id_of(request), RpcError(INVALID_REQUEST, "invalid request"))
        call = cast("dict[str, object]", request)
        method = call.get("method")
        if not isinstance(method, str) or isinstance(call.get("id"), dict | list):
            return failure(id_of(call), RpcError(INVALID_REQUEST, "invalid request"))
        try:
            answer = success(call.get("id"), self.call(method, call.get("params")))
        except RpcError as error:
            answer = failure(call.get("id"), error)
        except Exception as problem:  # noqa: BLE001  (a defect of ours must not take the devnet down)
            traceback.print_exc(file=sys.stderr)
            answer = failure(call.get("id"), RpcError(INTERNAL_ERROR, f"{type(problem).__name__}: {problem}"))
        return answer if "id" in call else None

    def call(self, method: str, params: object) -> object:
        """Run one method. Raises RpcError; -32601 for a name it does not know."""
        function = METHODS.get(method)
        if function is None:
            raise RpcError(METHOD_NOT_FOUND, f"the method {method} does not exist/is not available")
        if params is None:
            params = []
        elif isinstance(params, dict):
            params = [params]
        elif not isinstance(params, list):
            raise RpcError(INVALID_PARAMS, "non-array args")
        if not self._node.collecting:
            self._blocks.make()
        result = function(self._node, Params(cast("list[object]", params)))
        self._node.mine_ready()
        return result


def _parse(body: bytes) -> tuple[object, Answer | list[Answer] | None]:
    """The request in a body: a call or a batch of some; or the answer to what is none."""
    try:
        request = json.loads(body.decode())
    except ValueError:
        return None, failure(None, RpcError(PARSE_ERROR, "parse error"))
    if isinstance(request, list) and not request:
        return None, failure(None, RpcError(INVALID_REQUEST, "empty batch"))
    if isinstance(request, list) and len(request) > MAX_BATCH:
        return None, [failure(id_of(request[0]), RpcError(INVALID_REQUEST, "batch too large"))]
    return request, None
