"""One transaction applied to the world: gas bought, nonce counted, message run, refund and tip paid (yellow paper, 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from devnet.codec import rlp_coding
from devnet.codec.authorization import DELEGATION_PREFIX, Authorization, delegation
from devnet.codec.blocks import Log, Receipt, bloom
from devnet.codec.keccak import keccak
from devnet.codec.transaction import Transaction
from devnet.evm.engine import BlockContext, Engine, Execution, Message
from devnet.evm.forks import Fork
from devnet.evm.gas import floor_gas, intrinsic_gas
from devnet.evm.tracing import Watch
from devnet.evm.world import World

NONCES: Final = 1 << 64
REFUND_AUTHORIZATION: Final = 12_500  # an authority that exists was charged as a new account (EIP-7702)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a transaction did: gas in units, `price` in wei per gas, `created` the new contract's address if any.

    `output`, `error` and `reverted` are the execution's; `peak_gas` is what was in use before refunds.
    """

    succeeded: bool
    gas_used: int
    price: int
    logs: tuple[Log, ...]
    created: bytes | None
    output: bytes = b""
    error: str | None = None
    reverted: bool = False
    peak_gas: int = 0


def receipt_of(
    tx: Transaction, outcome: Outcome, block: BlockContext, before: Sequence[Receipt], state_root: bytes | None = None
) -> Receipt:
    """The receipt of a transaction that follows these of its block; `state_root` as receipts had it before Byzantium."""
    last = before[-1] if before else None
    return Receipt(
        tx=tx,
        index=len(before),
        succeeded=outcome.succeeded,
        gas_used=outcome.gas_used,
        cumulative_gas=outcome.gas_used + (last.cumulative_gas if last else 0),
        price=outcome.price,
        logs=outcome.logs,
        first_log=last.first_log + len(last.logs) if last else 0,
        bloom=bloom(outcome.logs),
        created=outcome.created,
        blob_price=block.blob_base_fee,
        state_root=state_root,
    )


def created_address(sender: bytes, nonce: int) -> bytes:
    """Where a creation of this sender and nonce puts its contract."""
    return keccak(rlp_coding.encode((sender, rlp_coding.integer(nonce))))[12:]


def run(world: World, engine: Engine, block: BlockContext, message: Message, watch: Watch | None = None) -> Execution:
    """Run a message, without the engine where it only moves value and no tracer looks on."""
    refused = _refuse(world, block, message)
    if refused is not None:
        return refused
    tracer = watch.tracer if watch else None
    if message.to and not tracer and not world.code(message.to) and not block.is_precompile(message.to):
        world.transfer(message.sender, message.to, message.value)
        world.touch(message.to, keep=not block.fork.clears_empty_accounts)
        return Execution(message.gas)
    return engine.execute(world, block, message, watch)


def _refuse(world: World, block: BlockContext, message: Message) -> Execution | None:
    if world.balance(message.sender) < message.value:
        return Execution(message.gas, error="insufficient balance for transfer")
    if message.to is None:
        assert message.created is not None, "a creation knows its address"
        if block.fork.limits_initcode and len(message.data) > block.fork.max_initcode:
            return Execution(0, error="max initcode size exceeded")
        if world.nonce(message.created) or world.code(message.created):
            return Execution(0, error="contract address collision")
    return None


def apply_authorizations(world: World, chain_id: int, authorizations: Sequence[Authorization]) -> int:
    """Let accounts take another's code as theirs; returns the gas to refund. Invalid ones are skipped (EIP-7702).

    What is written stays whatever becomes of the transaction's message.
    """
    refund = 0
    for item in authorizations:
        authority = item.authority if item.chain_id in {0, chain_id} else None
        if authority is None:
            continue
        world.warm[authority] = True
        code = world.code(authority)
        if (code and delegation(code) is None) or world.nonce(authority) != item.nonce:
            continue
        if world.exists(authority):
            refund += REFUND_AUTHORIZATION
        world.write(world.codes, authority, DELEGATION_PREFIX + item.address if any(item.address) else b"")
        world.write(world.nonces, authority, item.nonce + 1)
    return refund


def gas_used(fork: Fork, gas: int, execution: Execution, data: bytes, refund: int = 0) -> int:
    """What a transaction with this gas limit and data pays for: less the refunds, as far as they count, never under the floor.

    `refund` is what its authorizations gave on top of the execution's own.
    """
    used = gas - execution.gas_left
    refund += execution.refund + fork.selfdestruct_refund * len(execution.destroyed)
    return max(used - min(refund, used // fork.refund_quotient), floor_gas(data, fork))


def apply(world: World, engine: Engine, block: BlockContext, tx: Transaction, watch: Watch | None = None) -> Outcome:
    """Apply a transaction the miner found fit: right nonce, funds for its whole cost, fee caps at the base fees or above."""
    sender, fork = tx.sender, block.fork
    price = tx.price(block.base_fee)
    nonce = world.nonce(sender)
    world.begin_transaction()
    upfront = tx.gas * price + tx.blob_gas * block.blob_base_fee  # what blobs cost is burnt
    world.write(world.balances, sender, world.balance(sender) - upfront)
    # A creation counts its nonce here too: the address is made from the one before.
    world.write(world.nonces, sender, (nonce + 1) % NONCES)  # a call with overrides may begin at the last one
    refund = apply_authorizations(world, block.chain_id, tx.authorizations) if tx.authorizations else 0
    created = created_address(sender, nonce) if tx.to is None else None
    intrinsic = intrinsic_gas(
        tx.data, tx.access_list, creation=tx.to is None, authorizations=len(tx.authorizations), fork=fork
    )
    message = Message(
        sender, tx.to, tx.value, tx.data, tx.gas - intrinsic, price, created, tx.access_list, tx.blob_hashes
    )
    execution = run(world, engine, block, message, watch)
    used = gas_used(fork, tx.gas, execution, tx.data, refund)
    world.write(world.balances, sender, world.balance(sender) + (tx.gas - used) * price)
    tip = used * (price - block.base_fee)
    if tip > 0:  # a call that names no price pays none, whatever the base fee
        world.write(world.balances, block.coinbase, world.balance(block.coinbase) + tip)
    world.touch(block.coinbase, keep=not fork.clears_empty_accounts)
    for address in execution.destroyed:
        world.erase(address)
    return Outcome(
        succeeded=execution.error is None,
        gas_used=used,
        price=price,
        logs=execution.logs,
        created=created,
        output=execution.output,
        error=execution.error,
        reverted=execution.reverted,
        peak_gas=max(tx.gas - execution.gas_left, used),
    )
