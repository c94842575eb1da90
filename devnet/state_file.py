"""The chain in a file from one run to the next: what --state, --load-state and --dump-state name."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devnet.api.state_dump import StateError, dump_state, load_state, read_dump
from devnet.errors import StartError
from devnet.node import Node

DEFAULT_NAME = "state.json"


@dataclass(frozen=True, slots=True)
class StateFile:
    """Where the chain comes from and where it goes; None for neither. With `optional` the source may be missing."""

    source: Path | None
    target: Path | None
    optional: bool = False

    @classmethod
    def of(cls, both: str | None, source: str | None, target: str | None) -> Self:
        """Of the three flags; a directory stands for `state.json` in it, as with anvil."""
        if both is not None:
            path = _in_directory(Path(both))
            return cls(path, path, optional=True)
        return cls(
            None if source is None else _in_directory(Path(source)),
            None if target is None else _in_directory(Path(target)),
        )

    def load_into(self, node: Node) -> None:
        """Begin with the chain of the file. Raises StartError where it cannot be read or is no state file."""
        if self.target is not None and not self.target.parent.is_dir():
            raise StartError(f"cannot write {self.target}: there is no directory {self.target.parent}")
        if self.source is None or (self.optional and not self.source.exists()):
            return
        try:
            content = self.source.read_bytes()
        except OSError as problem:
            raise StartError(f"cannot read {self.source}: {problem.strerror or problem}") from None
        try:
            load_state(node, read_dump(content))
        except StateError as problem:
            raise StartError(f"{self.source} is no state file of anvil's format: {problem}") from None

    def dump(self, node: Node) -> None:
        """Write the chain to the file, all or nothing. Raises StartError where it cannot be written."""
        if self.target is None:
            return
        try:
            with tempfile.NamedTemporaryFile("w", dir=self.target.parent, delete=False) as file:
                json.dump(dump_state(node), file)
            Path(file.name).replace(self.target)
        except OSError as problem:
            raise StartError(f"cannot write {self.target}: {problem.strerror or problem}") from None


def _in_directory(path: Path) -> Path:
    return path / DEFAULT_NAME if path.is_dir() else path
