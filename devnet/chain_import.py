"""A chain from a file of RLP blocks, as `geth export` writes it: every block is run and checked before it is believed.

A block that fails is a StartError with one sentence that names the file, the block and the field or transaction.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from devnet.codec import rlp_coding
from devnet.codec.block_decoding import EncodedBlock, decode_block
from devnet.codec.blocks import ELASTICITY, EMPTY_UNCLES, ZERO_HASH, Block, Header, Receipt
from devnet.codec.keccak import keccak
from devnet.codec.transaction import decode
from devnet.codec.trie import ordered_root
from devnet.encoding import data
from devnet.errors import DecodeError, StartError
from devnet.evm.blob_gas import max_blob_gas, next_excess
from devnet.evm.engine import BlockContext
from devnet.evm.forks import Fork
from devnet.evm.inclusion import refusal
from devnet.evm.proof_of_work import MAX_UNCLE_AGE, MAX_UNCLES, difficulty
from devnet.evm.system_contracts import begin_block
from devnet.node import Node

GWEI: Final = 10**9
GAS_LIMIT_DIVISOR: Final = 1024  # by less than this part of it the gas limit may move from block to block
MIN_GAS_LIMIT: Final = 5_000
_REPORT_EVERY: Final = 1_000
_MAX_EXTRA_DATA: Final = 32
# Header fields by the names JSON-RPC has for them, in the order they are to be complained of: causes before effects.
_NAMES: Final = {
    "parent_hash": "parentHash",
    "number": "number",
    "timestamp": "timestamp",
    "extra_data": "extraData",
    "nonce": "nonce",
    "difficulty": "difficulty",
    "gas_limit": "gasLimit",
    "has_base_fee": "baseFeePerGas",
    "base_fee": "baseFeePerGas",
    "excess_blob_gas": "excessBlobGas",
    "parent_beacon_root": "parentBeaconBlockRoot",
    "uncles_hash": "sha3Uncles",
    "transactions_root": "transactionsRoot",
    "withdrawals_root": "withdrawalsRoot",
    "blob_gas_used": "blobGasUsed",
    "gas_used": "gasUsed",
    "logs_bloom": "logsBloom",
    "receipts_root": "receiptsRoot",
    "requests_hash": "requestsHash",
    "state_root": "stateRoot",
    "coinbase": "miner",
    "prevrandao": "mixHash",
}


class _Bad(Exception):
    """What is wrong with a block."""


def import_chain(node: Node, path: str, report: Callable[[int, int], None] = lambda _done, _all: None) -> int:
    """Add the blocks in a file to the node's chain; those it has already are passed over. Returns how many were new.

    `report` is told every thousand blocks how many of how many are done. Raises StartError.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as problem:
        raise StartError(f"cannot read {path}: {problem.strerror or problem}") from None
    try:
        encoded = list(rlp_coding.sequence(raw))
    except DecodeError as problem:
        raise StartError(f"{path} is no file of RLP blocks: {problem}") from None
    new = 0
    for at, item in enumerate(encoded):
        where = f"block number {at + 1} in the file"
        try:
            block = decode_block(item)
            where = f"block {block.header.number}"
            if block.header.hash not in node.chain.by_hash:
                _add(node, block, len(item))
                new += 1
        except (_Bad, DecodeError) as problem:
            raise StartError(f"{path}: {where}: {problem}") from None
        if (at + 1) % _REPORT_EVERY == 0:
            report(at + 1, len(encoded))
    node.pool.rules.gas_limit = node.chain.head.header.gas_limit
    return new


def _add(node: Node, block: EncodedBlock, size: int) -> None:
    layers = node.world.layers
    depth = len(layers)
    try:
        _execute(node, block, size)
    except BaseException:  # leave nothing of a bad block in the state
        node.world.revert(0)
        while len(layers) > depth:
            node.world.unseal()
        raise


def _execute(node: Node, block: EncodedBlock, size: int) -> None:
    parent = node.chain.head
    fork = node.miner.schedule.at(block.header.number, block.header.timestamp, node.chain.total_difficulty)
    _compare(block.header, _foretold(fork, block, parent.header))
    _check_limits(fork, block, size, parent.header)
    _check_uncles(node, block)
    context = node.miner.context_of(block.header)
    begin_block(node.world, node.engine, context, parent.hash, block.header.parent_beacon_root or ZERO_HASH)
    receipts = _run(node, context, block)
    requests = node.miner.finish(context, receipts, block.uncles)
    for item in block.withdrawals:
        balance = node.world.balance(item.address)
        node.world.write(node.world.balances, item.address, balance + item.amount * GWEI)
        node.world.touch(item.address, keep=False)
    node.world.seal(block.header.number)
    made = node.miner.assemble(context, parent.hash, receipts, requests).header
    _compare(
        block.header,
        replace(
            block.header,
            blob_gas_used=made.blob_gas_used,
            gas_used=made.gas_used,
            logs_bloom=made.logs_bloom,
            receipts_root=made.receipts_root,
            requests_hash=made.requests_hash,
            state_root=made.state_root,
        ),
    )
    node.miner.append(Block(block.header, tuple(receipts), block.uncles_rlp, block.withdrawals_rlp))


