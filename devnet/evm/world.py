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
        self.journal: list[Change] = []
        self.layers: list[Layer] = []
        self.dirty: dict[bytes, set[int]] = {}
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
        while len(journal) > mark:
            column, key, old = journal.pop()
            column.restore(key, old)

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
        layer = Layer(block, list(first.values()))
        self.layers.append(layer)
        return layer

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
