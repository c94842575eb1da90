"""The tree of calls: geth's callTracer, and flatCallTracer, which writes it as the list Parity's trace_ methods give."""

from dataclasses import dataclass, field, replace
from typing import Final

from devnet.encoding import data, quantity
from devnet.evm.revert_reason import revert_reason
from devnet.evm.tracers.subject import Ending, Json, Options, Subject, option
from devnet.evm.tracing import SELFDESTRUCT, Entry, Exit, Silent

_CREATES: Final = {"CREATE", "CREATE2"}
_PARITY_ERRORS: Final = {
    "contract creation code storage out of gas": "Out of gas",
    "gas uint64 overflow": "Out of gas",
    "max code size exceeded": "Out of gas",
    "invalid jump destination": "Bad jump destination",
    "execution reverted": "Reverted",
    "return data out of bounds": "Out of bounds",
    "precompiled failed": "Built-in failed",
    "stack limit reached 1024 (1023)": "Out of stack",
}


@dataclass(slots=True)
class Frame:
    """A call with the calls and logs it made. `result` is None while it runs."""

    entry: Entry
    result: Exit | None = None
    calls: "list[Frame]" = field(default_factory=list)
    logs: list[dict[str, object]] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """geth's words, None for success."""
        return self.result.error if self.result else None


class CallFrames(Silent):
    """Gathers the tree; `root` is None until the first frame begins."""

    def __init__(self) -> None:
        self.root: Frame | None = None
        self.open: list[Frame] = []

    def enter(self, entry: Entry) -> None:
        """Open a frame below the innermost one."""
        frame = Frame(entry)
        if self.open:
            self.open[-1].calls.append(frame)
        else:
            self.root = frame
        self.open.append(frame)

    def leave(self, result: Exit) -> None:
        """Close the innermost frame."""
        self.open.pop().result = result


