"""eth_subscribe and eth_unsubscribe as geth has them, and losses of notifications on order."""

from devnet.api.following import arrivals, block_receipts, headers, matching_logs
from devnet.api.log_filter import parse_followed
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.encoding import parse_hash
from devnet.errors import METHOD_NOT_FOUND, SERVER_ERROR, InvalidParams, RpcError
from devnet.faults.fields import an_object, count, flag, optional, text
from devnet.feed import Interest
from devnet.node import Node
from devnet.subscription import CALLER, Subscription

MAX_HASHES = 200  # geth's limit for transactionReceipts
_NOTHING = Interest(lambda _event: False, lambda _event: iter(()))
METHODS = Methods()


@METHODS.named("eth_subscribe")
def subscribe(node: Node, params: Params) -> str:
    """Be told of newHeads, logs, newPendingTransactions, transactionReceipts or syncing; returns the subscription's id.

    -32601 over HTTP, which cannot notify.
    """
    caller = CALLER.get()
    if caller is None:
        raise RpcError(METHOD_NOT_FOUND, "notifications not supported")
    kind = params.optional(0)
    if not isinstance(kind, str):
        raise InvalidParams("expected subscription name as first argument")
    subscription = Subscription(
        node.feed.next_name(), caller.connection, node.feed, _interest(node, kind, params), early=kind == "logs"
    )
    caller.subscriptions[subscription.name] = subscription
    caller.opened.append(subscription)
    node.subscriptions[subscription.name] = subscription
    return subscription.name


def _interest(node: Node, kind: str, params: Params) -> Interest:
    if kind == "newHeads":
        return headers()
    if kind == "logs":
        return matching_logs(parse_followed(node, params.fields(1)))
    if kind == "newPendingTransactions":
        return arrivals(full=params.flag(1))
    if kind == "transactionReceipts":
        return block_receipts(_hashes(params))
    if kind == "syncing":
        return _NOTHING  # this node never syncs
    raise RpcError(METHOD_NOT_FOUND, f'no "{kind}" subscription in eth namespace')


def _hashes(params: Params) -> frozenset[bytes]:
    wanted = None if params.optional(1) is None else params.fields(1).get("transactionHashes")
    if wanted is None:
        return frozenset()
    if not isinstance(wanted, list):
        raise InvalidParams("invalid argument 1: transactionHashes must be an array")
    if len(wanted) > MAX_HASHES:
        text = "exceed max number of transaction hashes allowed per transactionReceipts subscription"
        raise RpcError(SERVER_ERROR, text)
    return frozenset(parse_hash(item) for item in wanted)


@METHODS.named("eth_unsubscribe")
def unsubscribe(node: Node, params: Params) -> bool:
    """End a subscription of this connection; geth's -32000 "subscription not found" for any other id."""
    name = str(params.required(0))
    caller = CALLER.get()
    subscription = caller.subscriptions.pop(name, None) if caller else None
    if subscription is None:
        raise _not_found()
    subscription.end()
    del node.subscriptions[name]
    return True


@METHODS.named("devnet_subscription")
def lose(node: Node, params: Params) -> list[str]:
    """Order losses of one subscription (`id`) or of all that are open; returns their ids.

    `drop: n` loses the next n notifications, `gap: n` all those of the next n blocks (transactions, for
    newPendingTransactions), `dup: n` sends the next n twice, `close: true` breaks the connection at once.
    """
    fields = an_object(params.optional(0) or {}, "devnet_subscription", ("id", "drop", "gap", "dup", "close"))
    drop, gap, dup = (optional(fields, name, count) or 0 for name in ("drop", "gap", "dup"))
    close = optional(fields, "close", flag)
    chosen = dict(node.subscriptions)
    name = optional(fields, "id", text)
    if name is not None:
        if name not in chosen:
            raise _not_found()
        chosen = {name: chosen[name]}
    for subscription in chosen.values():
        subscription.losses.drop += drop
        subscription.losses.gap += gap
        subscription.losses.dup += dup
        if close:
            subscription.connection.cut()
    return list(chosen)


def _not_found() -> RpcError:
    return RpcError(SERVER_ERROR, "subscription not found")
