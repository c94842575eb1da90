"""What a message touches, as an access list (EIP-2930; geth's eth/tracers/logger/access_list_tracer)."""

from collections.abc import Set as AbstractSet

from devnet.codec.fields import AccessList
from devnet.evm.opcodes import BY_NAME
from devnet.evm.tracing import Silent, Step

_STORAGE = {BY_NAME[name] for name in ("SLOAD", "SSTORE")}
_LOOKS = {BY_NAME[name] for name in ("EXTCODECOPY", "EXTCODEHASH", "EXTCODESIZE", "BALANCE", "SELFDESTRUCT")}
_CALLS = {BY_NAME[name] for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")}


class AccessListTracer(Silent):
    """Begins with a list and adds to it. `warm` are addresses that cost nothing anyway; only their slots are listed."""

    wants_steps = True

    def __init__(self, listed: AccessList, warm: AbstractSet[bytes]) -> None:
        self._warm = warm
        self._slots: dict[bytes, set[bytes]] = {}
        for address, slots in listed:
            self._touch(address)
            for slot in slots:
                self._slots.setdefault(address, set()).add(slot)

    def _touch(self, address: bytes) -> None:
        if address not in self._warm:
            self._slots.setdefault(address, set())

    def step(self, step: Step) -> None:
        """Note what the opcode is about to look at."""
        opcode, depth = step.opcode, len(step.stack)
        if opcode in _STORAGE and depth >= 1:
            self._slots.setdefault(step.address, set()).add(step.operand(0).to_bytes(32, "big"))
        elif opcode in _LOOKS and depth >= 1:
            self._touch(step.address_operand(0))
        elif opcode in _CALLS and depth >= 5:
            self._touch(step.address_operand(1))

    def access_list(self) -> AccessList:
        """The list so far, in the order of addresses and of slots."""
        return tuple((address, tuple(sorted(slots))) for address, slots in sorted(self._slots.items()))
