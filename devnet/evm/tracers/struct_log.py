"""geth's default tracer: every opcode with its gas, stack, memory and storage (eth/tracers/logger)."""

import json
from dataclasses import dataclass

from devnet.encoding import data, quantity
from devnet.evm.opcodes import BY_NAME, name_of
from devnet.evm.tracers.subject import Ending, Json, Options, Subject, option
from devnet.evm.tracing import Silent, Step, as_number

_SLOAD, _SSTORE = BY_NAME["SLOAD"], BY_NAME["SSTORE"]


@dataclass(frozen=True, slots=True)
class _Captured:
    step: Step
    stack: list[str] | None
    memory: list[str] | None
    storage: dict[str, str] | None
    return_data: bytes


class StructLogger(Silent):
    """Notes each opcode before it runs. After `limit` bytes of JSON it stops; 0 is without limit."""

    wants_steps = True

    def __init__(self, subject: Subject, options: Options) -> None:
        limit = options.get("limit")
        self._world = subject.world
        self._limit = limit if isinstance(limit, int) else 0
        self._stack = not option(options, "disableStack")
        self._memory = option(options, "enableMemory")
        self._storage = not option(options, "disableStorage")
        self._return_data = option(options, "enableReturnData")
        self._captured: list[_Captured] = []
        self._size = 0
        self._touched: dict[bytes, dict[str, str]] = {}

    def step(self, step: Step) -> None:
        """Copy what the options ask for."""
        if self._limit and self._size > self._limit:
            return
        storage = None
        if self._storage and step.opcode in {_SLOAD, _SSTORE} and len(step.stack) > step.opcode - _SLOAD:
            slot = step.operand(0)
            value = self._world.slot(step.address, slot) if step.opcode == _SLOAD else step.operand(1)
            known = self._touched.setdefault(step.address, {})
            known[_word(slot)] = _word(value)
            storage = dict(known)
        memory = bytes(step.memory) if self._memory else b""
        captured = _Captured(
            step,
            [quantity(as_number(value)) for value in step.stack] if self._stack else None,
            [data(memory[at : at + 32]) for at in range(0, len(memory), 32)] or None,
            storage,
            bytes(step.return_data) if self._return_data else b"",
        )
        self._captured.append(captured)
        if self._limit:
            self._size += len(json.dumps(_shape(captured), separators=(",", ":")))

    def result(self, ending: Ending) -> Json:
        """The transaction's gas and output, and the entries."""
        failed = ending.error is not None
        return {
            "gas": ending.gas_used,
            "failed": failed,
            "returnValue": data(b"" if failed and not ending.reverted else ending.output),
            "structLogs": [_shape(entry) for entry in self._captured],
        }


def _shape(entry: _Captured) -> dict[str, object]:
    step = entry.step
    body: dict[str, object] = {
        "pc": step.pc,
        "op": name_of(step.opcode),
        "gas": step.gas,
        "gasCost": step.cost,
        "depth": step.depth,
    }
    if step.error is not None:
        body["error"] = step.error
    if entry.stack is not None:
        body["stack"] = entry.stack
    if entry.return_data:
        body["returnData"] = data(entry.return_data)
    if entry.memory is not None:
        body["memory"] = entry.memory
    if entry.storage is not None and step.error is None:
        body["storage"] = entry.storage
    if step.refund:
        body["refund"] = step.refund
    return body


def _word(value: int) -> str:
    return data(value.to_bytes(32, "big"))
