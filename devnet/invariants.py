"""What a sender must never have done, and the devnet neither, judged over the whole ledger.

A sender is answered for by what it sent, not by what came of it: a second payload for a nonce is a breach although the
pool refused it. An earlier payload that the node refused, and was heard refusing, binds nobody: it can be forgotten.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from devnet.codec.transaction import Transaction
from devnet.encoding import data
from devnet.errors import Rejected
from devnet.ledger import Submission
from devnet.node import Node

# Faults after which a sender has not heard the refusal of what it sent.
UNHEARD = frozenset(
    {"drop_after", "hang", "reset_mid_body", "truncate_json", "empty_body", "http", "html", "wrong_id", "null_result"}
    | {"partial_batch", "accept_as_error"}
)
NEVER_SENT = frozenset({"injected"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach, or something to note, with the submissions that show it."""

    kind: str
    sender: bytes
    nonce: int | None
    text: str
    evidence: tuple[Submission, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`violations` break a rule; `notes` are replacements that are none; `suspects` share an intent on two nonces."""

    violations: list[Finding]
    notes: list[Finding]
    suspects: list[Finding]
    resends: int


Signed = tuple[Submission, Transaction]


def judge(node: Node, sender: bytes | None = None, since: int = 0) -> Verdict:
    """Judge all senders or one, by what came from the submission with index `since` on."""
    violations: list[Finding] = []
    notes: list[Finding] = []
    suspects: list[Finding] = []
    resends = 0
    for address, sent in _by_sender(node, sender, since).items():
        own = [each for each in sent if each[0].author == "client" and each[0].verdict not in NEVER_SENT]
        for finding in _reuse(node, address, own):
            (violations if finding.kind == "nonce_reuse" else notes).append(finding)
        violations += _signed_twice(address, own)
        violations += _stale_fences(address, own)
        violations += _gaps(node, address, sent)
        violations += _vanished(node, address, sent)
        suspects += _intents_twice(node, address, own)
        resends += len(own) - len({item.raw for item, _ in own})
    return Verdict(violations, notes, suspects, resends)


def _by_sender(node: Node, only: bytes | None, since: int) -> dict[bytes, list[Signed]]:
    senders: dict[bytes, list[Signed]] = defaultdict(list)
    for item in node.ledger.submissions[since:]:
        sender = sender_of(item)
        if item.tx is not None and sender is not None and only in {None, sender}:
            senders[sender].append((item, item.tx))
    return senders


def sender_of(item: Submission) -> bytes | None:
    """The signer, None where bytes or signature are no good."""
    try:
        return item.tx.sender if item.tx else None
    except Rejected:
        return None


def intent(tx: Transaction) -> tuple[bytes | None, int, bytes]:
    """What a transaction is for, whatever its nonce and fees."""
    return tx.to, tx.value, tx.data


def _may_be_alive(node: Node, item: Submission) -> bool:
    """Whether its sender must reckon with it: not refused, or not heard being refused; and no tester turned time back."""
    story = node.ledger.story(item)
    if story and story[-1].kind == "reverted":
        return False
    return item.verdict != "rejected" or (item.fault is not None and item.fault.kind in UNHEARD)


def _reuse(node: Node, sender: bytes, sent: list[Signed]) -> Iterator[Finding]:
    """A nonce used for another payload while an earlier one may be alive, once for each further payload."""
    binding: dict[int, list[Signed]] = defaultdict(list)
    for item, tx in sent:
        before = binding[tx.nonce]
        others = [each for each in before if each[1].signing_hash != tx.signing_hash]
        if others and all(each[1].hash != tx.hash for each in before):
            earlier, former = others[-1]
            strange = next((each for each in others if intent(each[1]) != intent(tx)), None)
            if strange is None:
                kind, text = "replacement", "the same intent again with other fees"
            elif tx.to == sender and not tx.value and not tx.data:
                kind, text = "cancellation", "an empty transfer to itself in place of another"
            elif former.to == sender and not former.value and not former.data and len(_intents(others, sender)) < 2:
                kind, text = "replacement", "an intent again in place of its cancellation"
            else:
                earlier, kind, text = strange[0], "nonce_reuse", "two different intents"
            yield Finding(kind, sender, tx.nonce, f"nonce {tx.nonce}: {text}", (earlier, item))
        if _may_be_alive(node, item):
            before.append((item, tx))


def _intents(sent: list[Signed], sender: bytes) -> set[tuple[bytes | None, int, bytes]]:
    """The intents among some payloads, cancellations left out."""
    return {intent(tx) for _, tx in sent} - {(sender, 0, b"")}


def _signed_twice(sender: bytes, sent: list[Signed]) -> Iterator[Finding]:
    """The same payload in other bytes: signed a second time instead of sent again."""
    first: dict[bytes, Submission] = {}
    for item, tx in sent:
        earlier = first.setdefault(tx.signing_hash, item)
        if earlier.raw != item.raw:
            text = f"nonce {tx.nonce}: the same payload in other bytes, {data(earlier.hash)} and {data(item.hash)}"
            yield Finding("resend_differs", sender, tx.nonce, text, (earlier, item))


def _stale_fences(sender: bytes, sent: list[Signed]) -> Iterator[Finding]:
    """Sent with an epoch (X-Fence) below one seen before: by a holder that had been fenced off."""
    newest: Submission | None = None
    for item, tx in sent:
        fence = item.origin.fence
        if fence is None:
            continue
        if newest is None or fence >= (newest.origin.fence or 0):
            newest = item
        else:
            text = f"nonce {tx.nonce}: sent with fence {fence} after fence {newest.origin.fence} had been seen"
            yield Finding("stale_fence", sender, tx.nonce, text, (newest, item))


def _gaps(node: Node, sender: bytes, sent: list[Signed]) -> Iterator[Finding]:
    """Transactions that wait now for a nonce nobody has sent, or that went missing."""
    lane = node.pool.lanes.get(sender)
    if lane is None or not lane.queued:
        return
    waiting = [nonce for nonce in lane.entries if nonce >= lane.end]
    missing = [nonce for nonce in range(lane.end, max(waiting)) if nonce not in lane.entries][:100]
    stuck = {lane.entries[nonce].tx.hash for nonce in waiting}
    names = ", ".join(str(nonce) for nonce in missing)
    text = f"{len(waiting)} transactions wait behind missing nonces {names}"
    yield Finding("gap", sender, lane.end, text, tuple(item for item, tx in sent if tx.hash in stuck))


def _vanished(node: Node, sender: bytes, sent: list[Signed]) -> Iterator[Finding]:
    """Accepted, and now neither waiting nor included nor gone for a reason the ledger knows: a defect of the devnet."""
    seen: set[bytes] = set()
    for item, tx in sent:
        if item.verdict not in {"pending", "queued"} or tx.hash in seen:
            continue
        seen.add(tx.hash)
        known = tx.hash in node.pool.by_hash or any(tx.hash in view.known for view in node.views.nodes)
        if known or node.chain.find(tx.hash):
            continue
        story = node.ledger.story(item)
        last = story[-1].kind if story else None
        if last in {None, "mined", "orphaned"}:
            text = f"nonce {tx.nonce}: accepted, and gone without a reason"
            yield Finding("vanished", sender, tx.nonce, text, (item,))


def _intents_twice(node: Node, sender: bytes, sent: list[Signed]) -> Iterator[Finding]:
    """The same recipient, amount and data mined on two nonces: perhaps one order carried out twice."""
    mined: dict[tuple[bytes | None, int, bytes], dict[int, Submission]] = defaultdict(dict)
    for item, tx in sent:
        if node.chain.find(tx.hash):
            mined[intent(tx)].setdefault(tx.nonce, item)
    for nonces in mined.values():
        if len(nonces) > 1:
            listed = ", ".join(str(nonce) for nonce in sorted(nonces))
            text = f"the same intent is mined on nonces {listed}"
            yield Finding("same_intent", sender, None, text, tuple(nonces.values()))
