"""Methods that put transactions into the pool and look into it."""

from devnet.api import shapes
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.codec.transaction import Transaction
from devnet.encoding import checksum, data
from devnet.node import Node
from devnet.txpool.lane import Pooled

METHODS = Methods()


@METHODS.named("eth_sendRawTransaction")
def send_raw_transaction(node: Node, params: Params) -> str:
    """Submit signed bytes. With automine the block is made before the answer."""
    return data(node.submit(params.data(0)).hash)


@METHODS.named("txpool_status")
def txpool_status(node: Node, _params: Params) -> dict[str, str]:
    """How many wait executable and how many behind a gap."""
    pending, queued = node.pool.counts()
    return {"pending": hex(pending), "queued": hex(queued)}


def _sections(node: Node) -> dict[str, dict[str, dict[str, Pooled]]]:
    """Waiting transactions: pending or queued, by checksummed sender, by decimal nonce."""
    node.pool.expire()
    sections: dict[str, dict[str, dict[str, Pooled]]] = {"pending": {}, "queued": {}}
    for sender, lane in node.pool.lanes.items():
        for nonce, entry in sorted(lane.entries.items()):
            section = sections["pending" if nonce < lane.end else "queued"]
            section.setdefault(checksum(sender), {})[str(nonce)] = entry
    return sections


@METHODS.named("txpool_content")
def txpool_content(node: Node, _params: Params) -> dict[str, object]:
    """Every waiting transaction in full."""
    return {
        section: {
            sender: {nonce: shapes.transaction(entry.tx) for nonce, entry in entries.items()}
            for sender, entries in senders.items()
        }
        for section, senders in _sections(node).items()
    }


@METHODS.named("txpool_contentFrom")
def txpool_content_from(node: Node, params: Params) -> dict[str, object]:
    """One sender's waiting transactions in full."""
    sender = checksum(params.address(0))
    return {
        section: {nonce: shapes.transaction(entry.tx) for nonce, entry in senders.get(sender, {}).items()}
        for section, senders in _sections(node).items()
    }


@METHODS.named("txpool_inspect")
def txpool_inspect(node: Node, _params: Params) -> dict[str, object]:
    """Every waiting transaction as one line of text."""

    def line(tx: Transaction) -> str:
        recipient = checksum(tx.to) if tx.to else "contract creation"
        return f"{recipient}: {tx.value} wei + {tx.gas} gas × {tx.max_fee} wei"

    return {
        section: {
            sender: {nonce: line(entry.tx) for nonce, entry in entries.items()} for sender, entries in senders.items()
        }
        for section, senders in _sections(node).items()
    }


@METHODS.named("eth_pendingTransactions")
def pending_transactions(node: Node, _params: Params) -> list[shapes.Json]:
    """Waiting transactions of the development accounts, in order of arrival."""
    return [shapes.transaction(entry.tx) for entry in node.pool.contents() if entry.tx.sender in node.keys]
