"""A node in this process under the face of one that is not: no start to wait for, and py-evm is imported once for all."""

from typing import Any

from devnet.api.params import Params
from devnet.command_line import parse, settings_of
from devnet.node import Node
from devnet.server.rpc import METHODS


class InProcess:
    """A devnet with these flags, without its server and its clock's timers; `rpc` raises RpcError."""

    def __init__(self, *flags: str) -> None:
        self.node = Node(settings_of(parse(flags)))

    def rpc(self, method: str, *params: Any) -> Any:
        return METHODS[method](self.node, Params(list(params)))
