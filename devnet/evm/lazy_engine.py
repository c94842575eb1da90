"""The py-evm engine, imported when the first code runs: a devnet that only moves value starts a second sooner."""

import os
from contextlib import nullcontext

from devnet.evm.engine import BlockContext, Engine, Execution, Message
from devnet.evm.tracing import Watch
from devnet.evm.world import World


class LazyEngine:
    """Engine that becomes PyEvm on first use, one that compiles what runs often or not."""

    def __init__(self, *, compiles: bool = True) -> None:
        self._compiles = compiles
        self._engine: Engine | None = None

    def execute(self, world: World, block: BlockContext, message: Message, watch: Watch | None = None) -> Execution:
        """Run a message; see Engine.execute. Loading takes a second or more, which no deadline counts."""
        if self._engine is None:
            with watch.deadline.paused() if watch and watch.deadline else nullcontext():
                # eth-hash takes its backend when it is imported, and by itself a much slower one.
                os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")
                from devnet.evm.pyevm import COMPILE_AFTER, PyEvm

                self._engine = PyEvm(COMPILE_AFTER if self._compiles else None)
        return self._engine.execute(world, block, message, watch)
