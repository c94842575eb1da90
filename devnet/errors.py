"""Errors that become JSON-RPC error objects, and the one that ends a start with a sentence."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000
EXECUTION_REVERTED = 3
TRANSACTION_NOT_YET_MINED = 4  # EIP-7966: eth_sendRawTransactionSync waited in vain
CLIENT_LIMIT_EXCEEDED = -38026  # execution-apis


class RpcError(Exception):
    """An answer with `error` in place of `result`: code and text as the client is to see them."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def as_json(self) -> dict[str, object]:
        """The `error` object of a JSON-RPC 2.0 answer; `data` only where there is some."""
        body: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            body["data"] = self.data
        return body


class InvalidParams(RpcError):
    """A parameter is missing or has the wrong form (-32602)."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_PARAMS, message)


class Rejected(Exception):
    """The pool refuses a transaction. `reason` is a key of the profile's table of texts, `facts` fill its template."""

    def __init__(self, reason: str, **facts: object) -> None:
        super().__init__(reason)
        self.reason = reason
        self.facts = facts


class DecodeError(ValueError):
    """Bytes that are no transaction. The text is the one geth answers with."""


class StartError(Exception):
    """The devnet cannot start; the text is one sentence for the person who started it."""
