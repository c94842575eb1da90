"""JSON-RPC 2.0: one body to one answer, single calls and batches."""

import json
import sys
import traceback
from typing import cast

from devnet.api import (
    methods_chain,
    methods_control,
    methods_devnet,
    methods_fees,
    methods_filters,
    methods_logs,
    methods_pool,
    methods_state,
)
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
from devnet.node import Node

MAX_BATCH = 1000
METHODS = Methods(
    {
        name: function
        for table in (
            methods_chain.METHODS,
            methods_control.METHODS,
            methods_devnet.METHODS,
            methods_fees.METHODS,
            methods_filters.METHODS,
            methods_logs.METHODS,
            methods_pool.METHODS,
            methods_state.METHODS,
        )
        for name, function in table.items()
    }
)
Answer = dict[str, object]


class Dispatcher:
    """Answers bodies for one node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def answer(self, body: bytes) -> bytes | None:
        """The answer's bytes; None where nothing is to be answered (notifications only)."""
        try:
            request = json.loads(body)
        except ValueError:
            return _dump(_failure(None, RpcError(PARSE_ERROR, "parse error")))
        if not isinstance(request, list):
            single = self._one(request)
            return None if single is None else _dump(single)
        if not request:
            return _dump(_failure(None, RpcError(INVALID_REQUEST, "empty batch")))
        if len(request) > MAX_BATCH:
            return _dump([_failure(_id_of(request[0]), RpcError(INVALID_REQUEST, "batch too large"))])
        answers = [answer for item in request if (answer := self._one(item)) is not None]
        return _dump(answers) if answers else None

    def _one(self, request: object) -> Answer | None:
        if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
            return _failure(_id_of(request), RpcError(INVALID_REQUEST, "invalid request"))
        call = cast("dict[str, object]", request)
        method = call.get("method")
        if not isinstance(method, str):
            return _failure(call.get("id"), RpcError(INVALID_REQUEST, "invalid request"))
        answer: Answer
        try:
            answer = {"jsonrpc": "2.0", "id": call.get("id"), "result": self.call(method, call.get("params"))}
        except RpcError as error:
            answer = _failure(call.get("id"), error)
        except Exception as problem:  # noqa: BLE001  (a defect of ours must not take the devnet down)
            traceback.print_exc(file=sys.stderr)
            answer = _failure(call.get("id"), RpcError(INTERNAL_ERROR, f"{type(problem).__name__}: {problem}"))
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
        return function(self._node, Params(cast("list[object]", params)))


def _id_of(request: object) -> object:
    return request.get("id") if isinstance(request, dict) else None


def _failure(call_id: object, error: RpcError) -> Answer:
    return {"jsonrpc": "2.0", "id": call_id, "error": error.as_json()}


def _dump(answer: Answer | list[Answer]) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()
