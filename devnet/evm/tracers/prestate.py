"""geth's prestateTracer: all that a transaction read, as it was before, and in diff mode what it changed."""

from devnet.codec.authorization import delegation
from devnet.codec.keccak import keccak
from devnet.encoding import data, quantity
from devnet.evm.opcodes import BY_NAME
from devnet.evm.tracers.subject import Ending, Json, Options, Subject, option
from devnet.evm.tracing import Entry, Silent, Step
from devnet.evm.world import World

_STORAGE = {BY_NAME[name] for name in ("SLOAD", "SSTORE")}
_LOOKS = {BY_NAME[name] for name in ("EXTCODECOPY", "EXTCODEHASH", "EXTCODESIZE", "BALANCE", "SELFDESTRUCT")}
_CALLS = {BY_NAME[name] for name in ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")}
_SELFDESTRUCT = BY_NAME["SELFDESTRUCT"]


class PrestateTracer(Silent):
    """Options: diffMode; disableCode and disableStorage leave those out; includeEmpty keeps accounts that were none."""

    wants_steps = True

    def __init__(self, subject: Subject, options: Options) -> None:
        self._world = subject.world
        self._mark = subject.world.snapshot()
        self._diff = option(options, "diffMode")
        self._code = not option(options, "disableCode")
        self._storage = not option(options, "disableStorage")
        self._empty = option(options, "includeEmpty")
        self._touched: dict[bytes, set[int]] = {}
        self._destroyed: set[bytes] = set()
        self._created: set[bytes] = set()
        for address in (subject.sender, subject.block.coinbase, *subject.authorities):
            self._touch(address)
        self._touch_code(subject.to)

    def _touch(self, address: bytes) -> set[int]:
        return self._touched.setdefault(address, set())

    def _touch_code(self, address: bytes) -> None:
        """Calling an account reads its code, and where that delegates, the other's (EIP-7702)."""
        self._touch(address)
        target = delegation(self._world.code(address))
        if target is not None:
            self._touch(target)

    def enter(self, entry: Entry) -> None:
        """Note where contracts are created."""
        if entry.kind in {"CREATE", "CREATE2"}:
            self._touch(entry.to)
            self._created.add(entry.to)

    def step(self, step: Step) -> None:
        """Note what the opcode is about to look at."""
        opcode, depth = step.opcode, len(step.stack)
        if opcode in _STORAGE and depth >= 1 and self._storage:
            self._touch(step.address).add(step.operand(0))
        elif opcode in _LOOKS and depth >= 1:
            self._touch(step.address_operand(0))
            if opcode == _SELFDESTRUCT:
                self._destroyed.add(step.address)
        elif opcode in _CALLS and depth >= 5:
            self._touch_code(step.address_operand(1))

    def result(self, _ending: Ending) -> Json:
        """Accounts by address; in diff mode two such objects, `pre` and `post`."""
        world = self._world
        after = {address: self._account(world, address) for address in self._touched}
        with world.undone(self._mark):
            before = {address: self._account(world, address) for address in self._touched}
            existed = {address for address in self._touched if not world.is_empty(address)}
        if self._diff:
            return self._difference(before, after, existed)
        return {data(address): body for address, body in before.items() if self._empty or address in existed}

    def _account(self, world: World, address: bytes) -> dict[str, object]:
        body: dict[str, object] = {"balance": quantity(world.balance(address))}
        nonce, code = world.nonce(address), world.code(address)
        if nonce:
            body["nonce"] = nonce
        if code:
            body["codeHash"] = data(keccak(code))
            if self._code:
                body["code"] = data(code)
        slots = {_word(slot): _word(world.slot(address, slot)) for slot in sorted(self._touched[address])}
        if slots:
            body["storage"] = slots
        return body

    def _difference(
        self, before: dict[bytes, dict[str, object]], after: dict[bytes, dict[str, object]], existed: set[bytes]
    ) -> Json:
        pre: dict[str, object] = {}
        post: dict[str, object] = {}
        for address, old in before.items():
            new = after[address]
            if address in self._destroyed and self._world.is_empty(address):
                if address in existed or self._empty:
                    pre[data(address)] = old
                continue
            changed = {
                name: new.get(name)
                for name in ("balance", "nonce", "codeHash", "code")
                if new.get(name) != old.get(name)
            }
            old_slots, new_slots = _slots(old), _slots(new)
            moved = {slot for slot, value in new_slots.items() if old_slots[slot] != value}
            if not changed and not moved:
                continue
            kept = {slot: old_slots[slot] for slot in moved if int(old_slots[slot], 16)}
            written = {slot: new_slots[slot] for slot in moved if int(new_slots[slot], 16)}
            if address in existed or self._empty:
                pre[data(address)] = {name: value for name, value in old.items() if name != "storage"} | _storage(kept)
            post[data(address)] = {name: value for name, value in changed.items() if value is not None} | _storage(
                written
            )
        return {"post": post, "pre": pre}


def _slots(account: dict[str, object]) -> dict[str, str]:
    slots = account.get("storage")
    return slots if isinstance(slots, dict) else {}


def _storage(slots: dict[str, str]) -> dict[str, object]:
    return {"storage": slots} if slots else {}


def _word(value: int) -> str:
    return data(value.to_bytes(32, "big"))
