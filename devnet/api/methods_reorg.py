"""anvil_reorg with transactions of the tester's choice in the new blocks, and anvil_reset."""

from collections import Counter
from dataclasses import replace

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.transaction_request import sender_of, signed
from devnet.codec.blocks import Block
from devnet.codec.transaction import Transaction, decode
from devnet.encoding import data, parse_data, parse_quantity, quantity
from devnet.errors import SERVER_ERROR, DecodeError, InvalidParams, Rejected, RpcError
from devnet.node import Node

METHODS = Methods()


@METHODS.named("anvil_reorg")
def reorg(node: Node, params: Params) -> None:
    """Replace the last `depth` blocks by as many with these transactions: pairs of one and its block's index from 0.

    A transaction is raw bytes or a request as for eth_sendTransaction. Nothing changes where one cannot be in its block.
    Orphaned transactions wait in the pool, as with geth, unless the profile forgets them.
    """
    fields = params.optional(0)
    if isinstance(fields, dict):
        pairs = fields.get("tx_block_pairs", fields.get("txBlockPairs"))
        params = Params([fields.get("depth"), pairs])
    depth, head = params.number(0), node.chain.head.number
    if depth > head:
        text = f"Reorg depth must not exceed current chain height: current height {head}, depth {depth}"
        raise InvalidParams(text)
    node.check_known(head - depth)
    base = node.chain.blocks[head - depth]
    contents = _contents(node, params.items(1), depth, base)
    _rehearse(node, base, contents)
    node.rollback(depth)
    for transactions in contents:
        for tx in transactions:
            node.ledger.record(tx.raw, tx.hash, tx, "injected")
        node.miner.mine(use_pool=False, chosen=transactions)


def _contents(node: Node, pairs: list[object], depth: int, base: Block) -> list[list[Transaction]]:
    contents: list[list[Transaction]] = [[] for _ in range(depth)]
    sent: Counter[bytes] = Counter()
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise InvalidParams("invalid argument 1: want pairs of a transaction and a block's index")
        index = parse_quantity(pair[1], "block index")
        if index >= depth:
            text = "Block number for reorg tx will exceed the reorged chain height. "
            raise InvalidParams(text + f"Block number {index} must not exceed (depth-1) {depth - 1}")
        tx = _transaction(node, pair[0], base, sent)
        sent[tx.sender] += 1
        contents[index].append(tx)
    return contents


def _transaction(node: Node, given: object, base: Block, sent: Counter[bytes]) -> Transaction:
    if isinstance(given, dict):
        fields = Params([given]).fields(0)
        sender = sender_of(fields)
        if fields.get("nonce") is None:
            known = node.world.nonces.at(sender, base.number) or 0
            fields = {**fields, "nonce": quantity(known + sent[sender])}
        return signed(node, fields)
    try:
        tx = decode(parse_data(given, "transaction"))
        assert tx.sender, "a bad signature raises"
    except DecodeError as problem:
        raise InvalidParams(f"Failed to decode transaction: {problem}") from None
    except Rejected as problem:
        raise InvalidParams(node.profile.error(problem).message) from None
    return tx


def _rehearse(node: Node, base: Block, contents: list[list[Transaction]]) -> None:
    """Try the new blocks without making them. Raises InvalidParams where one could not have a transaction it should."""
    header = base.header
    with node.world.rewound(base.number):
        for index, transactions in enumerate(contents):
            base_fee = node.miner.base_fee_on(header, index)
            context = replace(node.miner.next_context(), number=header.number + 1, base_fee=base_fee)
            receipts = node.miner.fill(context, transactions) if transactions else []
            included = {receipt.tx.hash for receipt in receipts}
            for tx in transactions:
                if tx.hash not in included:
                    text = f"transaction {data(tx.hash)} cannot be in new block {index}: "
                    raise InvalidParams(text + "its nonce, fee cap, gas or funds do not fit there")
            gas_used = receipts[-1].cumulative_gas if receipts else 0
            header = replace(header, number=context.number, base_fee=base_fee, gas_used=gas_used)


@METHODS.named("anvil_reset", "hardhat_reset")
def reset(node: Node, params: Params) -> None:
    """Go back to genesis. Raises RpcError where a chain to fork from is named: this devnet does not fork."""
    forking = params.fields(0).get("forking") if params.optional(0) is not None else None
    if forking is not None and forking != {"blockNumber": None}:  # what viem's reset() without arguments sends
        raise RpcError(SERVER_ERROR, "this devnet does not fork: call reset without forking")
    node.reset()
