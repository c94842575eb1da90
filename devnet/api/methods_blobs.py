"""The blobs that transactions brought along; the devnet keeps them as long as their transactions."""

from collections.abc import Iterator

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.codec.sidecar import Sidecar, versioned_hash
from devnet.codec.transaction import Transaction
from devnet.encoding import data
from devnet.node import Node

METHODS = Methods()


def _blob_transactions(node: Node) -> Iterator[Transaction]:
    """Included and waiting transactions that brought blobs, newest blocks first."""
    for block in reversed(node.chain.blocks):
        yield from (tx for tx in block.transactions if tx.sidecar)
    yield from (entry.tx for entry in node.pool.contents() if entry.tx.sidecar)


@METHODS.named("anvil_getBlobByHash")
def blob_by_hash(node: Node, params: Params) -> str | None:
    """The blob of a versioned hash; null where no transaction here brought it."""
    wanted = params.hash(0)
    for tx in _blob_transactions(node):
        sidecar = tx.sidecar
        assert sidecar is not None, "these have one"
        for commitment, blob in zip(sidecar.commitments, sidecar.blobs, strict=True):
            if versioned_hash(commitment) == wanted:
                return data(blob)
    return None


@METHODS.named("anvil_getBlobsByTransactionHash")
def blobs_by_transaction(node: Node, params: Params) -> list[str] | None:
    """The blobs a transaction brought, included or waiting; null for one that is unknown or brought none."""
    tx_hash = params.hash(0)
    found, waiting = node.chain.find(tx_hash), node.pool.by_hash.get(tx_hash)
    tx = found[1].tx if found else waiting.tx if waiting else None
    sidecar: Sidecar | None = tx.sidecar if tx else None
    return [data(blob) for blob in sidecar.blobs] if sidecar else None
