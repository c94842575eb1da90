"""The state root, brought up to date from the accounts and slots that changed since it was last asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import encode, integer, wrap
from devnet.codec.trie import EMPTY_ROOT, Trie
from devnet.errors import SERVER_ERROR, RpcError
from devnet.evm.world import World


@dataclass(frozen=True, slots=True)
class AccountProof:
    """Trie nodes that lead to an account, and for each slot asked for those that lead to it (EIP-1186)."""

    account: Sequence[bytes]
    storage_root: bytes
    slots: Sequence[Sequence[bytes]]


class StateRoot:
    """The account trie and the storage tries of one world (yellow paper, 4.1)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._accounts = Trie()
        self._storages: dict[bytes, Trie] = {}

    def compute(self) -> bytes:
        """The root of the world as it is now; call it when the journal is sealed, or after `World.note_changes`."""
        world = self._world
        for address, slots in world.dirty.items():
            if slots:
                self._update_storage(address, slots)
            self._accounts.put(_hashed(address), self._account(address))
        world.dirty.clear()
        return self._accounts.root()

    def prove(self, address: bytes, slots: Sequence[int]) -> AccountProof:
        """Proofs of an account and of slots in its storage, present or not; call it when the journal is sealed."""
        self.compute()
        storage = self._storages.get(address) or Trie()
        return AccountProof(
            self._accounts.proof(_hashed(address)),
            storage.root(),
            [storage.proof(_hashed(slot.to_bytes(32, "big"))) for slot in slots],
        )

    def _update_storage(self, address: bytes, slots: set[int]) -> None:
        trie = self._storages.setdefault(address, Trie())
        for slot in slots:
            put_slot(trie, slot, self._world.slot(address, slot))

    def _account(self, address: bytes) -> bytes:
        world = self._world
        if not world.exists(address):
            return b""
        storage = self._storages.get(address)
        root = storage.root() if storage else EMPTY_ROOT
        code_hash = _hashed(world.code(address))
        numbers = encode(integer(world.nonce(address))) + encode(integer(world.balance(address)))
        return wrap(b"%b\xa0%b\xa0%b" % (numbers, root, code_hash))


class NoStateRoot(StateRoot):
    """Keeps no tries, for load tests: every root is zero and nothing can be proven."""

    def compute(self) -> bytes:
        """Zero."""
        self._world.dirty.clear()
        return bytes(32)

    def prove(self, address: bytes, slots: Sequence[int]) -> AccountProof:  # noqa: ARG002
        """Raises RpcError."""
        raise RpcError(
            SERVER_ERROR, "this devnet keeps no state roots to prove against: start it without --no-state-root"
        )


def put_slot(trie: Trie, slot: int, value: int) -> None:
    """Have a storage trie hold a slot; zero is not held."""
    trie.put(_hashed(slot.to_bytes(32, "big")), encode(integer(value)) if value else b"")


@lru_cache(maxsize=65536)
def _hashed(value: bytes) -> bytes:
    return keccak(value)
