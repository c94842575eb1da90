"""What can be said of a transaction without the pool's contents and the sender's account, in geth's order."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from devnet.codec.sidecar import PROOFS_OF_BLOBS, PROOFS_OF_CELLS, check
from devnet.codec.transaction import BLOB, LEGACY, SET_CODE, Transaction
from devnet.errors import Rejected
from devnet.evm.blob_gas import MIN_BLOB_BASE_FEE
from devnet.evm.forks import DEFAULT, Fork
from devnet.evm.gas import floor_gas, intrinsic_gas
from devnet.txpool.profiles import ETHER, Limits, Profile

MAX_NONCE: Final = 2**64 - 1
MAX_BLOBS: Final = 6  # of one transaction, whatever a block may hold (EIP-7594)
_FORK_OF_TYPE: Final = ("Frontier", "Berlin", "London", "Cancun", "Prague")


@dataclass(slots=True)
class PoolRules:
    """What admission depends on besides the state: the client profile with its limits, and the next block.

    With `limits_gas` a transaction may not ask for more gas than a block has. `base_fee` tells that block's, in wei per
    gas; `now` tells seconds on the clock that lifetimes are measured by.
    """

    profile: Profile
    chain_id: int
    gas_limit: int
    limits_gas: bool = True
    fork: Fork = DEFAULT
    base_fee: Callable[[], int] = lambda: 0
    now: Callable[[], float] = lambda: 0.0
    limits: Limits = field(init=False)

    def __post_init__(self) -> None:
        self.limits = self.profile.limits

    def follow(self, profile: Profile) -> None:
        """Judge by another client's rules from now on, within its limits."""
        self.profile = profile
        self.limits = profile.limits


def check_request(rules: PoolRules, tx: Transaction) -> None:
    """What geth's RPC layer checks before the pool sees the transaction. Raises Rejected."""
    profile = rules.profile
    cap = profile.fee_cap
    if cap is not None:
        fee = tx.gas * tx.max_fee
        if fee > cap:
            raise Rejected("fee_cap", fee=fee, cap=cap, fee_ether=fee / ETHER, cap_ether=cap / ETHER)
    if tx.type == LEGACY and tx.chain_id is None and profile.needs_replay_protection:
        raise Rejected("unprotected")


def check_alone(rules: PoolRules, tx: Transaction) -> None:
    """What geth's ValidateTransaction checks, signature included. Raises Rejected."""
    profile, fork = rules.profile, rules.fork
    if tx.type not in profile.types or tx.type not in fork.transaction_types:
        raise Rejected("type_not_supported", fork=_FORK_OF_TYPE[tx.type])
    limit = profile.max_blob_size if tx.type == BLOB else profile.max_size
    if limit is not None and (size := len(tx.wire)) > limit:
        raise Rejected("oversized", size=size, limit=limit)
    if tx.to is None and fork.limits_initcode and len(tx.data) > fork.max_initcode:
        raise Rejected("initcode", size=len(tx.data), limit=fork.max_initcode)
    cap = fork.transaction_gas_cap
    if cap is not None and tx.gas > cap and profile.caps_gas:
        raise Rejected("tx_gas_cap", cap=cap)
    if rules.limits_gas and tx.gas > rules.gas_limit:
        raise Rejected("block_gas_limit", block_gas=rules.gas_limit)
    if tx.max_priority_fee > tx.max_fee:
        raise Rejected("tip_above_fee_cap")
    if tx.chain_id != rules.chain_id and not (tx.type == LEGACY and tx.chain_id is None):
        raise Rejected("wrong_chain", have=tx.chain_id, want=rules.chain_id)
    assert tx.sender, "a bad signature raises"
    if tx.nonce >= MAX_NONCE:
        raise Rejected("nonce_max")
    _check_prices(profile, fork, tx)
    if tx.type == BLOB:
        _check_blobs(fork, tx)
    if tx.type == SET_CODE and not tx.authorizations:
        raise Rejected("no_authorizations")


def _check_prices(profile: Profile, fork: Fork, tx: Transaction) -> None:
    needed = intrinsic_gas(
        tx.data, tx.access_list, creation=tx.to is None, authorizations=len(tx.authorizations), fork=fork
    )
    if tx.gas < needed:
        raise Rejected("intrinsic_gas", needed=needed)
    floor = floor_gas(tx.data, fork)
    if tx.gas < floor:
        raise Rejected("floor_gas", needed=floor)
    if tx.max_priority_fee < profile.min_tip:
        raise Rejected("tip_too_low", needed=profile.min_tip)
    if tx.max_fee < profile.min_price:
        raise Rejected("price_too_low", needed=profile.min_price)


def _check_blobs(fork: Fork, tx: Transaction) -> None:
    if tx.max_fee_per_blob_gas < MIN_BLOB_BASE_FEE:
        raise Rejected("blob_fee_too_low", needed=MIN_BLOB_BASE_FEE)
    version = PROOFS_OF_CELLS if fork.cell_proofs else PROOFS_OF_BLOBS
    most = MAX_BLOBS if fork.cell_proofs or fork.blobs is None else fork.blobs.max
    check(tx.sidecar, tx.blob_hashes, version=version, most=most)
