"""The options of debug_trace methods (geth's TraceConfig)."""

import re
from dataclasses import dataclass
from typing import Final, cast

from devnet.api.params import Fields
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError

DEFAULT_SECONDS: Final = 5.0
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """`tracer` is empty for the struct logger, whose options then stand in `options`; `seconds` is the time it may take."""

    tracer: str
    options: Fields
    seconds: float


def parse_trace_options(value: object) -> TraceOptions:
    """Read the object; null is all defaults. Raises InvalidParams, and RpcError for a duration that is none."""
    if value is None:
        return TraceOptions("", {}, DEFAULT_SECONDS)
    if not isinstance(value, dict):
        raise InvalidParams("invalid argument 1: the trace options are not an object")
    fields = cast("Fields", value)
    tracer, config = fields.get("tracer"), fields.get("tracerConfig")
    if tracer is not None and not isinstance(tracer, str):
        raise InvalidParams("invalid argument 1: tracer is not a string")
    if config is not None and not isinstance(config, dict):
        raise InvalidParams("invalid argument 1: tracerConfig is not an object")
    options = cast("Fields", config or {}) if tracer else fields
    return TraceOptions(tracer or "", options, _seconds(fields.get("timeout")))


def _seconds(value: object) -> float:
    """A duration as Go writes them: `300ms`, `1m30s`."""
    if value is None:
        return DEFAULT_SECONDS
    if not isinstance(value, str):
        raise InvalidParams("invalid argument 1: timeout is not a string")
    parts = _PART.findall(value)
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise RpcError(SERVER_ERROR, f'time: invalid duration "{value}"')
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
