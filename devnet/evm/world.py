"""The state of all accounts as plain dictionaries under one undo journal, with its past kept as undo layers.

Every change appends (column, key, value before). A snapshot is a journal length. `seal` turns the journal into the
layer of a block: popping layers rolls the chain back, and a value at an older block is found by bisection.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Change = tuple["Column", Any, Any]


class Column(dict[Any, Any]):
    """One kind of value for many keys. `history` holds per key (block, value before that block), oldest first."""

    __slots__ = ("address", "history", "volatile")

    def __init__(self, *, address: bytes | None = None, volatile: bool = False) -> None:
        super().__init__()
        self.address = address
        self.volatile = volatile
        self.history: dict[Any, list[tuple[int, Any]]] = {}

    def restore(self, key: Any, value: Any) -> None:
        """Put a former value back; None stands for a key that was absent."""
        if value is None:
            self.pop(key, None)
        else:
            self[key] = value

    def at(self, key: Any, block: int) -> Any:
        """The value after `block`, None where there was none."""
        past = self.history.get(key)
        if past:
            index = bisect_right(past, block, key=lambda entry: entry[0])
            if index < len(past):
                return past[index][1]
        return self.get(key)


@dataclass(slots=True, eq=False)
class Layer:
    """What has to be put back to undo one block, or the changes made by hand on top of it."""

    block: int
    changes: list[Change]


class World:
    """Balances (wei), nonces, code and storage of every account, and the scratch data of the running transaction."""

    def __init__(self) -> None:
        self.balances = Column()
        self.nonces = Column()
        self.codes = Column()
        self.storages: dict[bytes, Column] = {}
        self.kept = Column()
        self.given_signatures: dict[bytes, bytes] = {}
        self.journal: list[Change] = []
        self.layers: list[Layer] = []
        self.dirty: dict[bytes, set[int]] = {}
        self._noted = 0  # so much of the journal is in `dirty` already
        self.begin_transaction()

    def begin_transaction(self) -> None:
        """Forget what lives for one transaction only: warm addresses and slots, transient storage, first values."""
        self.warm = Column(volatile=True)
        self.transient = Column(volatile=True)
        self.originals: dict[tuple[bytes, int], int] = {}

    def write(self, column: Column, key: Any, value: Any) -> None:
        """Change a value so that `revert` can put the former one back."""
        self.journal.append((column, key, column.get(key)))
        column[key] = value

    def snapshot(self) -> int:
        """A mark for `revert`."""
        return len(self.journal)

    def revert(self, mark: int) -> None:
        """Undo every change since `mark`."""
        journal = self.journal
        if mark < self._noted:
            self._forget_roots(mark)
        while len(journal) > mark:
            column, key, old = journal.pop()
            column.restore(key, old)

    @contextmanager
    def undone(self, mark: int) -> Iterator[None]:
        """The state before every change since `mark`, for reading; the changes are back on leaving."""
        changes = self.journal[mark:]
        values = [(column, key, column.get(key)) for column, key, _ in changes]
        self.revert(mark)
        try:
            yield
        finally:
            for column, key, value in values:
                column.restore(key, value)
            self.journal.extend(changes)

    def balance(self, address: bytes) -> int:
        """Wei held."""
        return self.balances.get(address) or 0

    def nonce(self, address: bytes) -> int:
        """The nonce its next transaction must have."""
        return self.nonces.get(address) or 0

    def code(self, address: bytes) -> bytes:
        """Deployed code, empty for an account without."""
        return self.codes.get(address) or b""

    def storage(self, address: bytes) -> Column:
        """The storage of a contract, slot number to value; made on first use."""
        column = self.storages.get(address)
        if column is None:
            column = self.storages[address] = Column(address=address)
        return column

    def slot(self, address: bytes, slot: int) -> int:
        """A storage value, zero where nothing was stored."""
        column = self.storages.get(address)
        return 0 if column is None else column.get(slot) or 0

    def set_slot(self, address: bytes, slot: int, value: int) -> None:
        """Store a value; the one it had before this transaction is remembered for EIP-2200."""
        column = self.storage(address)
        self.originals.setdefault((address, slot), column.get(slot) or 0)
        self.write(column, slot, value)

    def is_empty(self, address: bytes) -> bool:
        """No balance, no nonce, no code: by EIP-161 the same as no account."""
        return not (self.balances.get(address) or self.nonces.get(address) or self.codes.get(address))

    def exists(self, address: bytes) -> bool:
        """Whether the state holds the account: an empty one only where it came into being before EIP-161."""
        return bool(not self.is_empty(address) or self.kept.get(address))

    def touch(self, address: bytes, *, keep: bool) -> None:
        """Note that an account took part in a transaction. With `keep` it is in the state from now on though it be empty,
        as before EIP-161; without, it is not unless it holds something."""
        if keep is not (self.kept.get(address) or False):
            self.write(self.kept, address, keep)

    def transfer(self, sender: bytes, recipient: bytes, amount: int) -> None:
        """Move wei; the caller has checked that the sender has it."""
        if amount:
            self.write(self.balances, sender, self.balance(sender) - amount)
            self.write(self.balances, recipient, self.balance(recipient) + amount)

    def erase_storage(self, address: bytes) -> None:
        """Set every slot of an account to zero."""
        column = self.storages.get(address)
        for slot in list(column or ()):
            self.set_slot(address, slot, 0)

    def erase(self, address: bytes) -> None:
        """Remove an account with all it has (SELFDESTRUCT, EIP-6780)."""
        self.write(self.balances, address, 0)
        self.write(self.nonces, address, 0)
        self.write(self.codes, address, b"")
        self.touch(address, keep=False)
        self.erase_storage(address)

    def seal(self, block: int) -> Layer:
        """Close the journal as a layer on top of `block`'s earlier ones; nothing in it can be reverted by mark."""
        first: dict[tuple[int, Any], Change] = {}
        for change in self.journal:
            column, key, old = change
            if not column.volatile and first.setdefault((id(column), key), change) is change:
                column.history.setdefault(key, []).append((block, old))
                self._mark_dirty(column, key)
        self.journal.clear()
        self._noted = 0
        layer = Layer(block, list(first.values()))
        self.layers.append(layer)
        return layer

    def note_changes(self) -> None:
        """Let a state root be computed in the midst of a block: mark as dirty what the open journal has changed."""
        self._mark_changes(self.journal[self._noted :])
        self._noted = len(self.journal)

    def _forget_roots(self, mark: int) -> None:
        """Changes that a root may have been computed of are about to be undone."""
        self._mark_changes(self.journal[mark : self._noted])
        self._noted = mark

    def _mark_changes(self, changes: list[Change]) -> None:
        for column, key, _ in changes:
            if not column.volatile:
                self._mark_dirty(column, key)

    def unseal(self) -> None:
        """Undo the newest layer."""
        for column, key, old in self.layers.pop().changes:
            column.restore(key, old)
            past = column.history[key]
            past.pop()
            if not past:
                del column.history[key]
            self._mark_dirty(column, key)

    def _mark_dirty(self, column: Column, key: Any) -> None:
        if column.address is None:
            self.dirty.setdefault(key, set())
        else:
            self.dirty.setdefault(column.address, set()).add(key)

    @contextmanager
    def rewound(self, block: int) -> Iterator[None]:
        """The state after an older `block`, for reading and for calls; everything is put back on leaving."""
        mark = self.snapshot()
        for layer in reversed(self.layers):
            if layer.block <= block:
                break
            for column, key, old in layer.changes:
                self.journal.append((column, key, column.get(key)))
                column.restore(key, old)
        try:
            yield
        finally:
            self.revert(mark)

    @contextmanager
    def branched(self, block: int) -> Iterator[None]:
        """As `rewound`, with what is changed on the way sealed: further layers may be sealed on top, and the tries follow.

        Everything is put back on leaving; the state root must be computed anew then, which is as much work as was undone.
        """
        with self.rewound(block):
            depth = len(self.layers)
            self.seal(block)
            try:
                yield
            finally:
                self.revert(0)
                while len(self.layers) > depth:
                    self.unseal()
