"""What those who follow the chain are told of each event, whether they ask (filters) or are told (subscriptions)."""

from collections.abc import Iterator

from devnet.api import shapes
from devnet.api.log_filter import LogFilter
from devnet.codec.blocks import Block
from devnet.encoding import data
from devnet.feed import Arrival, Event, Interest, Notice


def new_block(event: Event) -> Block | None:
    """The block that became the head by this event."""
    return event.block if isinstance(event, Notice) and event.kind == "block" else None


def block_hashes() -> Interest:
    """The hash of each new block."""

    def news(event: Event) -> Iterator[object]:
        if block := new_block(event):
            yield data(block.hash)

    return Interest(lambda event: new_block(event) is not None, news)


def headers() -> Interest:
    """The header of each new block, those of a reorg one by one."""

    def news(event: Event) -> Iterator[object]:
        if block := new_block(event):
            yield shapes.header(block.header)

    return Interest(lambda event: new_block(event) is not None, news)


def arrivals(*, full: bool) -> Interest:
    """Each transaction that becomes executable, in full or as its hash."""

    def news(event: Event) -> Iterator[object]:
        if isinstance(event, Arrival):
            yield shapes.transaction(event.tx) if full else data(event.tx.hash)

    return Interest(lambda event: isinstance(event, Arrival), news)


def matching_logs(wanted: LogFilter) -> Interest:
    """Logs of new blocks, and once more with `removed: true` when their block is orphaned."""

    def news(event: Event) -> Iterator[object]:
        if isinstance(event, Notice) and wanted.first <= event.block.number <= wanted.last:
            for log in wanted.select([event.block]):
                yield log | {"removed": event.kind == "orphan"}

    return Interest(lambda event: any(True for _ in news(event)), news)


def block_receipts(hashes: frozenset[bytes]) -> Interest:
    """The receipts of each new block in one list, of these transactions only unless there are none."""

    def news(event: Event) -> Iterator[object]:
        if block := new_block(event):
            found = [shapes.receipt(block, item) for item in block.receipts if not hashes or item.tx.hash in hashes]
            if found:
                yield found

    return Interest(lambda event: new_block(event) is not None, news)
