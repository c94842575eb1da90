"""The world under the names py-evm's opcodes call. py-evm passes some arguments by keyword, so its names are kept."""

from devnet.codec.keccak import keccak
from devnet.evm.engine import BlockContext
from devnet.evm.world import World

_ANCESTORS = 256


class EvmState:
    """Stands where py-evm expects its StateAPI; the journal of the world is its only undo."""

    def __init__(self, world: World, block: BlockContext) -> None:
        self.world = self._world = world
        self._block = block
        self.execution_context = block
        self.coinbase = block.coinbase
        self.timestamp = block.timestamp
        self.block_number = block.number
        self.difficulty = block.difficulty
        self.mix_hash = block.prevrandao
        self.gas_limit = block.gas_limit
        self.base_fee = block.base_fee
        self.blob_base_fee = block.blob_base_fee
        self.get_balance = world.balance
        self.get_nonce = world.nonce
        self.get_code = world.code
        self.account_is_empty = world.is_empty
        self.delete_storage = world.erase_storage
        self.given_signatures = world.given_signatures
        self.snapshot = world.snapshot
        self.revert = world.revert

    def commit(self, snapshot: int) -> None:
        """Nothing to do: what is not reverted stays."""

    def get_storage(self, address: bytes, slot: int, from_journal: bool = True) -> int:
        """A slot now, or with `from_journal=False` as it was when the transaction began (EIP-2200)."""
        if not from_journal:
            original = self._world.originals.get((address, slot))
            if original is not None:
                return original
        return self._world.slot(address, slot)

    def set_storage(self, address: bytes, slot: int, value: int) -> None:
        """Write a slot."""
        self._world.set_slot(address, slot, value)

    def set_balance(self, address: bytes, balance: int) -> None:
        """Write a balance in wei."""
        self._world.write(self._world.balances, address, balance)
        self.touch_account(address)

    def delta_balance(self, address: bytes, delta: int) -> None:
        """Add to a balance; `delta` may be negative."""
        self.set_balance(address, self._world.balance(address) + delta)

    def increment_nonce(self, address: bytes) -> None:
        """Count a creation or a transaction."""
        self._world.write(self._world.nonces, address, self._world.nonce(address) + 1)

    def set_code(self, address: bytes, code: bytes) -> None:
        """Deploy code."""
        self._world.write(self._world.codes, address, code)

    def get_code_hash(self, address: bytes) -> bytes:
        """Keccak of the code."""
        return keccak(self._world.code(address))

    def has_code_or_nonce(self, address: bytes) -> bool:
        """Whether a creation at this address collides (EIP-684)."""
        return bool(self._world.nonce(address) or self._world.code(address))

    def account_exists(self, address: bytes) -> bool:
        """Since EIP-161 an empty account is none, unless it is older."""
        return self._world.exists(address)

    def touch_account(self, address: bytes) -> None:
        """An account was called or paid: it exists from then on, or since EIP-161 does not if it is empty."""
        self._world.touch(address, keep=not self._block.fork.clears_empty_accounts)

    def is_address_warm(self, address: bytes) -> bool:
        """Accessed before in this transaction (EIP-2929)."""
        return address in self._world.warm or address in self._block.fork.precompiles

    def mark_address_warm(self, address: bytes) -> None:
        """Note an access; undone with the call that made it."""
        if address not in self._world.warm:
            self._world.write(self._world.warm, address, True)

    def is_storage_warm(self, address: bytes, slot: int) -> bool:
        """Accessed before in this transaction (EIP-2929)."""
        return (address, slot) in self._world.warm

    def mark_storage_warm(self, address: bytes, slot: int) -> None:
        """Note an access; undone with the call that made it."""
        self._world.write(self._world.warm, (address, slot), True)

    def get_transient_storage(self, address: bytes, slot: int) -> bytes:
        """TLOAD (EIP-1153)."""
        value: int = self._world.transient.get((address, slot), 0)
        return value.to_bytes(32, "big")

    def set_transient_storage(self, address: bytes, slot: int, value: bytes) -> None:
        """TSTORE (EIP-1153)."""
        self._world.write(self._world.transient, (address, slot), int.from_bytes(value, "big"))

    def get_ancestor_hash(self, block_number: int) -> bytes:
        """BLOCKHASH: one of the last 256 blocks, else empty."""
        if not 0 < self.block_number - block_number <= _ANCESTORS:
            return b""
        return self._block.block_hash(block_number)
