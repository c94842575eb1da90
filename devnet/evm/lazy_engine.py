"""The py-evm engine, imported when the first code runs: a devnet that only moves value starts a second sooner."""

from devnet.evm.engine import BlockContext, Engine, Execution, Message
from devnet.evm.world import World


class LazyEngine:
    """Engine that becomes PyEvm on first use."""

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def execute(self, world: World, block: BlockContext, message: Message) -> Execution:
        """Run a message; see Engine.execute."""
        if self._engine is None:
            from devnet.evm.pyevm import PyEvm

            self._engine = PyEvm()
        return self._engine.execute(world, block, message)
