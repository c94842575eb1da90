"""Finds the file of a plan's module without importing it, for the revision of a strategy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from executor.errors import ConfigError


def module_source(plan: str, search_path: Path) -> bytes:
    """The bytes of the module file that `plan` ("module.path:function") names, searched as the child will.

    The strategies' directory comes first, then this interpreter's path. Nothing is imported, no parent package either.

    Raises:
        ConfigError: there is no such module, or it is not a Python file, or it cannot be read.
    """
    name = plan.partition(":")[0]
    places: Sequence[Path] = [search_path, *map(Path, sys.path)]
    file: Path | None = None
    for part in name.split("."):
        file, places = _find(part, places)
    if file is None:
        raise ConfigError(
            f'There is no Python file for the module "{name}" of the plan {plan}; create it or correct the name.'
        )
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"The module {name} of the plan {plan} cannot be read ({error.strerror}); correct its mode."
        ) from None


def _find(part: str, places: Sequence[Path]) -> tuple[Path | None, Sequence[Path]]:
    """The file of one module and where its submodules are: a package or module wins over directories without one."""
    portions = []
    for place in places:
        package = place / part
        if (package / "__init__.py").is_file():
            return package / "__init__.py", [package]
        if (place / f"{part}.py").is_file():
            return place / f"{part}.py", []
        if package.is_dir():
            portions.append(package)
    return None, portions
