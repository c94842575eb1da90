"""The state root, brought up to date from the accounts and slots that changed since it was last asked for."""

from functools import lru_cache

from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import encode, integer
from devnet.codec.trie import EMPTY_ROOT, Trie
from devnet.evm.world import World


class StateRoot:
    """The account trie and the storage tries of one world (yellow paper, 4.1)."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._accounts = Trie()
        self._storages: dict[bytes, Trie] = {}

    def compute(self) -> bytes:
        """The root of the world as it is now; call it when the journal is sealed."""
        world = self._world
        for address, slots in world.dirty.items():
            if slots:
                self._update_storage(address, slots)
            self._accounts.put(_hashed(address), self._account(address))
        world.dirty.clear()
        return self._accounts.root()

    def _update_storage(self, address: bytes, slots: set[int]) -> None:
        trie = self._storages.setdefault(address, Trie())
        for slot in slots:
            value = self._world.slot(address, slot)
            trie.put(_hashed(slot.to_bytes(32, "big")), encode(integer(value)) if value else b"")

    def _account(self, address: bytes) -> bytes:
        world = self._world
        if world.is_empty(address):
            return b""
        storage = self._storages.get(address)
        root = storage.root() if storage else EMPTY_ROOT
        code_hash = _hashed(world.code(address))
        return encode((integer(world.nonce(address)), integer(world.balance(address)), root, code_hash))


@lru_cache(maxsize=65536)
def _hashed(value: bytes) -> bytes:
    return keccak(value)
