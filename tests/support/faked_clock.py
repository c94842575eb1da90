"""A wall clock of its own for one process, by libfaketime, changed while it runs; durations stay true."""

from pathlib import Path

import pytest

from tests.support.debian import debian_package


class FakedClock:
    """Start a process with `environment`, and its wall clock stands `set_offset` seconds beside the true time.

    Skips the test, with the reason, where the package cannot be had.
    """

    def __init__(self, file: Path, offset_seconds: float = 0.0) -> None:
        package, trouble = debian_package("libfaketime")
        if package is None:
            pytest.skip(trouble)
        self._file = file
        self.set_offset(offset_seconds)
        self.environment = {
            "LD_PRELOAD": str(package.find("libfaketimeMT.so.1")),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",  # the file is read at each look at the clock
            "DONT_FAKE_MONOTONIC": "1",
        }

    def set_offset(self, seconds: float) -> None:
        """Step the clock, at once."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+.3f}\n")
        new.chmod(0o644)
        new.replace(self._file)
