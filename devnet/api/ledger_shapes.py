"""JSON of the ledger's submissions, and of what was found in them."""

from devnet.encoding import data, quantity
from devnet.invariants import Finding, sender_of
from devnet.ledger import Event, Submission
from devnet.node import Node

Json = dict[str, object]
_GONE = ("evicted", "dropped", "lost", "expired")


def submission(node: Node, item: Submission) -> Json:
    """One submission: how it came, what was answered, and what became of its transaction up to now."""
    sender = sender_of(item)
    found = node.chain.find(item.hash)
    events = node.ledger.story(item)
    return {
        "index": item.index,
        "time": item.received,
        "connection": item.origin.connection,
        "node": item.node,
        "fence": item.origin.fence,
        "author": item.author,
        "hash": data(item.hash),
        "raw": data(item.raw),
        "from": data(sender) if sender else None,
        "nonce": quantity(item.tx.nonce) if item.tx else None,
        "resend": item.resend,
        "verdict": item.verdict,
        "error": item.error.as_json() if item.error else None,
        "fault": {"kind": item.fault.kind, "rule": item.fault.rule} if item.fault else None,
        "minedBlock": quantity(found[0].number) if found else None,
        "minedBlockHash": data(found[0].hash) if found else None,
        "replacedBy": next((data(event.by) for event in events if event.kind == "replaced" and event.by), None),
        "evicted": next((event.kind for event in events if event.kind.startswith(_GONE)), None),
        "reorgedFrom": [data(event.block_hash) for event in events if event.kind == "orphaned"],
        "events": [_event(event) for event in events],
    }


def _event(event: Event) -> Json:
    shaped: Json = {"event": event.kind, "block": quantity(event.block), "blockHash": data(event.block_hash)}
    return shaped | ({"by": data(event.by)} if event.by else {})


def finding(node: Node, item: Finding) -> Json:
    """A breach or a note, with the rows of the ledger that show it."""
    return {
        "kind": item.kind,
        "sender": data(item.sender),
        "nonce": None if item.nonce is None else quantity(item.nonce),
        "text": item.text,
        "evidence": [submission(node, each) for each in item.evidence],
    }
