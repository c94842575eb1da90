"""Results that are still to come when a method returns: the answer waits for them, and nobody else does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deferred:
    """Stands for a result. `wait` gives it, or raises RpcError."""

    wait: Callable[[], Awaitable[object]]
