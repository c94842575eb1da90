"""anvil_, hardhat_ and evm_ methods: mining, time, snapshots, reorgs and writing state by hand."""

from devnet.api import shapes
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.encoding import data, parse_quantity, quantity
from devnet.errors import INVALID_PARAMS, InvalidParams, RpcError
from devnet.node import Node

MAX_BLOCKS_AT_ONCE = 100_000
FIRST_MILLISECONDS = 10**11  # as seconds the year 5138, as milliseconds 1973
METHODS = Methods()


@METHODS.named("anvil_mine", "hardhat_mine")
def mine(node: Node, params: Params) -> None:
    """Make `count` blocks (1), each `interval` seconds after the one before, the first after now, where that is given."""
    count = params.number(0, 1)
    interval = params.number(1, 0)
    if count > MAX_BLOCKS_AT_ONCE:
        raise InvalidParams(f"cannot make more than {MAX_BLOCKS_AT_ONCE} blocks at once")
    for index in range(count):
        if interval and node.clock.next_exact is None:  # hardhat's helpers order a time, then call this with interval 1
            previous = node.chain.head.header.timestamp if index else node.clock.now()
            node.clock.next_exact = previous + interval
        node.miner.mine()


@METHODS.named("evm_mine")
def evm_mine(node: Node, params: Params) -> str:
    """Make one block, at a timestamp or as many as `{blocks, timestamp}` says."""
    order = params.optional(0)
    blocks, timestamp = 1, order
    if isinstance(order, dict):
        timestamp = order.get("timestamp")
        blocks = parse_quantity(order.get("blocks", 1), "blocks")
    if timestamp is not None:
        _order_timestamp(node, parse_quantity(timestamp, "timestamp"))
    for _ in range(min(blocks, MAX_BLOCKS_AT_ONCE)):
        node.miner.mine()
    return "0x0"


@METHODS.named("evm_mine_detailed", "anvil_mine_detailed")
def mine_detailed(node: Node, params: Params) -> list[shapes.Json]:
    """As evm_mine, answering with the blocks made, their transactions in full."""
    head = node.chain.head.number
    evm_mine(node, params)
    return [shapes.block(block, full=True) for block in node.chain.blocks[head + 1 :]]


@METHODS.named("evm_setAutomine", "anvil_setAutomine")
def set_automine(node: Node, params: Params) -> None:
    """Make blocks with each submission, or not. Switched on, it ends interval mining and mines what waits."""
    automine = params.flag(0)
    node.set_mode(automine=automine, interval=0.0 if automine else node.miner.mode.interval)


@METHODS.named("anvil_getAutomine", "hardhat_getAutomine")
def get_automine(node: Node, _params: Params) -> bool:
    """Whether blocks are made with each submission."""
    return node.miner.mode.automine


@METHODS.named("evm_setIntervalMining", "anvil_setIntervalMining")
def set_interval_mining(node: Node, params: Params) -> None:
    """Make a block every so many seconds (fractions allowed); 0 for none. Ends automine."""
    node.set_mode(automine=False, interval=params.seconds(0))


@METHODS.named("anvil_getIntervalMining")
def get_interval_mining(node: Node, _params: Params) -> float | None:
    """Seconds between blocks, null without interval mining."""
    return node.miner.mode.interval or None


@METHODS.named("evm_increaseTime", "anvil_increaseTime")
def increase_time(node: Node, params: Params) -> int:
    """Move the clock on; returns by how many seconds in all it is ahead of the machine's."""
    node.clock.offset += params.number(0)
    return node.clock.offset


@METHODS.named("evm_setNextBlockTimestamp", "anvil_setNextBlockTimestamp")
def set_next_block_timestamp(node: Node, params: Params) -> None:
    """The next block's timestamp; later blocks go on from it."""
    _order_timestamp(node, params.number(0))


@METHODS.named("anvil_setBlockTimestampInterval")
def set_block_timestamp_interval(node: Node, params: Params) -> None:
    """Make each block this many seconds later than its parent, whatever the clock says."""
    node.clock.block_interval = params.number(0)


@METHODS.named("anvil_removeBlockTimestampInterval")
def remove_block_timestamp_interval(node: Node, _params: Params) -> bool:
    """Take timestamps from the clock again; false where they already are."""
    had, node.clock.block_interval = node.clock.block_interval, None
    return had is not None


@METHODS.named("anvil_setNextBlockPrevRandao", "anvil_setPrevRandao", "hardhat_setPrevRandao")
def set_prevrandao(node: Node, params: Params) -> None:
    """What PREVRANDAO and `mixHash` are in the next block."""
    node.miner.next_prevrandao = params.hash(0)


