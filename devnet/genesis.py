"""What a chain of a given genesis begins with: its accounts, its first header, and the forks to come."""

from collections.abc import Mapping
from dataclasses import dataclass

from devnet.codec.blocks import EMPTY_BLOOM, INITIAL_BASE_FEE, NO_REQUESTS, ZERO_HASH, Header
from devnet.codec.trie import EMPTY_ROOT
from devnet.evm.forks import Schedule
from devnet.evm.system_contracts import DEPOSIT_CONTRACT
from devnet.evm.world import World


@dataclass(frozen=True, slots=True)
class Allocation:
    """An account at genesis: `balance` in wei, `storage` from slot to value."""

    balance: int = 0
    nonce: int = 0
    code: bytes = b""
    storage: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Genesis:
    """A genesis as geth knows it. `timestamp` in seconds, `base_fee` in wei; None for what was left open.

    `marks` are heights that only tell peers apart: the fork id counts them with the forks (EIP-2124).
    """

    chain_id: int
    schedule: Schedule
    alloc: Mapping[bytes, Allocation]
    gas_limit: int
    difficulty: int = 0
    timestamp: int = 0
    extra_data: bytes = b""
    coinbase: bytes = bytes(20)
    mix_hash: bytes = ZERO_HASH
    nonce: bytes = bytes(8)
    base_fee: int | None = None
    blob_gas_used: int | None = None
    excess_blob_gas: int | None = None
    deposit_contract: bytes = DEPOSIT_CONTRACT
    marks: frozenset[int] = frozenset()

    def allocate(self, world: World) -> None:
        """Write the accounts into an empty world. One that holds nothing is in the state all the same, as with geth."""
        for address, account in self.alloc.items():
            world.write(world.balances, address, account.balance)
            world.write(world.nonces, address, account.nonce)
            world.write(world.codes, address, account.code)
            if world.is_empty(address):
                world.touch(address, keep=True)
            for slot, value in (account.storage or {}).items():
                world.set_slot(address, slot, value)

    def header(self, state_root: bytes) -> Header:
        """Block 0 over this state, with the fields of the fork it is under (geth: Genesis.ToBlock)."""
        fork = self.schedule.at(0, self.timestamp, self.difficulty)
        base_fee = INITIAL_BASE_FEE if self.base_fee is None else self.base_fee
        return Header(
            number=0,
            parent_hash=ZERO_HASH,
            coinbase=self.coinbase,
            state_root=state_root,
            transactions_root=EMPTY_ROOT,
            receipts_root=EMPTY_ROOT,
            logs_bloom=EMPTY_BLOOM,
            gas_limit=self.gas_limit,
            gas_used=0,
            timestamp=self.timestamp,
            prevrandao=self.mix_hash,
            base_fee=base_fee if fork.has_base_fee else 0,
            has_base_fee=fork.has_base_fee,
            extra_data=self.extra_data,
            difficulty=self.difficulty,
            nonce=self.nonce,
            withdrawals_root=EMPTY_ROOT if fork.has_withdrawals else None,
            blob_gas_used=(self.blob_gas_used or 0) if fork.blobs else None,
            excess_blob_gas=(self.excess_blob_gas or 0) if fork.blobs else None,
            parent_beacon_root=ZERO_HASH if fork.has_beacon_root else None,
            requests_hash=NO_REQUESTS if fork.has_requests else None,
        )
