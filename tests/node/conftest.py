"""Installations whose node misbehaves: on the devnet, and on real anvil where a test says so."""

import pytest

from tests.process.conftest import install, pytest_runtest_makereport, service, shared_nodes
from tests.support.anvil import anvil_binary

__all__ = ["install", "pytest_runtest_makereport", "service", "shared_nodes"]


@pytest.fixture
def node_kind(request: pytest.FixtureRequest) -> str:
    """The devnet, unless a test asks for another node too."""
    kind = str(getattr(request, "param", "devnet"))
    if kind == "anvil":
        path, trouble = anvil_binary()
        if path is None:
            pytest.skip(trouble)
    return kind
