"""What gas costs: eth_gasPrice, eth_maxPriorityFeePerGas, eth_feeHistory."""

from itertools import pairwise

from devnet.api.block_reference import resolve
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.codec.blocks import Block
from devnet.encoding import quantity
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError
from devnet.evm.blob_gas import max_blob_gas
from devnet.node import Node

MAX_HISTORY = 1024
METHODS = Methods()


def suggested_tip(node: Node) -> int:
    """The lowest tip of the newest block, one gwei at least unless set otherwise, in wei per gas (as anvil suggests)."""
    head = node.chain.head
    tips = [receipt.price - head.header.base_fee for receipt in head.receipts]
    return max(min(tips, default=0), node.settings.least_tip, node.profile.min_tip)


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


@METHODS.named("eth_baseFee")
def base_fee(node: Node, _params: Params) -> str:
    """Wei per gas the next block burns."""
    return quantity(node.miner.next_context().base_fee)


@METHODS.named("eth_blobBaseFee")
def blob_base_fee(node: Node, _params: Params) -> str:
    """Wei per blob gas in the next block."""
    return quantity(node.miner.next_context().blob_base_fee)


@METHODS.named("eth_feeHistory")
def fee_history(node: Node, params: Params) -> dict[str, object]:
    """Base fees of past blocks and the next one, how full they were, and tips at percentiles of gas."""
    count = min(params.number(0), MAX_HISTORY)
    newest = resolve(node, params.required(1)).block.number
    percentiles = [_percentile(value) for value in params.items(2)]
    for at, (former, following) in enumerate(pairwise(percentiles)):
        if following <= former:
            text = f"invalid reward percentile: #{at}:{former:f} >= #{at + 1}:{following:f}"
            raise RpcError(SERVER_ERROR, text)
    if count == 0:
        return {"oldestBlock": "0x0", "gasUsedRatio": None}
    blocks = node.chain.blocks[max(newest - count + 1, 0) : newest + 1]
    contexts = [node.miner.context_of(block.header) for block in blocks]
    if newest == node.chain.head.number:
        contexts.append(node.miner.next_context())
    else:
        contexts.append(node.miner.context_of(node.chain.blocks[newest + 1].header))
    history: dict[str, object] = {
        "oldestBlock": quantity(blocks[0].number),
        "baseFeePerGas": [quantity(context.base_fee) for context in contexts],
        "gasUsedRatio": [block.header.gas_used / block.header.gas_limit for block in blocks],
        "baseFeePerBlobGas": [quantity(context.blob_base_fee) for context in contexts],
        "blobGasUsedRatio": [
            (block.header.blob_gas_used or 0) / (max_blob_gas(context.fork) or 1)
            for block, context in zip(blocks, contexts, strict=False)
        ],
    }
    if percentiles:
        history["reward"] = [_rewards(block, percentiles) for block in blocks]
    return history


def _percentile(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidParams("invalid argument 2: want numbers from 0 to 100")
    if not 0 <= value <= 100:
        raise RpcError(SERVER_ERROR, f"invalid reward percentile: {value:f}")
    return float(value)


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
