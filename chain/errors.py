"""What can go wrong between us and a chain, by what the caller should do.

    ChainError
    ├── Unavailable          the endpoint did not answer: a read may be tried again, a send is "maybe sent"
    ├── Malformed            it answered something that is not an answer: try another endpoint
    ├── RpcError             it answered with an error object: code, message and data as the node gave them
    ├── WrongChain           it serves another chain than the one configured: stop
    ├── Inconsistent         two answers that cannot both be true: stop and ask a person
    └── InvalidTransaction   a transaction no node could accept, refused before it exists (a ValueError too)

Messages name an endpoint by its label (host and port), never by its URL: paths and user names carry keys.
"""

from typing import Any


class ChainError(Exception):
    """Anything that went wrong with a chain."""


class Unavailable(ChainError):
    """No usable answer came: time-out, refused connection, HTTP status, body too large.

    `status` is the HTTP status if there was one, or the one that asked us to wait.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Malformed(ChainError):
    """The answer is not JSON-RPC, or not of the shape the method promises."""


class RpcError(ChainError):
    """The node's own error object. In a batch it is a value in its place, in a single call it is raised."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"the node answered error {code}: {message}")
        self.code = code
        self.message = message
        self.data = data


class WrongChain(ChainError):
    """The endpoint's chain id is not the configured one."""


class Inconsistent(ChainError):
    """Endpoints contradict each other about something that cannot change, such as the genesis block."""


class InvalidTransaction(ChainError, ValueError):
    """A field is out of range or of the wrong type, or encoded bytes are not canonical."""