def _order_timestamp(node: Node, timestamp: int) -> None:
    last = node.chain.head.header.timestamp
    if timestamp < last:
        text = f"Timestamp error: {timestamp} is lower than previous block's timestamp"
        raise RpcError(INVALID_PARAMS, text)
    node.clock.next_exact = timestamp


@METHODS.named("evm_setTime", "anvil_setTime")
def set_time(node: Node, params: Params) -> int:
    """Set the clock to a second, or a millisecond as ganache had it; returns by how many seconds that moved it."""
    before = node.clock.now()
    time = params.number(0)
    node.clock.start_at(time if time < FIRST_MILLISECONDS else time // 1000)
    return node.clock.now() - before


@METHODS.named("anvil_setNextBlockBaseFeePerGas", "hardhat_setNextBlockBaseFeePerGas")
def set_next_base_fee(node: Node, params: Params) -> None:
    """The next block's base fee in wei per gas; the ones after it follow EIP-1559 from there."""
    node.miner.next_base_fee = params.number(0)


@METHODS.named("evm_setBlockGasLimit", "anvil_setBlockGasLimit")
def set_block_gas_limit(node: Node, params: Params) -> bool:
    """Gas limit of the blocks to come."""
    node.pool.rules.gas_limit = params.number(0)
    return True


@METHODS.named("anvil_setCoinbase", "hardhat_setCoinbase")
def set_coinbase(node: Node, params: Params) -> None:
    """Who gets the tips of the blocks to come."""
    node.miner.coinbase = params.address(0)


@METHODS.named("evm_snapshot", "anvil_snapshot")
def snapshot(node: Node, _params: Params) -> str:
    """Remember chain, state, pool and time."""
    return quantity(node.snapshot())


@METHODS.named("evm_revert", "anvil_revert")
def revert(node: Node, params: Params) -> bool:
    """Come back to a snapshot; false for one that is unknown or used up."""
    return node.revert(params.number(0))


@METHODS.named("anvil_rollback")
def rollback(node: Node, params: Params) -> None:
    """Take `depth` blocks (1) off the head; their transactions go back to the pool."""
    node.rollback(params.number(0, 1))


@METHODS.named("anvil_setBalance", "hardhat_setBalance", "tenderly_setBalance")
def set_balance(node: Node, params: Params) -> None:
    """Give an account exactly this much wei."""
    node.amend(node.world.balances, params.address(0), params.number(1))


@METHODS.named("anvil_addBalance", "hardhat_addBalance", "tenderly_addBalance")
def add_balance(node: Node, params: Params) -> None:
    """Give an account this much wei more."""
    address = params.address(0)
    node.amend(node.world.balances, address, node.world.balance(address) + params.number(1))


@METHODS.named("anvil_setNonce", "hardhat_setNonce", "evm_setAccountNonce")
def set_nonce(node: Node, params: Params) -> None:
    """Set an account's nonce; waiting transactions below it are overtaken, others may become executable."""
    address = params.address(0)
    node.amend(node.world.nonces, address, params.number(1))
    node.pool.resync(address)


@METHODS.named("anvil_setCode", "hardhat_setCode")
def set_code(node: Node, params: Params) -> None:
    """Put code at an address."""
    node.amend(node.world.codes, params.address(0), params.data(1))


@METHODS.named("anvil_setStorageAt", "hardhat_setStorageAt")
def set_storage_at(node: Node, params: Params) -> bool:
    """Write one word of storage."""
    value = int.from_bytes(params.data(2), "big")
    node.amend(node.world.storage(params.address(0)), params.number(1), value)
    return True


@METHODS.named("anvil_dropTransaction", "hardhat_dropTransaction")
def drop_transaction(node: Node, params: Params) -> str | None:
    """Take one transaction out of the pool; null if it is not there. Later nonces of its sender stay, queued."""
    tx_hash = params.hash(0)
    return data(tx_hash) if node.pool.drop(tx_hash) else None


@METHODS.named("anvil_removePoolTransactions")
def remove_pool_transactions(node: Node, params: Params) -> None:
    """Take all transactions of a sender out of the pool."""
    sender = params.address(0)
    for entry in node.pool.contents():
        if entry.tx.sender == sender:
            node.pool.drop(entry.tx.hash)


@METHODS.named("anvil_dropAllTransactions", "hardhat_dropAllTransactions")
def drop_all_transactions(node: Node, _params: Params) -> None:
    """Empty the pool."""
    for entry in node.pool.contents():
        node.pool.drop(entry.tx.hash)
