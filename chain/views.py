"""Asking an endpoint for a `ChainView`: all that a tick needs, in one post where that is possible.

The chain id is asked for each time: an endpoint that serves another chain from one day to the next is noticed at once.

The final block is asked for by the number it had last time, together with the account's nonce at that number. If the
chain's rule now names another block, a second post asks at the right number, so `final` and `nonce_final` always belong
together; with tags, which move every few minutes, that is rare, with a depth it happens once a block.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from chain import answers
from chain.errors import ChainError, RpcError, Unavailable, WrongChain
from chain.rpc import Call, Result, Rpc
from chain.types import ChainView, Depth, FinalityRule, Head, Tag, checksum

TIP_METHOD = "eth_maxPriorityFeePerGas"


class DifferentHeights(Unavailable):
    """Answers of one endpoint contradict each other, as behind a load balancer whose nodes are not in step.

    `without_final` is what they are good for: a view in which nothing is final.
    """

    def __init__(self, label: str, without_final: ChainView) -> None:
        super().__init__(f"the answers of {label} come from different heights")
        self.without_final = without_final


class Views:
    """Remembers, for one chain, the last final number and how its nodes are asked for a tip."""

    def __init__(self, finality: FinalityRule, chain_id: int) -> None:
        self._finality, self._chain_id = finality, chain_id
        self._guess = 0
        self._tip_method = TIP_METHOD

    def ask(self, rpc: Rpc, account: bytes) -> ChainView:
        """Ask this endpoint. Raises like a read of `ChainClient`, DifferentHeights if its answers contradict each other."""
        address, guess, tip_method = checksum(account), self._guess, self._tip_method
        calls: list[Call] = [
            ("eth_getBlockByNumber", ["latest", False]),
            ("eth_getTransactionCount", [address, "latest"]),
            ("eth_getTransactionCount", [address, "pending"]),
            ("eth_getBalance", [address, "latest"]),
            (tip_method, []),
            ("eth_chainId", []),
            *_at(guess, address),
        ]
        if isinstance(self._finality, Tag):
            calls.append(("eth_getBlockByNumber", [self._finality.tag, False]))
        replies = rpc.batch(calls)
        self._check_chain(rpc, replies[5])
        head = answers.head(_plain(replies[0]))
        latest, balance = (answers.quantity(_plain(reply)) for reply in (replies[1], replies[3]))
        tip_wei = self._tip(rpc, tip_method, replies[4], head)
        view = ChainView(head, None, latest, _pending(replies[2], latest), None, balance, tip_wei)
        number = self._final_number(head, replies[8:])
        if number is None:
            return view
        block, count = replies[6:8]
        if number != guess or block is None or isinstance(block, ChainError) or isinstance(count, ChainError):
            block, count = rpc.batch(_at(number, address))
            self._guess = number
        if block is None or number > head.number:
            raise DifferentHeights(rpc.label, view)
        final, nonce_final = answers.head(_plain(block), number).ref, answers.quantity(_plain(count))
        if nonce_final > latest:
            raise DifferentHeights(rpc.label, view)
        return replace(view, final=final, nonce_final=nonce_final)

    def _check_chain(self, rpc: Rpc, reply: Result) -> None:
        found = answers.quantity(_plain(reply))
        if found != self._chain_id:
            raise WrongChain(f"{rpc.label} serves chain {found} now, it is configured as chain {self._chain_id}")

    def _final_number(self, head: Head, tagged: Sequence[Result]) -> int | None:
        if isinstance(self._finality, Depth):
            return max(0, head.number - self._finality.depth)
        if tagged[0] is None or isinstance(tagged[0], RpcError):  # nothing final yet: null, or geth's "not found"
            return None
        return answers.head(_plain(tagged[0])).number

    def _tip(self, rpc: Rpc, method: str, reply: Result, head: Head) -> int:
        """The node's suggestion. Where it has no method for a tip, its gas price less the base fee, from then on."""
        if method == TIP_METHOD and isinstance(reply, RpcError):
            method = self._tip_method = "eth_gasPrice"
            reply = rpc.call(method)
        amount = answers.quantity(_plain(reply))
        return amount if method == TIP_METHOD else max(0, amount - head.base_fee_wei)


def _at(number: int, address: str) -> list[Call]:
    at = hex(number)
    return [("eth_getBlockByNumber", [at, False]), ("eth_getTransactionCount", [address, at])]


def _pending(reply: Result, latest: int) -> int | None:
    """A pending count below the latest one says nothing; some nodes have none."""
    try:
        return max(latest, answers.quantity(_plain(reply)))
    except ChainError:
        return None


def _plain(reply: Result) -> Any:
    if isinstance(reply, ChainError):
        raise reply
    return reply
