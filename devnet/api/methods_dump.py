"""anvil_dumpState and anvil_loadState."""

import gzip
import json

from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.state_dump import StateError, dump_state, load_state, read_dump
from devnet.encoding import data
from devnet.errors import InvalidParams
from devnet.node import Node

METHODS = Methods()


@METHODS.named("anvil_dumpState", "hardhat_dumpState")
def dump(node: Node, _params: Params) -> str:
    """The whole chain as compressed JSON of anvil's format."""
    return data(gzip.compress(json.dumps(dump_state(node)).encode(), mtime=0))


@METHODS.named("anvil_loadState", "hardhat_loadState")
def load(node: Node, params: Params) -> bool:
    """Be the chain of a dump, anvil's or ours; open snapshots are used up."""
    try:
        load_state(node, read_dump(params.data(0)))
    except StateError as problem:
        raise InvalidParams(f"Failed to decode state dump: {problem}") from None
    return True
