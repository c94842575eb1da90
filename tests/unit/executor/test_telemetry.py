"""Log lines are JSON with the fields of the event, and a traceback never shows what variables held."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from executor.telemetry import configure_logging


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, fenced = logging.getLogger(), logging.getLogger("fenced")
    handlers, level, own = root.handlers[:], root.level, fenced.level
    stream = io.StringIO()
    configure_logging(stream, worker="w1")
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    fenced.setLevel(own)


def test_a_line_is_one_object_with_the_execution(stream: io.StringIO) -> None:
    logging.getLogger("fenced.reserve").info(
        "nonces reserved", extra={"account": "treasury", "executions": {"pay/1 step 0": 7}}
    )
    (line,) = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert entry["event"] == "nonces reserved"
    assert (entry["worker"], entry["level"], entry["executions"]) == ("w1", "info", {"pay/1 step 0": 7})
    assert entry["timestamp"].endswith("Z")


def test_a_traceback_shows_lines_and_no_values(stream: io.StringIO) -> None:
    def fail(secret: str) -> None:
        held = secret * 2
        raise RuntimeError("it broke") from ValueError(len(held))

    try:
        fail("can" + "ary")
    except RuntimeError as error:
        logging.getLogger("fenced.worker").error("a stage failed unexpectedly", exc_info=error)
    assert "it broke" in stream.getvalue()
    assert "canary" not in stream.getvalue()
