from __future__ import annotations

import inspect

from executor import errors


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    found = {
        name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.ExecutorError)
    }
    assert found == {"ExecutorError", "ConfigError", "NotFine", "Unreachable", "FenceLost", "StaleState", "Conflict"}
    assert all(name in (errors.__doc__ or "") for name in found)


def test_exit_codes() -> None:
    codes = (errors.ConfigError.exit_code, errors.NotFine.exit_code, errors.Unreachable.exit_code)
    assert codes == (2, 1, 3)
