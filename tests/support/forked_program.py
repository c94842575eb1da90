"""What the server that workers are forked from imports, once: the program, with nothing left for their collectors of garbage to look at."""

import gc
from importlib import import_module

for name in ("executor.app", "executor.config", "alembic.command", "tests.support.worker_process"):
    import_module(name)
gc.collect()
gc.freeze()
