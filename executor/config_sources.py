"""Reads `fenced.toml` and what it refers to: any value may be `{ file = … }` or `{ env = … }`.

Texts read that way are remembered, so that no error sentence can quote one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from executor.config_values import Referenced
from executor.errors import ConfigError

MAX_REFERENCE_BYTES: Final = 256 * 1024


@dataclass
class Sources:
    """Resolves references relative to `directory`, with `environment` for `{ env = … }`."""

    directory: Path
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    referenced: list[str] = field(default_factory=list, repr=False)

    def resolve(self, value: Any, path: tuple[str, ...] = ()) -> Any:
        """`value` with every reference replaced by its text.

        A strategy's `input` keeps its file (it is read when an execution is made), and `params` is a table, never
        a reference.

        Raises:
            ConfigError: a file cannot be read or a variable is not set.
        """
        if isinstance(value, list):
            return [self.resolve(item, (*path, str(at))) for at, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        of_strategy = path[2] if len(path) == 3 and path[0] == "strategies" else ""
        if of_strategy == "input":
            return value
        if of_strategy != "params" and len(value) == 1:
            ((key, target),) = value.items()
            if key in {"file", "env"} and isinstance(target, str):
                return self._read(key, target, ".".join(path))
        return {key: self.resolve(item, (*path, key)) for key, item in value.items()}

    def mentions_reference(self, sentence: str) -> bool:
        """Whether `sentence` quotes a text that came from a file or the environment."""
        return any(text[:37] in sentence for text in self.referenced if len(text) >= 8)

    def _read(self, kind: str, target: str, path: str) -> Referenced:
        if kind == "env":
            text = self.environment.get(target, "")
            if not text:
                raise ConfigError(f"{path}: the environment variable {target} is not set; set it.")
        else:
            text = self._file(target, path)
        self.referenced.append(text)
        return Referenced(text)

    def _file(self, target: str, path: str) -> str:
        file = self.directory / Path(target).expanduser()
        try:
            raw = file.read_bytes()
            text = raw.decode("utf-8").rstrip("\r\n")
        except OSError as error:
            raise ConfigError(
                f"{path}: the file {target} cannot be read ({error.strerror}); create it or correct the path."
            ) from None
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: the file {target} is not UTF-8 text; write it anew.") from None
        if not text or len(raw) > MAX_REFERENCE_BYTES:
            raise ConfigError(f"{path}: the file {target} is empty or too long; put the value alone into it.")
        return text


def read_toml(path: Path) -> str:
    """The text of the configuration file. Raises ConfigError when there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; write one with fenced init, or name it with --config.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); correct its owner or mode.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text; save it as UTF-8.") from None


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The tables of `text`. Raises ConfigError with the line of the first mistake."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not TOML: {str(error)[0].lower() + str(error)[1:]}; correct that line.") from None
    except RecursionError:
        raise ConfigError(f"{name} is nested too deeply; write it flatter.") from None
