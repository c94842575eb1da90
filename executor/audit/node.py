"""Asking a chain: the endpoints of one chain, batches of calls, answers as exact values."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from chain.errors import ChainError
from chain.rpc import Rpc
from executor.errors import ConfigError, Unreachable

_BATCH = 100


@dataclass(frozen=True, slots=True)
class Mined:
    """A receipt: the block it names and the status, 1 for success."""

    number: int
    block_hash: bytes
    status: int


class Node:
    """The endpoints given for one chain; the first that answers is asked, the others for what it does not have.

    Raises:
        Unreachable: none of them answers.
        ConfigError: one of them serves another chain, or is no http address.
    """

    def __init__(self, chain_id: int, urls: Sequence[str]) -> None:
        self.chain_id = chain_id
        self._answering: list[Rpc] = []
        self._blocks: dict[int, bytes | None] = {}
        failed = ""
        try:
            endpoints = [Rpc(url, timeout_seconds=30.0) for url in urls]
        except ValueError as error:
            raise ConfigError(f"the endpoints of chain {chain_id}: {error}.") from None
        for endpoint in endpoints:
            try:
                found = int(endpoint.call("eth_chainId"), 16)
            except (ChainError, TypeError, ValueError) as error:
                failed = str(error)
                continue
            if found != chain_id:
                raise ConfigError(f"{endpoint.label} serves chain {found}, not {chain_id}: correct its endpoints.")
            self._answering.append(endpoint)
        if not self._answering:
            raise Unreachable(
                f"no endpoint of chain {chain_id} answers: {failed or 'none was given'}; ask again when one does."
            )

    def close(self) -> None:
        """Close the connections."""
        for endpoint in self._answering:
            endpoint.close()

    def head(self) -> int:
        """The highest block number any endpoint has. Raises Unreachable."""
        with self._shapes("block number"):
            return max(int(self._ask(endpoint, [("eth_blockNumber", ())])[0], 16) for endpoint in self._answering)

    def tagged(self, tag: str) -> int | None:
        """The number of the block the node calls safe or finalized, None while there is none. Raises Unreachable."""
        block = self._ask(self._answering[0], [("eth_getBlockByNumber", (tag, False))])[0]
        with self._shapes("block"):
            return None if block is None else int(block["number"], 16)

    def nonce(self, address: bytes, number: int) -> int:
        """The account's transaction count at a block. Raises Unreachable, also when no node has that state any more."""
        with self._shapes("transaction count"):
            return int(self._ask_any([("eth_getTransactionCount", ("0x" + address.hex(), hex(number)))])[0], 16)

    def block_hashes(self, numbers: Sequence[int]) -> dict[int, bytes | None]:
        """The canonical hashes at these heights, None where the node has no block; asked once in an audit. Raises Unreachable."""
        missing = sorted({number for number in numbers if number not in self._blocks})
        calls = [("eth_getBlockByNumber", (hex(number), False)) for number in missing]
        with self._shapes("block"):
            for number, block in zip(missing, self._fill(calls), strict=True):
                self._blocks[number] = None if block is None else bytes.fromhex(block["hash"][2:])
        return {number: self._blocks[number] for number in numbers}

    def receipts(self, hashes: Sequence[bytes]) -> dict[bytes, Mined | None]:
        """Receipts by transaction hash, None where no endpoint has one. Raises Unreachable."""
        answers = self._fill([("eth_getTransactionReceipt", ("0x" + one.hex(),)) for one in hashes])
        with self._shapes("receipt"):
            return {
                one: None
                if found is None
                else Mined(
                    int(found["blockNumber"], 16), bytes.fromhex(found["blockHash"][2:]), int(found["status"], 16)
                )
                for one, found in zip(hashes, answers, strict=True)
            }

    @contextmanager
    def _shapes(self, what: str) -> Iterator[None]:
        """An answer of another shape is no answer."""
        try:
            yield
        except (KeyError, TypeError, ValueError):
            raise Unreachable(
                f"chain {self.chain_id} answered something that is no {what}; ask another endpoint."
            ) from None

    def _fill(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Answers from the first endpoint, and from the next ones for what came back empty."""
        answers = self._ask(self._answering[0], calls)
        for endpoint in self._answering[1:]:
            empty = [i for i, answer in enumerate(answers) if answer is None]
            for i, answer in zip(empty, self._ask(endpoint, [calls[i] for i in empty]), strict=True):
                answers[i] = answer
        return answers

    def _ask_any(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        failed: Unreachable | None = None
        for endpoint in self._answering:
            try:
                return self._ask(endpoint, calls)
            except Unreachable as error:
                failed = error
        assert failed is not None
        raise failed

    def _ask(self, endpoint: Rpc, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        answers: list[Any] = []
        try:
            for at in range(0, len(calls), _BATCH):
                answers += endpoint.batch(calls[at : at + _BATCH])
        except ChainError as error:
            raise Unreachable(f"chain {self.chain_id}: {error}; ask again when it answers.") from None
        for answer in answers:
            if isinstance(answer, ChainError):
                raise Unreachable(f"chain {self.chain_id}: {answer}; ask again, or ask another endpoint.")
        return answers
