"""eth_newFilter and its kin: followers that are asked for news instead of told."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from devnet.api import shapes
from devnet.api.log_filter import LogFilter, parse_filter
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.encoding import data
from devnet.errors import SERVER_ERROR, RpcError
from devnet.feed import Arrival, Notice
from devnet.node import Node

OPEN_END = 2**63
METHODS = Methods()


@dataclass
class Follower:
    """An installed filter: what it makes of one notice, how far it has read, and for logs what it asks for."""

    read: int
    news: Callable[[Notice | Arrival], Iterator[object]]
    logs: LogFilter | None = None


def _install(node: Node, news: Callable[[Notice | Arrival], Iterator[object]], logs: LogFilter | None = None) -> str:
    name = data(secrets.token_bytes(16))
    node.followers[name] = Follower(len(node.feed), news, logs)
    return name


@METHODS.named("eth_newBlockFilter")
def new_block_filter(node: Node, _params: Params) -> str:
    """Follow the hashes of new blocks."""

    def news(notice: Notice | Arrival) -> Iterator[object]:
        if isinstance(notice, Notice) and notice.kind == "block":
            yield data(notice.block.hash)

    return _install(node, news)


@METHODS.named("eth_newPendingTransactionFilter")
def new_pending_transaction_filter(node: Node, _params: Params) -> str:
    """Follow the hashes of transactions that become executable."""

    def news(notice: Notice | Arrival) -> Iterator[object]:
        if isinstance(notice, Arrival):
            yield data(notice.tx.hash)

    return _install(node, news)


@METHODS.named("eth_newFilter")
def new_filter(node: Node, params: Params) -> str:
    """Follow logs; those of orphaned blocks come again with `removed: true`."""
    fields = params.fields(0)
    wanted = parse_filter(node, fields)
    last = OPEN_END if fields.get("toBlock") in {None, "latest", "pending"} else wanted.last
    spec = LogFilter(wanted.first, last, wanted.addresses, wanted.topics)

    def news(notice: Notice | Arrival) -> Iterator[object]:
        if isinstance(notice, Notice) and spec.first <= notice.block.number <= spec.last:
            for log in spec.select([notice.block]):
                yield log | {"removed": notice.kind == "orphan"}

    return _install(node, news, spec)


def _follower(node: Node, params: Params) -> Follower:
    found = node.followers.get(str(params.required(0)))
    if not isinstance(found, Follower):
        raise RpcError(SERVER_ERROR, "filter not found")
    return found


@METHODS.named("eth_getFilterChanges")
def get_filter_changes(node: Node, params: Params) -> list[object]:
    """What is new since the last time."""
    follower = _follower(node, params)
    unread, follower.read = node.feed[follower.read :], len(node.feed)
    return [item for notice in unread for item in follower.news(notice)]


@METHODS.named("eth_getFilterLogs")
def get_filter_logs(node: Node, params: Params) -> list[shapes.Json]:
    """All logs a log filter asks for, as eth_getLogs would answer."""
    follower = _follower(node, params)
    if follower.logs is None:
        raise RpcError(SERVER_ERROR, "filter not found")
    return list(follower.logs.select(node.chain.blocks[follower.logs.first : follower.logs.last + 1]))


@METHODS.named("eth_uninstallFilter")
def uninstall_filter(node: Node, params: Params) -> bool:
    """Forget a filter; false for an unknown one."""
    return node.followers.pop(str(params.required(0)), None) is not None