def _foretold(fork: Fork, block: EncodedBlock, parent: Header) -> Header:
    """The header as far as it follows from the parent and the block's own lists."""
    header = block.header
    return replace(
        header,
        parent_hash=parent.hash,
        number=parent.number + 1,
        difficulty=difficulty(fork, parent, header.timestamp) if parent.difficulty else 0,
        nonce=bytes(8) if fork.is_proof_of_stake else header.nonce,
        has_base_fee=fork.has_base_fee,
        base_fee=parent.next_base_fee() if fork.has_base_fee else 0,
        uncles_hash=EMPTY_UNCLES if fork.is_proof_of_stake else keccak(block.uncles_rlp),
        transactions_root=ordered_root(block.transactions),
        withdrawals_root=ordered_root(block.withdrawal_leaves or ()) if fork.has_withdrawals else None,
        excess_blob_gas=next_excess(fork, parent) if fork.blobs else None,
        parent_beacon_root=(header.parent_beacon_root or ZERO_HASH) if fork.has_beacon_root else None,
        requests_hash=(header.requests_hash or ZERO_HASH) if fork.has_requests else None,
        blob_gas_used=(header.blob_gas_used or 0) if fork.blobs else None,
    )


def _compare(stated: Header, right: Header) -> None:
    """Raise for the first field that is not as it must be."""
    for name, title in _NAMES.items():
        have, want = getattr(stated, name), getattr(right, name)
        if have != want:
            raise _Bad(f"{title} is {_shown(have)}, but must be {_shown(want)}")


def _shown(value: bytes | int | bool | None) -> str:
    if value is None or isinstance(value, bool):
        return "there" if value else "not there"
    return data(value) if isinstance(value, bytes) else str(value)


def _check_limits(fork: Fork, block: EncodedBlock, size: int, parent: Header) -> None:
    """What has a range. Blocks may share their parent's second, which the devnet's own do."""
    header = block.header
    if (block.withdrawal_leaves is not None) is not fork.has_withdrawals:
        raise _Bad(f"a list of withdrawals must {'' if fork.has_withdrawals else 'not '}be there under {fork.name}")
    if fork.block_size_limit is not None and size > fork.block_size_limit:
        raise _Bad(f"it has {size} bytes, {fork.block_size_limit} are allowed")
    if header.timestamp < parent.timestamp:
        raise _Bad(f"timestamp is {header.timestamp}, before its parent's {parent.timestamp}")
    if len(header.extra_data) > _MAX_EXTRA_DATA:
        raise _Bad(f"extraData has {len(header.extra_data)} bytes, {_MAX_EXTRA_DATA} are allowed")
    before = parent.gas_limit * (ELASTICITY if fork.has_base_fee and not parent.has_base_fee else 1)
    if abs(header.gas_limit - before) >= max(before // GAS_LIMIT_DIVISOR, 1) and header.gas_limit != before:
        raise _Bad(f"gasLimit is {header.gas_limit}, too far from its parent's {before}")
    if header.gas_limit < MIN_GAS_LIMIT:
        raise _Bad(f"gasLimit is {header.gas_limit}, below {MIN_GAS_LIMIT}")
    if fork.blobs and (header.blob_gas_used or 0) > max_blob_gas(fork):
        raise _Bad(f"blobGasUsed is {header.blob_gas_used}, above {max_blob_gas(fork)}")


def _check_uncles(node: Node, block: EncodedBlock) -> None:
    """At most two, each a child of one of the ancestors that is not on the chain itself (yellow paper, 11.1)."""
    if len(block.uncles) > MAX_UNCLES:
        raise _Bad(f"it has {len(block.uncles)} uncles, {MAX_UNCLES} are allowed")
    for uncle in block.uncles:
        parent = node.chain.by_hash.get(uncle.parent_hash)
        if parent is None or not 1 < block.header.number - parent.number <= MAX_UNCLE_AGE:
            raise _Bad(f"the uncle {data(uncle.hash)} is no child of a recent ancestor")
        if uncle.hash in node.chain.by_hash:
            raise _Bad(f"the uncle {data(uncle.hash)} is a block of the chain")


def _run(node: Node, context: BlockContext, block: EncodedBlock) -> list[Receipt]:
    receipts: list[Receipt] = []
    for at, raw in enumerate(block.transactions):
        try:
            tx = decode(raw)
        except DecodeError as problem:
            raise _Bad(f"transaction {at}: {problem}") from None
        used = receipts[-1].cumulative_gas if receipts else 0
        wrong = refusal(node.world, context, tx, context.gas_limit - used)
        if wrong is not None:
            raise _Bad(f"transaction {at}: {wrong}")
        receipts.append(node.miner.include(tx, context, receipts))
    return receipts
