"""What gas costs: eth_gasPrice, eth_maxPriorityFeePerGas, eth_feeHistory."""

from devnet.api.block_reference import resolve
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.codec.blocks import Block
from devnet.encoding import quantity
from devnet.errors import SERVER_ERROR, RpcError
from devnet.node import GWEI, Node

MAX_HISTORY = 1024
METHODS = Methods()


def suggested_tip(node: Node) -> int:
    """The lowest tip of the newest block, one gwei at least, in wei per gas (as anvil suggests)."""
    head = node.chain.head
    tips = [receipt.price - head.header.base_fee for receipt in head.receipts]
    return max(min(tips, default=0), GWEI)


def suggested_price(node: Node) -> int:
    """Base fee of the next block plus the suggested tip, in wei per gas."""
    return node.miner.next_context().base_fee + suggested_tip(node)


@METHODS.named("eth_maxPriorityFeePerGas")
def max_priority_fee(node: Node, _params: Params) -> str:
    """The suggested tip."""
    return quantity(suggested_tip(node))


@METHODS.named("eth_gasPrice")
def gas_price(node: Node, _params: Params) -> str:
    """The suggested price of a legacy transaction."""
    return quantity(suggested_price(node))


@METHODS.named("eth_blobBaseFee")
def blob_base_fee(_node: Node, _params: Params) -> str:
    """The least there is: the devnet carries no blobs yet."""
    return "0x1"


@METHODS.named("eth_feeHistory")
def fee_history(node: Node, params: Params) -> dict[str, object]:
    """Base fees of past blocks and the next one, how full they were, and tips at percentiles of gas."""
    count = min(params.number(0), MAX_HISTORY)
    newest = resolve(node, params.required(1)).block.number
    percentiles = [_percentile(value) for value in params.items(2)]
    if percentiles != sorted(percentiles):
        raise RpcError(SERVER_ERROR, "invalid reward percentile: percentiles must not decrease")
    if count == 0:
        return {"oldestBlock": "0x0", "gasUsedRatio": None}
    blocks = node.chain.blocks[max(newest - count + 1, 0) : newest + 1]
    if newest == node.chain.head.number:
        following = node.miner.next_context().base_fee
    else:
        following = node.chain.blocks[newest + 1].header.base_fee
    history: dict[str, object] = {
        "oldestBlock": quantity(blocks[0].number),
        "baseFeePerGas": [quantity(block.header.base_fee) for block in blocks] + [quantity(following)],
        "gasUsedRatio": [block.header.gas_used / block.header.gas_limit for block in blocks],
        "baseFeePerBlobGas": ["0x1"] * (len(blocks) + 1),
        "blobGasUsedRatio": [0.0] * len(blocks),
    }
    if percentiles:
        history["reward"] = [_rewards(block, percentiles) for block in blocks]
    return history


def _percentile(value: object) -> float:
    if isinstance(value, int | float) and 0 <= value <= 100:
        return float(value)
    raise RpcError(SERVER_ERROR, f"invalid reward percentile: {value}")


def _rewards(block: Block, percentiles: list[float]) -> list[str]:
    """Tips at percentiles of the block's gas, cheapest gas first (geth: oracle.processBlock)."""
    base_fee = block.header.base_fee
    paid = sorted((receipt.price - base_fee, receipt.gas_used) for receipt in block.receipts)
    if not paid:
        return ["0x0"] * len(percentiles)
    rewards = []
    at, reached = 0, paid[0][1]
    for percentile in percentiles:
        threshold = int(block.header.gas_used * percentile / 100)
        while reached < threshold and at < len(paid) - 1:
            at += 1
            reached += paid[at][1]
        rewards.append(quantity(paid[at][0]))
    return rewards
