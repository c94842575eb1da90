"""Tracers by the name debug_trace methods give: geth's native ones. Those in JavaScript are not run."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from devnet.encoding import data
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError
from devnet.evm.tracers.calls import CallTracer, FlatCallTracer, Place
from devnet.evm.tracers.prestate import PrestateTracer
from devnet.evm.tracers.struct_log import StructLogger
from devnet.evm.tracers.subject import Ending, Json, Options, ResultTracer, Subject
from devnet.evm.tracing import Entry, Exit, Silent, Step

_SELECTED: Final = {"CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"}
_Factory = Callable[[Subject, Options, Place], ResultTracer]


class NoopTracer(Silent):
    """Runs the transaction and says nothing of it."""

    def result(self, _ending: Ending) -> Json:
        """Nothing."""
        return {}


class SelectorTracer(Silent):
    """geth's 4byteTracer: how often each function selector was called with how many bytes of arguments."""

    def __init__(self, subject: Subject) -> None:
        self._is_precompile = subject.block.is_precompile
        self._counts: dict[str, int] = {}

    def enter(self, entry: Entry) -> None:
        """Count a call by its selector."""
        if len(entry.data) < 4 or entry.kind not in _SELECTED or self._is_precompile(entry.to):
            return
        name = f"{data(entry.data[:4])}-{len(entry.data) - 4}"
        self._counts[name] = self._counts.get(name, 0) + 1

    def result(self, _ending: Ending) -> Json:
        """Counts by selector and size."""
        return self._counts


class MuxTracer:
    """Several tracers over one run, each with its own options."""

    def __init__(self, tracers: Mapping[str, ResultTracer]) -> None:
        self._tracers = tracers
        self.wants_steps = any(tracer.wants_steps for tracer in tracers.values())

    def enter(self, entry: Entry) -> None:
        """Pass on."""
        for tracer in self._tracers.values():
            tracer.enter(entry)

    def leave(self, result: Exit) -> None:
        """Pass on."""
        for tracer in self._tracers.values():
            tracer.leave(result)

    def step(self, step: Step) -> None:
        """Pass on."""
        for tracer in self._tracers.values():
            tracer.step(step)

    def log(self, address: bytes, topics: tuple[bytes, ...], payload: bytes) -> None:
        """Pass on."""
        for tracer in self._tracers.values():
            tracer.log(address, topics, payload)

    def result(self, ending: Ending) -> Json:
        """The answer of each by its name."""
        return {name: tracer.result(ending) for name, tracer in self._tracers.items()}


def make_tracer(name: str, subject: Subject, options: Options, place: Place) -> ResultTracer:
    """The tracer of this name; the empty name is the struct logger. Raises RpcError for one there is not."""
    factory = _FACTORIES.get(name)
    if factory is None:
        # geth compiles a name it does not know as JavaScript, which fails with these words.
        raise RpcError(SERVER_ERROR, f"ReferenceError: {name} is not defined at <eval>:1:2(0)")
    return factory(subject, options, place)


def _mux(subject: Subject, options: Options, place: Place) -> ResultTracer:
    tracers = {}
    for name, inner in options.items():
        if inner is not None and not isinstance(inner, dict):
            raise InvalidParams(f"invalid argument 1: the options of {name} are not an object")
        tracers[name] = make_tracer(name, subject, cast("Options", inner or {}), place)
    return MuxTracer(tracers)


_FACTORIES: Final[Mapping[str, _Factory]] = {
    "": lambda subject, options, _place: StructLogger(subject, options),
    "callTracer": lambda subject, options, _place: CallTracer(subject, options),
    "flatCallTracer": FlatCallTracer,
    "prestateTracer": lambda subject, options, _place: PrestateTracer(subject, options),
    "4byteTracer": lambda subject, _options, _place: SelectorTracer(subject),
    "noopTracer": lambda _subject, _options, _place: NoopTracer(),
    "muxTracer": _mux,
}
