"""Answer objects of JSON-RPC 2.0."""

import json
from collections.abc import Iterable, Sequence

from devnet.api.deferred import Deferred
from devnet.errors import RpcError

Answer = dict[str, object]
_encode = json.JSONEncoder(separators=(",", ":")).encode


def failure(call_id: object, error: RpcError) -> Answer:
    """An answer with an error."""
    return {"jsonrpc": "2.0", "id": call_id, "error": error.as_json()}


def success(call_id: object, result: object) -> Answer:
    """An answer with a result."""
    return {"jsonrpc": "2.0", "id": call_id, "result": result}


def id_of(request: object) -> object:
    """The id of a call, null where it has none or one that is neither number nor text."""
    found = request.get("id") if isinstance(request, dict) else None
    return None if isinstance(found, dict | list) else found


async def settle(answers: Iterable[Answer]) -> None:
    """Wait for the results that are still to come."""
    for answer in answers:
        result = answer.get("result")
        if isinstance(result, Deferred):
            try:
                answer["result"] = await result.wait()
            except RpcError as error:
                del answer["result"]
                answer["error"] = error.as_json()


def dump(answer: Answer | Sequence[Answer]) -> bytes:
    """The bytes of an answer or of a batch of them."""
    return _encode(answer).encode()
