"""What eth_getLogs asks for: blocks, addresses, and topics by position (execution-apis: Filter)."""

from collections.abc import Iterator
from dataclasses import dataclass

from devnet.api import shapes
from devnet.api.block_reference import PENDING, lookup
from devnet.api.params import Fields
from devnet.codec.blocks import Block, Log
from devnet.encoding import parse_address, parse_hash, parse_quantity
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError
from devnet.node import Node

NO_BOUND = 2**63


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Empty `addresses` means any; a position of `topics` is None for any, else the set of which one must match."""

    first: int
    last: int
    addresses: frozenset[bytes]
    topics: tuple[frozenset[bytes] | None, ...]

    def matches(self, log: Log) -> bool:
        """Whether a log fits addresses and topics."""
        if self.addresses and log.address not in self.addresses:
            return False
        if len(self.topics) > len(log.topics):
            return False
        return all(want is None or have in want for want, have in zip(self.topics, log.topics, strict=False))

    def select(self, blocks: list[Block]) -> Iterator[shapes.Json]:
        """The logs of these blocks that match."""
        for block in blocks:
            for receipt in block.receipts:
                if receipt.logs:
                    shaped = shapes.logs(block, receipt)
                    yield from (item for log, item in zip(receipt.logs, shaped, strict=True) if self.matches(log))


def parse_filter(node: Node, fields: Fields) -> LogFilter:
    """Read the filter object. Raises RpcError in geth's words for unknown blocks, inverted ranges and those that go beyond the head."""
    if fields.get("blockHash") is not None:
        if fields.get("fromBlock") is not None or fields.get("toBlock") is not None:
            raise InvalidParams("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other")
        block = node.chain.by_hash.get(parse_hash(fields["blockHash"], "blockHash"))
        if block is None:
            raise RpcError(SERVER_ERROR, "unknown block")
        first = last = block.number
    else:
        first, last = (_height(node, fields.get(name)) for name in ("fromBlock", "toBlock"))
        if first > last:
            raise InvalidParams("invalid block range params")
        if last > node.chain.head.number:
            raise InvalidParams("block range extends beyond current head block")
    return LogFilter(first, last, _addresses(fields.get("address")), _topics(fields.get("topics")))


def parse_followed(node: Node, fields: Fields) -> LogFilter:
    """As `parse_filter` for logs to come: tags bound nothing, and only numbers that rise do (geth: SubscribeLogs).

    Raises InvalidParams in geth's words.
    """
    first, last = (_bound(node, fields.get(name)) for name in ("fromBlock", "toBlock"))
    if last is not None and (first is None or first > last):
        raise InvalidParams("invalid block range params")
    bounds = (first or 0, NO_BOUND if last is None else last)
    return LogFilter(*bounds, _addresses(fields.get("address")), _topics(fields.get("topics")))


def _bound(node: Node, value: object) -> int | None:
    """The height a follower's bound names, None for the head."""
    if value is None or value == "latest":
        return None
    if value == PENDING:
        raise InvalidParams("pending logs are not supported")
    if value in {"safe", "finalized"}:
        raise InvalidParams("invalid block range params")
    return _height(node, value)


def _height(node: Node, value: object) -> int:
    found = lookup(node, value)
    if found is None:
        return parse_quantity(value)
    return found.block.number


def _addresses(value: object) -> frozenset[bytes]:
    if value is None:
        return frozenset()
    values = value if isinstance(value, list) else [value]
    return frozenset(parse_address(item) for item in values)


def _topics(value: object) -> tuple[frozenset[bytes] | None, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > 4:
        raise InvalidParams("exceed max topics")
    positions: list[frozenset[bytes] | None] = []
    for item in value:
        if item is None or item == []:
            positions.append(None)
        else:
            choices = item if isinstance(item, list) else [item]
            positions.append(None if None in choices else frozenset(parse_hash(topic) for topic in choices))
    return tuple(positions)
