"""What fault rules are asked about a call, read off its parameters without judging them."""

from dataclasses import dataclass
from typing import cast

from devnet.codec.transaction import Transaction, decode
from devnet.encoding import parse_address, parse_data, parse_hash, parse_quantity
from devnet.errors import DecodeError, InvalidParams, Rejected
from devnet.faults.call import Call
from devnet.ledger import Origin

RAW = frozenset({"eth_sendRawTransaction", "eth_sendRawTransactionSync"})
_REQUESTS = frozenset(
    {"eth_sendTransaction", "eth_sendTransactionSync", "eth_call", "eth_estimateGas", "eth_fillTransaction"}
)


@dataclass(frozen=True, slots=True)
class Item:
    """One element of a body: the request as it came, and what rules see of it; None where it is no call."""

    request: dict[str, object]
    call: Call
    raw: bytes | None = None
    tx: Transaction | None = None


def read(request: object, origin: Origin, node: int | None, *, in_batch: bool) -> Item | None:
    """The facts of one call; None for what is none. A bad transaction or parameter leaves them open."""
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        return None
    fields = cast("dict[str, object]", request)
    method = cast("str", fields["method"])
    params = fields.get("params")
    first = params[0] if isinstance(params, list) and params else None
    raw = _raw(first) if method in RAW else None
    tx = _decoded(raw)
    sender, nonce, tx_hash = _about_tx(tx) if tx else _about(method, first)
    call = Call(method, sender, nonce, tx_hash, node, origin.connection, in_batch)
    return Item(fields, call, raw, tx)


def _raw(value: object) -> bytes | None:
    try:
        return parse_data(value)
    except InvalidParams:
        return None


def _decoded(raw: bytes | None) -> Transaction | None:
    try:
        return None if raw is None else decode(raw)
    except DecodeError:
        return None


def _about_tx(tx: Transaction) -> tuple[bytes | None, int | None, bytes | None]:
    try:
        return tx.sender, tx.nonce, tx.hash
    except Rejected:
        return None, tx.nonce, tx.hash


def _about(method: str, first: object) -> tuple[bytes | None, int | None, bytes | None]:
    """Sender, nonce and hash in the first parameter: an address, a hash, or a transaction request."""
    try:
        if method in _REQUESTS and isinstance(first, dict):
            sender, nonce = first.get("from"), first.get("nonce")
            return (
                None if sender is None else parse_address(sender),
                None if nonce is None else parse_quantity(nonce),
                None,
            )
        if isinstance(first, str) and len(first) == 42:
            return parse_address(first), None, None
        if isinstance(first, str) and len(first) == 66:
            return None, None, parse_hash(first)
    except InvalidParams:
        pass
    return None, None, None
