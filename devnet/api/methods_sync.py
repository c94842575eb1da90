"""eth_sendRawTransactionSync and eth_sendTransactionSync: submissions answered with the receipt (EIP-7966)."""

import asyncio

from devnet.api import shapes
from devnet.api.deferred import Deferred
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.transaction_request import signed
from devnet.codec.transaction import Transaction
from devnet.encoding import data
from devnet.errors import TRANSACTION_NOT_YET_MINED, RpcError
from devnet.node import Node

# geth's --rpc.txsync.defaulttimeout and --rpc.txsync.maxtimeout, in milliseconds
DEFAULT_WAIT_MS = 20_000
MAX_WAIT_MS = 60_000
METHODS = Methods()


@METHODS.named("eth_sendRawTransactionSync")
def send_raw_transaction_sync(node: Node, params: Params) -> Deferred:
    """Submit signed bytes and answer with the receipt, within so many milliseconds (20000, at most 60000)."""
    wait_ms = _wait_ms(params)
    return _receipt_of(node, node.submit(params.data(0)), wait_ms)


@METHODS.named("eth_sendTransactionSync")
def send_transaction_sync(node: Node, params: Params) -> Deferred:
    """As eth_sendTransaction, answered with the receipt."""
    wait_ms = _wait_ms(params)
    return _receipt_of(node, node.submit_decoded(signed(node, params.fields(0))), wait_ms)


def _wait_ms(params: Params) -> int:
    return min(params.number(1, 0) or DEFAULT_WAIT_MS, MAX_WAIT_MS)


def _receipt_of(node: Node, tx: Transaction, wait_ms: int) -> Deferred:
    async def wait() -> shapes.Json:
        over = asyncio.Event()

        def look(_event: object) -> None:
            if node.chain.find(tx.hash):
                over.set()

        stop_listening = node.feed.listen(look)
        timeout = node.clock.call_at(node.clock.elapsed() + wait_ms / 1000, over.set)
        try:
            look(None)
            await over.wait()
        finally:
            stop_listening()
            timeout.cancel()
        found = node.chain.find(tx.hash)
        if found is None:
            text = "The transaction was added to the transaction pool but wasn't processed in "
            raise RpcError(TRANSACTION_NOT_YET_MINED, text + _duration(wait_ms), data(tx.hash))
        return shapes.receipt(*found)

    return Deferred(wait)


def _duration(milliseconds: int) -> str:
    """A time span as geth writes it: `500ms`, `1.5s`, `1m0s`."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    seconds = f"{rest / 1000:g}s"
    return f"{minutes}m{seconds}" if minutes else seconds
