"""What a strategy is given: its execution, its account, and a reader of the chain pinned to one block.

Imported through `executor.strategy`. The reader speaks JSON-RPC itself, so that a strategy that only asks for
balances never pays for web3; `contract` imports web3 on first use. Every read names the block by hash (EIP-1898):
two reads of one plan can never see two chains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final, cast

from executor.units import parse_address

READ_TIMEOUT_SECONDS: Final = 5.0
_PINNED: Final = {
    "eth_call": 1,
    "eth_getBalance": 1,
    "eth_getCode": 1,
    "eth_getStorageAt": 2,
    "eth_getTransactionCount": 1,
}
_BLOCK_GONE: Final = re.compile(
    r"(header|block)[^.]*(not found|out of range|unavailable)|unknown (header|block)|-32001\b", re.IGNORECASE
)
_ALLOWED: Final = frozenset(
    {*_PINNED, "eth_chainId", "net_version", "web3_clientVersion", "eth_getLogs", "eth_getBlockByHash"}
)


class ChainUnreachable(Exception):
    """A chain read got no answer from the node; let it pass through, the plan is then tried again later."""


class ChainRefused(ValueError):
    """The node answered a chain read with an error, such as a reverted call; the message is the node's."""


@dataclass(frozen=True)
class Block:
    """The block all reads of a plan are pinned to."""

    number: int
    hash: str


@dataclass(frozen=True)
class Context:
    """What a plan may know. It holds no key and no database.

    `slot` is the aware UTC instant this execution stands for, or None for a trigger without one. `input` is the
    JSON value stored with the execution before the plan ran. `account` is a checksummed address.
    """

    execution_id: str
    slot: datetime | None
    strategy: str
    params: dict[str, Any]
    input: Any
    account: str
    chain_id: int
    block: Block
    chain: ChainReader = field(repr=False)


class ChainReader:
    """Reads of the chain, all at one block.

    Every method raises ChainUnreachable when no node answers, and ChainRefused when it answers with an error.
    """

    def __init__(self, endpoint_url: str, block: Block, account: str) -> None:
        self._url, self._block, self._account = endpoint_url, block, account

    def balance(self, address: str) -> int:
        """The balance of `address` in wei. Raises ValueError on a mistyped address."""
        return _quantity(self.request("eth_getBalance", [_address(address), None]))

    def code(self, address: str) -> bytes:
        """The code at `address`, empty for a plain account. Raises ValueError on a mistyped address."""
        return _bytes(self.request("eth_getCode", [_address(address), None]))

    def call(self, to: str, data: bytes = b"") -> bytes:
        """What a call from the strategy's account to `to` with `data` returns; nothing is sent.

        Raises:
            ChainRefused: the call reverts.
        """
        if not isinstance(data, (bytes, bytearray)):
            raise TypeError("data must be bytes")
        request = {"from": self._account, "to": _address(to), "data": "0x" + bytes(data).hex()}
        return _bytes(self.request("eth_call", [request, None]))

    def contract(self, address: str, abi: Sequence[Mapping[str, Any]]) -> Any:
        """A web3 contract whose `.functions.name(…).call()` reads at the pinned block."""
        _address(address)
        return self._web3.eth.contract(address=address, abi=abi)

    def request(self, method: str, params: list[Any]) -> Any:
        """The result of one read-only JSON-RPC request; its block parameter is replaced by the pinned block."""
        answer = self.exchange(method, params)
        if "error" in answer:
            error = answer["error"]
            raise ChainRefused(str(error.get("message", error) if isinstance(error, dict) else error)[:300])
        return answer.get("result")

    def exchange(self, method: str, params: Sequence[Any]) -> dict[str, Any]:
        """The whole JSON-RPC answer to one read, pinned to the block; what `contract` reads through."""
        if method not in _ALLOWED:
            raise ChainRefused(f"{method} is no read a strategy may do; return a Call to change something")
        pinned = list(params)
        position = _PINNED.get(method)
        if position is not None:
            pinned = [*pinned[:position], {"blockHash": self._block.hash}, *pinned[position + 1 :]]
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": pinned}).encode()
        import urllib3

        try:
            reply = _pool().request("POST", self._url, body=body, headers={"content-type": "application/json"})
            answer = json.loads(reply.data)
        except (urllib3.exceptions.HTTPError, ValueError, OSError) as error:
            raise ChainUnreachable(f"no answer to {method} ({type(error).__name__})") from None
        answered = isinstance(answer, dict) and ("result" in answer or "error" in answer)
        if not answered or reply.status == 429 or reply.status >= 500:
            raise ChainUnreachable(f"no answer to {method} but HTTP {reply.status}")
        refusal = json.dumps(answer.get("error"))
        if position is not None and "revert" not in refusal and _BLOCK_GONE.search(refusal):
            raise ChainUnreachable(f"the node does not know the block of this plan ({self._block.number})")
        return cast("dict[str, Any]", answer)

    @cached_property
    def _web3(self) -> Any:
        return _web3(self)


_POOLS: dict[str, Any] = {}


def _pool() -> Any:
    """One connection pool per process, so that a warm child keeps its connection."""
    if "http" not in _POOLS:
        import urllib3

        timeout = urllib3.Timeout(connect=2.0, read=READ_TIMEOUT_SECONDS)
        _POOLS["http"] = urllib3.PoolManager(maxsize=4, retries=False, timeout=timeout)
    return _POOLS["http"]


def _web3(reader: ChainReader) -> Any:
    """A web3 whose provider is the pinned reader: it cannot read elsewhere or send."""
    from web3 import Web3
    from web3.providers import BaseProvider
    from web3.types import RPCEndpoint, RPCResponse

    class PinnedProvider(BaseProvider):
        def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
            return {"jsonrpc": "2.0", "id": 1, **reader.exchange(method, params)}  # type: ignore[typeddict-item]

    return Web3(PinnedProvider())


def _address(text: object) -> str:
    parse_address(text)
    return str(text)


def _quantity(value: object) -> int:
    try:
        return int(str(value), 16)
    except ValueError:
        raise ChainUnreachable("the node's answer is no number") from None


def _bytes(value: object) -> bytes:
    try:
        return bytes.fromhex(str(value).removeprefix("0x"))
    except ValueError:
        raise ChainUnreachable("the node's answer is no hex text") from None
