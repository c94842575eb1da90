"""Whether a block may hold a transaction at its place: consensus rules, apart from what a pool wants on top."""

from typing import Final

from devnet.codec.authorization import delegation
from devnet.codec.transaction import BLOB, LEGACY, SET_CODE, Transaction
from devnet.encoding import data
from devnet.errors import Rejected
from devnet.evm.engine import BlockContext
from devnet.evm.gas import floor_gas, intrinsic_gas
from devnet.evm.world import World

_BLOB_HASH_VERSION: Final = 1  # EIP-4844
_MAX_NONCE: Final = 2**64 - 1


def refusal(world: World, block: BlockContext, tx: Transaction, gas_left: int) -> str | None:
    """Why the block must not hold the transaction next, with `gas_left` of its gas; None where it may."""
    fork = block.fork
    if tx.type not in fork.transaction_types:
        return f"type {tx.type} is not known under {fork.name}"
    if tx.chain_id is not None and (
        tx.chain_id != block.chain_id or (tx.type == LEGACY and not fork.has_replay_protection)
    ):
        return f"it is signed for chain {tx.chain_id}"
    if tx.type == BLOB and (wrong := _blob_refusal(block, tx)):
        return wrong
    if tx.type == SET_CODE and (tx.to is None or not tx.authorizations):
        return "a type 4 transaction has a recipient and authorizations"
    return _gas_refusal(block, tx, gas_left) or _account_refusal(world, tx)


def _blob_refusal(block: BlockContext, tx: Transaction) -> str | None:
    if tx.to is None or not tx.blob_hashes:
        return "a type 3 transaction has a recipient and blobs"
    if any(blob[0] != _BLOB_HASH_VERSION for blob in tx.blob_hashes):
        return "a blob hash has an unknown version"
    cap = block.fork.transaction_blob_cap
    if cap is not None and len(tx.blob_hashes) > cap:
        return f"it has {len(tx.blob_hashes)} blobs, {cap} are allowed"
    if tx.max_fee_per_blob_gas < block.blob_base_fee:
        return f"its blob fee cap {tx.max_fee_per_blob_gas} is below the blob base fee {block.blob_base_fee}"
    return None


def _gas_refusal(block: BlockContext, tx: Transaction, gas_left: int) -> str | None:
    fork = block.fork
    if tx.max_fee < block.base_fee:
        return f"its fee cap {tx.max_fee} is below the base fee {block.base_fee}"
    if tx.max_priority_fee > tx.max_fee:
        return "its tip is above its fee cap"
    if tx.gas > gas_left:
        return f"its gas {tx.gas} is more than the {gas_left} left in the block"
    if fork.transaction_gas_cap is not None and tx.gas > fork.transaction_gas_cap:
        return f"its gas {tx.gas} is above the cap {fork.transaction_gas_cap}"
    if tx.to is None and fork.limits_initcode and len(tx.data) > fork.max_initcode:
        return f"its init code has {len(tx.data)} bytes, {fork.max_initcode} are allowed"
    intrinsic = intrinsic_gas(
        tx.data, tx.access_list, creation=tx.to is None, authorizations=len(tx.authorizations), fork=fork
    )
    needed = max(intrinsic, floor_gas(tx.data, fork))
    return f"its gas {tx.gas} is below the {needed} it needs at least" if tx.gas < needed else None


def _account_refusal(world: World, tx: Transaction) -> str | None:
    try:
        sender = tx.sender
    except Rejected:
        return "its signature is invalid"
    nonce = world.nonce(sender)
    if tx.nonce != nonce or nonce == _MAX_NONCE:
        return f"its nonce is {tx.nonce}, that of {data(sender)} is {nonce}"
    code = world.code(sender)
    if code and delegation(code) is None:
        return f"its sender {data(sender)} is a contract"  # EIP-3607
    if world.balance(sender) < tx.cost:
        return f"{data(sender)} has {world.balance(sender)} wei and the transaction may cost {tx.cost}"
    return None
