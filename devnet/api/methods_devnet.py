"""devnet_ methods: what no other node tells."""

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.encoding import data, parse_address, quantity
from devnet.errors import Rejected
from devnet.ledger import Submission
from devnet.node import Node

METHODS = Methods()


@METHODS.named("devnet_submissions")
def submissions(node: Node, params: Params) -> list[dict[str, object]]:
    """Every raw transaction ever received, in order of arrival. `{sender, since}` narrows it; `since` is an index."""
    wanted = {} if params.optional(0) is None else params.fields(0)
    sender = parse_address(wanted["sender"]) if wanted.get("sender") is not None else None
    since = wanted.get("since")
    first = since if isinstance(since, int) and since >= 0 else 0
    return [_shape(node, item) for item in node.ledger.submissions[first:] if sender is None or _sender(item) == sender]


def _sender(item: Submission) -> bytes | None:
    """The signer, None where bytes or signature are no good."""
    try:
        return item.tx.sender if item.tx else None
    except Rejected:
        return None


def _shape(node: Node, item: Submission) -> dict[str, object]:
    sender = _sender(item)
    found = node.chain.find(item.hash)
    return {
        "index": item.index,
        "time": item.received,
        "hash": data(item.hash),
        "raw": data(item.raw),
        "from": data(sender) if sender else None,
        "nonce": quantity(item.tx.nonce) if item.tx else None,
        "verdict": item.verdict,
        "error": item.error.as_json() if item.error else None,
        "minedBlock": quantity(found[0].number) if found else None,
        "minedBlockHash": data(found[0].hash) if found else None,
        "events": [
            {"event": event.kind, "block": quantity(event.block), "blockHash": data(event.block_hash)}
            | ({"by": data(event.by)} if event.by else {})
            for event in node.ledger.events.get(item.hash, ())
        ],
    }
