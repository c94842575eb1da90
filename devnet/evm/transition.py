"""One transaction applied to the world: gas bought, nonce counted, message run, refund and tip paid (yellow paper, 6)."""

from dataclasses import dataclass
from typing import Final

from devnet.codec import rlp_coding
from devnet.codec.blocks import Log
from devnet.codec.keccak import keccak
from devnet.codec.transaction import Transaction
from devnet.evm.engine import BlockContext, Engine, Execution, Message
from devnet.evm.evm_state import is_precompile
from devnet.evm.gas import MAX_INITCODE, floor_gas, intrinsic_gas
from devnet.evm.world import World

REFUND_QUOTIENT: Final = 5  # EIP-3529


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a transaction did: gas in units, `price` in wei per gas, `created` the new contract's address if any."""

    succeeded: bool
    gas_used: int
    price: int
    logs: tuple[Log, ...]
    created: bytes | None


def created_address(sender: bytes, nonce: int) -> bytes:
    """Where a creation of this sender and nonce puts its contract."""
    return keccak(rlp_coding.encode((sender, rlp_coding.integer(nonce))))[12:]


def run(world: World, engine: Engine, block: BlockContext, message: Message) -> Execution:
    """Run a message, without the engine where it only moves value."""
    if world.balance(message.sender) < message.value:
        return Execution(message.gas, error="insufficient balance for transfer")
    if message.to is None:
        assert message.created is not None, "a creation knows its address"
        if len(message.data) > MAX_INITCODE:
            return Execution(0, error="max initcode size exceeded")
        if world.nonce(message.created) or world.code(message.created):
            return Execution(0, error="contract address collision")
    elif not world.code(message.to) and not is_precompile(message.to):
        world.transfer(message.sender, message.to, message.value)
        return Execution(message.gas)
    return engine.execute(world, block, message)


def apply(world: World, engine: Engine, block: BlockContext, tx: Transaction) -> Outcome:
    """Apply a transaction the miner found fit: right nonce, funds for its whole cost, fee cap at the base fee or above."""
    sender = tx.sender
    price = tx.price(block.base_fee)
    nonce = world.nonce(sender)
    world.begin_transaction()
    world.write(world.balances, sender, world.balance(sender) - tx.gas * price)
    # A creation counts its nonce here too: the address is made from the one before.
    world.write(world.nonces, sender, nonce + 1)
    created = created_address(sender, nonce) if tx.to is None else None
    intrinsic = intrinsic_gas(tx.data, tx.access_list, creation=tx.to is None)
    execution = run(
        world,
        engine,
        block,
        Message(sender, tx.to, tx.value, tx.data, tx.gas - intrinsic, price, created, tx.access_list),
    )
    used = tx.gas - execution.gas_left
    used -= min(execution.refund, used // REFUND_QUOTIENT)
    used = max(used, floor_gas(tx.data))
    world.write(world.balances, sender, world.balance(sender) + (tx.gas - used) * price)
    tip = used * (price - block.base_fee)
    if tip:
        world.write(world.balances, block.coinbase, world.balance(block.coinbase) + tip)
    for address in execution.destroyed:
        world.erase(address)
    return Outcome(execution.error is None, used, price, execution.logs, created)
