"""The wider bounds run only where they are asked for (`make model`)."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect model_full unless a marker expression names it."""
    if "model_full" in (config.option.markexpr or ""):
        return
    wide = [item for item in items if item.get_closest_marker("model_full")]
    if wide:
        config.hook.pytest_deselected(items=wide)
        items[:] = [item for item in items if item not in wide]
