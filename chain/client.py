"""The questions we ask a chain, answered in our own types, over one or several endpoints.

Reads go to the first endpoint that answers, starting with the one that did last; an endpoint is read from only after
its chain id and genesis block were checked. Sends go to every endpoint and always come back as verdicts.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from chain import agreement, answers
from chain.agreement import Agreement, Claim
from chain.answers import Estimate, EstimateCall, Spending
from chain.errors import ChainError, Inconsistent, Malformed, RpcError, Unavailable, WrongChain
from chain.keccak import keccak
from chain.rpc import Call, Result, Rpc
from chain.sending import send_to
from chain.submission import SendAnswer, Verdict, classify
from chain.types import BlockRef, ChainView, FinalityRule, Receipt, checksum
from chain.views import DifferentHeights, Views

T = TypeVar("T")

ROUNDS = 2
"""How often a read goes round the endpoints before it gives up."""


class ChainClient:
    """One chain through its endpoints, safe to share between threads.

    Reads raise Unavailable when no endpoint gave a usable answer, WrongChain and Inconsistent when one is not what the
    configuration says, RpcError when the node refuses the question itself. `retries` counts the reads that had to be
    asked again, `posts` every HTTP request.
    """

    def __init__(
        self,
        name: str,
        chain_id: int,
        endpoints: Sequence[str],
        finality: FinalityRule,
        *,
        timeout_seconds: float = 10.0,
    ) -> None:
        if not endpoints:
            raise ValueError(f"the chain {name} has no endpoint")
        self.name = name
        self.chain_id = chain_id
        self.finality = finality
        self._rpcs = [Rpc(url, timeout_seconds=timeout_seconds) for url in endpoints]
        self.labels = _labels(self._rpcs)
        self._lock = threading.Lock()
        self._verified: set[int] = set()
        self._genesis: bytes | None = None
        self._preferred = 0
        self._views = Views(finality, chain_id)
        self._retries = 0
        self._beside: ThreadPoolExecutor | None = None

    def __repr__(self) -> str:
        return f"ChainClient({self.name}, {self.chain_id}, {', '.join(self.labels)})"

    @property
    def posts(self) -> int:
        """HTTP requests made so far, over all endpoints."""
        return sum(rpc.posts for rpc in self._rpcs)

    @property
    def retries(self) -> int:
        """Reads that were asked again because an endpoint gave no usable answer."""
        return self._retries

    def close(self) -> None:
        """Close all connections and the sending threads."""
        if self._beside is not None:
            self._beside.shutdown(wait=True)
        for rpc in self._rpcs:
            rpc.close()

    def check_identity(self) -> bytes:
        """Ask every endpoint for its chain id and genesis block; return the genesis hash.

        Raises WrongChain naming the endpoint and both ids, Inconsistent if two endpoints (or one, now and earlier)
        have different genesis blocks, Unavailable if none answers. One that does not answer is checked before it is
        first read from.
        """
        failure: ChainError | None = None
        for index in range(len(self._rpcs)):
            try:
                self._verify(index)
            except (Unavailable, Malformed, RpcError) as error:
                failure = failure or error
        if self._genesis is None or not self._verified:
            raise Unavailable(f"no endpoint of {self.name} told its chain id") from failure
        return self._genesis

    def view(self, address: bytes) -> ChainView:
        """Everything a tick needs, from one endpoint, in one post, or two when the final block has moved.

        The final block is asked for by the number it had last time, with the account's nonce at that number; if the
        rule now names another, a second post asks at the right one. So `final` and `nonce_final` belong together.

        Where the answers of every endpoint come from different heights, nothing is final in the view, and the rest of it
        is what a node behind a load balancer is good for: enough to send, not to conclude.
        """
        without_final: list[ChainView] = []

        def ask(rpc: Rpc) -> ChainView:
            try:
                return self._views.ask(rpc, address)
            except DifferentHeights as error:
                without_final.append(error.without_final)
                raise

        try:
            return self._read(ask)
        except (Unavailable, RpcError):
            if not without_final:
                raise
            return without_final[-1]

    def receipts(self, hashes: Sequence[bytes]) -> list[Receipt | None]:
        """The receipts of these transactions, in order; None for one that is in no block this endpoint knows."""
        calls = [("eth_getTransactionReceipt", [answers.hex_of(item)]) for item in hashes]

        def read(replies: list[Result]) -> list[Receipt | None]:
            return [answers.receipt(reply, item) for reply, item in zip(replies, hashes, strict=True)]

        return self._ask(calls, read)

    def proofs(self, claims: Sequence[Claim], final: BlockRef) -> Agreement:
        """Ask every endpoint whether these transactions stand in these blocks, with `final` above them (G10).

        Raises Unavailable if none answers.
        """
        opinions = self._everywhere(lambda rpc: agreement.opinion(rpc, claims, final))
        if not opinions:
            raise Unavailable(f"no endpoint of {self.name} told what became of {len(claims)} transactions")
        return agreement.weigh(opinions, len(claims))

    def without_receipt(self, hashes: Sequence[bytes], sender: bytes, nonce: int, final: BlockRef) -> list[str]:
        """The endpoints at or past `final` where `nonce` is used at that block and none of these has a receipt (P5).

        Every endpoint is asked; none is returned if one of them says otherwise.
        """
        said = self._everywhere(lambda rpc: agreement.nothing_of_ours(rpc, hashes, sender, nonce, final))
        return [] if False in said.values() else [label for label, is_so in said.items() if is_so]

    def canonical_hashes(self, numbers: Sequence[int]) -> dict[int, bytes | None]:
        """The hash of the block at each height, by one endpoint; None above its head."""
        wanted = sorted(set(numbers))

        def read(replies: list[Result]) -> dict[int, bytes | None]:
            pairs = zip(wanted, replies, strict=True)
            return {number: None if reply is None else answers.head(reply, number).hash for number, reply in pairs}

        return self._ask([("eth_getBlockByNumber", [hex(number), False]) for number in wanted], read)

    def estimate(self, calls: Sequence[EstimateCall]) -> list[Estimate]:
        """Try calls on the latest block. A revert, and any other refusal by the node, is a value in its place."""
        requests = [answers.estimate_call(call) for call in calls]
        return self._ask(requests, lambda replies: [answers.estimate(reply) for reply in replies], errors=True)

    def code(self, address: bytes) -> bytes:
        """The code at an address on the latest block; empty for an ordinary account, not so after EIP-7702."""
        return self._ask([("eth_getCode", [checksum(address), "latest"])], lambda replies: answers.data(replies[0]))

    def transaction(self, hash: bytes) -> dict[str, Any] | None:  # noqa: A002  (the word of the domain)
        """A transaction as the node shows it, or None if it does not know it."""
        calls = [("eth_getTransactionByHash", [answers.hex_of(hash)])]
        return self._ask(calls, lambda replies: answers.transaction(replies[0]))

    def find_spending(self, sender: bytes, nonce: int, first: int, last: int) -> Spending | None:
        """The transaction that used a nonce of `sender` in the blocks `first` to `last`, found by halving.

        None if it is not there, if the nonce was used without a transaction (EIP-7702), or if the node keeps no state
        that old. Raises RpcError where a node is asked too fast.
        """
        low, high = first, last
        try:
            while low < high:
                middle = (low + high) // 2
                counting: list[Call] = [("eth_getTransactionCount", [checksum(sender), hex(middle)])]
                count = self._ask(counting, lambda replies: answers.quantity(replies[0]))
                low, high = (low, middle) if count > nonce else (middle + 1, high)
            whole: list[Call] = [("eth_getBlockByNumber", [hex(low), True])]
            return self._ask(whole, lambda replies: answers.spending(replies[0], sender, nonce))
        except RpcError as error:
            if classify(error.code, error.message) is Verdict.RATE_LIMITED:
                raise  # it would tell later: no evidence that there is nothing to find
            return None

    def send(self, raws: Sequence[bytes]) -> dict[str, list[SendAnswer]]:
        """Hand signed bytes to every endpoint, in order, and give each endpoint's answer for each. Never raises.

        Endpoints are served side by side. After a post that got no answer the rest for that endpoint is left unsent
        in this round, also AMBIGUOUS.
        """
        hashes = [keccak(raw) for raw in raws]
        if len(self._rpcs) == 1:
            return {self.labels[0]: send_to(self._rpcs[0], raws, hashes)}
        answered = self._side_by_side().map(lambda rpc: send_to(rpc, raws, hashes), self._rpcs)
        return dict(zip(self.labels, answered, strict=True))

    def _side_by_side(self) -> ThreadPoolExecutor:
        """Threads to ask endpoints beside one another: a dead one costs its time-out once."""
        with self._lock:
            if self._beside is None:
                self._beside = ThreadPoolExecutor(2 * len(self._rpcs), thread_name_prefix=f"endpoints-{self.name}")
            return self._beside

    def _everywhere(self, ask: Callable[[Rpc], T]) -> dict[str, T]:
        """What every endpoint of the right chain that answers says. Raises WrongChain and Inconsistent."""

        def one(index: int) -> list[T]:
            try:
                if index not in self._verified:
                    self._verify(index)
                return [ask(self._rpcs[index])]
            except (Unavailable, Malformed, RpcError):
                return []

        indices = range(len(self._rpcs))
        found = map(one, indices) if len(self._rpcs) == 1 else self._side_by_side().map(one, indices)
        return {label: said[0] for label, said in zip(self.labels, found, strict=True) if said}

    def _ask(self, calls: Sequence[Call], read: Callable[[list[Result]], T], *, errors: bool = False) -> T:
        """Batch on one endpoint. A call without a usable answer fails the read; so does an error unless wanted."""

        def ask(rpc: Rpc) -> T:
            replies = rpc.batch(calls)
            for reply in replies:
                if isinstance(reply, Malformed) or (isinstance(reply, RpcError) and not errors):
                    raise reply
            return read(replies)

        return self._read(ask) if calls else read([])

    def _read(self, ask: Callable[[Rpc], T]) -> T:
        """Ask endpoint after endpoint, the one that answered last first, `ROUNDS` times round."""
        failures: list[ChainError] = []
        first = self._preferred
        for turn in range(ROUNDS * len(self._rpcs)):
            index = (first + turn) % len(self._rpcs)
            try:
                if index not in self._verified:
                    self._verify(index)
                found = ask(self._rpcs[index])
            except (Unavailable, Malformed, RpcError) as error:
                failures.append(error)
                if isinstance(error, RpcError) and len(self._rpcs) == 1:
                    raise
                with self._lock:
                    self._retries += 1
                continue
            self._preferred = index
            return found
        refused = next((failure for failure in failures if isinstance(failure, RpcError)), None)
        raise refused or Unavailable(f"no endpoint of {self.name} answered: {failures[-1]}")

    def _verify(self, index: int) -> None:
        rpc = self._rpcs[index]
        chain_id, block = rpc.batch([("eth_chainId", []), ("eth_getBlockByNumber", ["0x0", False])])
        for reply in (chain_id, block):
            if isinstance(reply, ChainError):
                raise reply
        found = answers.quantity(chain_id)
        if found != self.chain_id:
            self._verified.discard(index)
            raise WrongChain(
                f"{self.labels[index]} serves chain {found}, but {self.name} is configured as chain {self.chain_id}"
            )
        genesis = answers.head(block, 0).hash
        with self._lock:
            if self._genesis is not None and genesis != self._genesis:
                self._verified.discard(index)
                raise Inconsistent(
                    f"{self.labels[index]} has the genesis block 0x{genesis.hex()}, "
                    f"but {self.name} had 0x{self._genesis.hex()}: it is another chain or was started anew"
                )
            self._genesis = genesis
            self._verified.add(index)


def _labels(rpcs: Sequence[Rpc]) -> list[str]:
    """Endpoint labels, told apart by a number where a host is named twice."""
    labels: list[str] = []
    for rpc in rpcs:
        twin = sum(label.partition("#")[0] == rpc.label for label in labels)
        labels.append(f"{rpc.label}#{twin + 1}" if twin else rpc.label)
    return labels
