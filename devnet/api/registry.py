"""Tables of JSON-RPC methods by name; aliases share one function."""

from collections.abc import Callable
from typing import TypeAlias

from devnet.api.params import Params
from devnet.node import Node

Method: TypeAlias = Callable[[Node, Params], object]


class Methods(dict[str, Method]):
    """Names to functions, filled by decorator."""

    def named(self, *names: str) -> Callable[[Method], Method]:
        """Enter a function under these names."""

        def enter(function: Method) -> Method:
            for name in names:
                self[name] = function
            return function

        return enter
