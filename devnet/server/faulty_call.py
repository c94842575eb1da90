"""Faults that strike one call's own answer: its error, its result, its id, or how often and where it runs."""

from collections import defaultdict
from collections.abc import Callable

from devnet.codec.keccak import keccak
from devnet.encoding import data
from devnet.errors import RpcError
from devnet.faults.kinds import Arg
from devnet.faults.rulebook import Fault
from devnet.node import Node
from devnet.server.answers import Answer, failure, success
from devnet.server.facts import Item
from devnet.standpoint import behind
from devnet.txpool.profiles import PROFILES

Run = Callable[[], Answer | None]


def answer_faultily(node: Node, item: Item, fault: Fault, run: Run) -> Answer | None:
    """Answer a call that meets a fault of stage `call`; `run` executes it properly. None where no answer goes out."""
    call_id = item.request.get("id")
    arg = fault.rule.arg
    match fault.rule.kind:
        case "error":
            record_unseen(node, item)
            answer: Answer | None = failure(call_id, ordered_error(node, item, arg))
        case "lie_accept":
            answer = _forget(node, item, run)
        case "accept_as_error":
            answer = run()
            if answer is not None and "error" not in answer:
                answer = failure(call_id, ordered_error(node, item, arg))
        case "null_result":
            answer = run()
            if answer is not None and "error" not in answer:
                answer = success(call_id, None)
        case "stale":
            with behind(node, arg.blocks):
                answer = run()
        case "duplicate":
            answer = run()
            for _ in range(arg.times - 1):
                run()
        case "wrong_id":
            answer = run()
            if answer is not None:
                answer = answer | {"id": _other_id(call_id) if arg.id is None else arg.id}
        case _:  # partial_batch
            run()
            answer = None
    return answer if "id" in item.request else None


def record_unseen(node: Node, item: Item) -> None:
    """Enter a submission in the ledger that the node never got to see."""
    if item.raw is not None:
        node.ledger.record(item.raw, keccak(item.raw), item.tx, "unseen")


def _forget(node: Node, item: Item, run: Run) -> Answer | None:
    """The hash of bytes that decode, and nothing is kept of them; others are refused as ever."""
    if item.raw is None or item.tx is None:
        return run()
    node.ledger.record(item.raw, item.tx.hash, item.tx, "forgotten")
    return success(item.request.get("id"), data(item.tx.hash))


def ordered_error(node: Node, item: Item, arg: Arg) -> RpcError:
    """The error a rule asks for: spelled out, or a client's own refusal filled in with the transaction's figures."""
    if arg.name is None:
        return RpcError(arg.code, arg.message, arg.data)
    client, _, reason = arg.name.partition(".")
    code, template = PROFILES[client].texts[reason]
    facts: defaultdict[str, object] = defaultdict(int)
    if item.tx is not None:
        tx, sender = item.tx, item.call.sender or b""
        facts.update(nonce=tx.nonce, next=node.world.nonce(sender), gas=tx.gas, cost=tx.cost, tip=tx.max_priority_fee)
        facts.update(balance=node.world.balance(sender), size=len(tx.raw), hash=data(tx.hash))
        facts["want"] = node.pool.rules.chain_id
    return RpcError(code, template.format_map(facts))


def _other_id(call_id: object) -> object:
    return call_id + 1 if isinstance(call_id, int) else f"{call_id}?"
