"""eth_getLogs."""

from devnet.api import shapes
from devnet.api.log_filter import parse_filter
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.node import Node

METHODS = Methods()


@METHODS.named("eth_getLogs")
def get_logs(node: Node, params: Params) -> list[shapes.Json]:
    """Logs of a block or of a range of blocks that match addresses and topics."""
    wanted = parse_filter(node, params.fields(0))
    return list(wanted.select(node.chain.blocks[wanted.first : wanted.last + 1]))