class CallTracer(CallFrames):
    """Options: onlyTopCall leaves out all but the outermost call, withLog adds the events of calls that stood."""

    def __init__(self, subject: Subject, options: Options) -> None:
        super().__init__()
        self._subject = subject
        self._only_top = option(options, "onlyTopCall")
        self._with_log = option(options, "withLog")
        self._next_log = subject.first_log
        self._first_logs: list[int] = []

    def enter(self, entry: Entry) -> None:
        """Open a frame below the innermost one."""
        self._first_logs.append(self._next_log)
        super().enter(entry)

    def leave(self, result: Exit) -> None:
        """Close the innermost frame; the numbers of the logs a failed one undoes are free again."""
        first = self._first_logs.pop()
        if result.error is not None:
            self._next_log = first
        super().leave(result)

    def log(self, address: bytes, topics: tuple[bytes, ...], payload: bytes) -> None:
        """Note an event and how many calls its frame had made before."""
        index = self._next_log
        self._next_log += 1
        if not self._with_log or (self._only_top and len(self.open) > 1):
            return
        frame = self.open[-1]
        frame.logs.append(
            {
                "address": data(address),
                "topics": [data(topic) for topic in topics],
                "data": data(payload),
                "index": quantity(index),
                "position": quantity(0 if self._only_top else len(frame.calls)),
            }
        )

    def result(self, ending: Ending) -> Json:
        """The outermost call with all within it; its gas is the transaction's."""
        assert self.root is not None, "a traced message has a frame"
        return self._shape(self.root, top=True) | {
            "gas": quantity(self._subject.gas),
            "gasUsed": quantity(ending.gas_used),
        }

    def _shape(self, frame: Frame, *, top: bool = False, undone: bool = False) -> dict[str, object]:
        entry, result = frame.entry, frame.result
        assert result is not None, "a frame that was entered is left"
        undone = undone or result.error is not None
        body: dict[str, object] = {
            "from": data(entry.sender),
            "gas": quantity(entry.gas),
            "gasUsed": quantity(result.gas_used),
            "input": data(entry.data),
        }
        if result.error is None or entry.kind not in _CREATES:
            body["to"] = data(entry.to)
        if result.output and (result.error is None or result.reverted):
            body["output"] = data(result.output)
        if result.error is not None:
            body["error"] = result.error
            reason = revert_reason(result.output) if result.reverted else None
            if reason:
                body["revertReason"] = reason
        if frame.calls and not (top and self._only_top):
            body["calls"] = [self._shape(call, undone=undone) for call in frame.calls]
        if frame.logs and not undone:
            body["logs"] = frame.logs
        if entry.value is not None:
            body["value"] = quantity(entry.value)
        return body | {"type": entry.kind}


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the chain a traced transaction stands; a call stands nowhere, which geth writes as null and 0."""

    block_hash: bytes | None = None
    block_number: int = 0
    transaction_hash: bytes | None = None
    transaction_index: int = 0


class FlatCallTracer(CallFrames):
    """Options: convertParityErrors writes errors in Parity's words, includePrecompiles keeps calls of built-in code."""

    def __init__(self, subject: Subject, options: Options, place: Place) -> None:
        super().__init__()
        self._subject = subject
        self._place = place
        self._parity_errors = option(options, "convertParityErrors")
        self._precompiles = option(options, "includePrecompiles")

    def result(self, ending: Ending) -> Json:
        """The calls in order of their beginning, each with its place in the tree; the gas of the first is the transaction's."""
        root = self.root
        assert root is not None, "a traced message has a frame"
        assert root.result is not None, "a frame that was entered is left"
        root.entry = replace(root.entry, gas=self._subject.gas)
        root.result = replace(root.result, gas_used=ending.gas_used)
        flat: list[dict[str, object]] = []
        self._flatten(root, (), flat)
        return flat

    def _flatten(self, frame: Frame, address: tuple[int, ...], flat: list[dict[str, object]]) -> None:
        calls = [call for call in frame.calls if self._precompiles or not self._hidden(call)]
        flat.append(self._shape(frame) | {"subtraces": len(calls), "traceAddress": list(address)} | self._position())
        for at, call in enumerate(calls):
            self._flatten(call, (*address, at), flat)

    def _hidden(self, call: Frame) -> bool:
        return call.entry.kind in {"CALL", "STATICCALL"} and self._subject.block.is_precompile(call.entry.to)

    def _position(self) -> dict[str, object]:
        place = self._place
        return {
            "blockHash": data(place.block_hash) if place.block_hash else None,
            "blockNumber": place.block_number,
            "transactionHash": data(place.transaction_hash) if place.transaction_hash else None,
            "transactionPosition": place.transaction_index,
        }

    def _shape(self, frame: Frame) -> dict[str, object]:
        entry, result = frame.entry, frame.result
        assert result is not None, "a frame that was entered is left"
        if entry.kind == SELFDESTRUCT:
            action = {
                "address": data(entry.sender),
                "balance": quantity(entry.value or 0),
                "refundAddress": data(entry.to),
            }
            return {"type": "suicide", "action": action}
        action = {"from": data(entry.sender), "gas": quantity(entry.gas), "value": quantity(entry.value or 0)}
        outcome: dict[str, object] = {"gasUsed": quantity(result.gas_used)}
        if entry.kind in _CREATES:
            kind = "create"
            action |= {"creationMethod": entry.kind.lower(), "init": data(entry.data)}
            outcome |= {"address": data(entry.to), "code": data(result.output)}
        else:
            kind = "call"
            action |= {"callType": entry.kind.lower(), "to": data(entry.to), "input": data(entry.data)}
            outcome |= {"output": data(result.output)}
        body: dict[str, object] = {"type": kind, "action": action}
        if result.error is None:
            return body | {"result": outcome}
        if self._parity_errors:
            error = _PARITY_ERRORS.get(result.error, result.error)
            if error.startswith("out of gas"):
                error = "Out of gas"
            elif error.startswith("invalid opcode"):
                error = "Bad instruction"
            elif error.startswith("stack underflow"):
                error = "Stack underflow"
        else:
            error = result.error
        return body | {"error": error} | ({"result": outcome} if result.reverted and kind == "call" else {})
