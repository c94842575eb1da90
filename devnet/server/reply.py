"""What goes back over a connection for one request body: normally its JSON, after a fault also less, later or else."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Reply:
    """The answer to one body, for any transport to carry out.

    `body` None: there is nothing to say (notifications only). `cut` breaks the connection after so many bytes of the
    body, 0 before the first one; None leaves it alone. `status`, `headers` and `content_type` are HTTP's; a WebSocket
    sends `body` as it is, and where `status` is no success it closes the connection instead (1013, try again later).
    `then` is to be called when the body has been written.
    """

    body: bytes | None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    cut: int | None = None
    then: Callable[[], None] | None = None
