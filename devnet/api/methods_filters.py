"""eth_newFilter and its kin: followers that are asked for news instead of told.

As in geth a filter that nobody asks for five minutes is forgotten, and a log filter tells of the logs of orphaned blocks
once more with `removed: true`.
"""

from devnet.api import shapes
from devnet.api.following import arrivals, block_hashes, matching_logs
from devnet.api.log_filter import parse_filter, parse_followed
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.errors import SERVER_ERROR, RpcError
from devnet.node import Node

METHODS = Methods()


def _not_found() -> RpcError:
    return RpcError(SERVER_ERROR, "filter not found")


@METHODS.named("eth_newBlockFilter")
def new_block_filter(node: Node, _params: Params) -> str:
    """Follow the hashes of new blocks."""
    return node.feed.install(block_hashes())


@METHODS.named("eth_newPendingTransactionFilter")
def new_pending_transaction_filter(node: Node, params: Params) -> str:
    """Follow transactions that become executable: their hashes, with `true` all of them."""
    return node.feed.install(arrivals(full=params.flag(0)))


@METHODS.named("eth_newFilter")
def new_filter(node: Node, params: Params) -> str:
    """Follow logs; those of orphaned blocks come again with `removed: true`."""
    fields = params.fields(0)
    return node.feed.install(matching_logs(parse_followed(node, fields)), fields)


@METHODS.named("eth_getFilterChanges")
def get_filter_changes(node: Node, params: Params) -> list[object]:
    """What is new since the last time."""
    changes = node.feed.read(str(params.required(0)))
    if changes is None:
        raise _not_found()
    return changes


@METHODS.named("eth_getFilterLogs")
def get_filter_logs(node: Node, params: Params) -> list[shapes.Json]:
    """All logs a log filter asks for, as eth_getLogs would answer now."""
    found = node.feed.find(str(params.required(0)))
    if found is None or found.criteria is None:
        raise _not_found()
    wanted = parse_filter(node, found.criteria)
    return list(wanted.select(node.chain.blocks[wanted.first : wanted.last + 1]))


@METHODS.named("eth_uninstallFilter")
def uninstall_filter(node: Node, params: Params) -> bool:
    """Forget a filter; false for an unknown one."""
    return node.feed.uninstall(str(params.required(0)))
