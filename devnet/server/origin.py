"""Where a request came from, read off its HTTP head; a WebSocket's is that of its upgrade request."""

import re

from devnet.ledger import Origin
from devnet.server.request import Request

_NODE_PATH = re.compile(r"/node/(\d+)/?")


def origin_of(request: Request, connection: int) -> Origin:
    """The connection's number, the node that a path `/node/N` names, and the number in the X-Fence header if it has one."""
    return Origin(connection, _node(request.path), _fence(request.headers.get(b"x-fence")))


def known_path(path: str) -> bool:
    """Whether anything is served there: `/` and `/node/N`."""
    return path == "/" or _NODE_PATH.fullmatch(path) is not None


def _node(path: str) -> int | None:
    if path == "/":
        return None
    found = _NODE_PATH.fullmatch(path)
    return int(found[1]) if found else None


def _fence(text: bytes | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
