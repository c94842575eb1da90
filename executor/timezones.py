"""Time zones from the pinned `tzdata` package, never from the host.

The host's copy and the package disagree for a dozen zones, and zoneinfo silently prefers the host's: two replicas
would compute different slots. One source, with a version that can be compared, keeps them the same (P20).
"""

from __future__ import annotations

import contextlib
import re
from functools import lru_cache
from importlib import metadata, resources
from zoneinfo import ZoneInfo

from executor.errors import ConfigError


@lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    """The IANA zone `name` from the pinned tzdata package, whatever the host carries. Raises ConfigError."""
    parts = name.split("/")
    if all(re.fullmatch(r"[A-Za-z0-9_+-]+", part, re.ASCII) for part in parts):
        file = resources.files("tzdata").joinpath("zoneinfo", *parts)
        if file.is_file():
            with file.open("rb") as stream, contextlib.suppress(ValueError):  # lists lie beside the zones
                return ZoneInfo.from_file(stream, key=name)
    raise ConfigError(
        f'"{name[:60]}" is not a time zone of tzdata {tzdata_version()}; write one such as "Europe/Berlin".'
    )


def tzdata_version() -> str:
    """The version of the zone data in use, to be compared between replicas (P20)."""
    return metadata.version("tzdata")
