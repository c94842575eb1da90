"""What eth_sendTransaction and its kin make of a request: gaps filled in as geth fills them, then signed or impersonated."""

from dataclasses import replace

from devnet.accounts import sent_as, sign, unsigned
from devnet.api.block_reference import Reference
from devnet.api.call_request import CallRequest, parse_call
from devnet.api.gas_estimation import estimate
from devnet.api.methods_fees import suggested_price, suggested_tip
from devnet.api.params import Fields
from devnet.api.simulation import context_of, state_at
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.transaction import ACCESS_LIST, BLOB, DYNAMIC_FEE, LEGACY, SET_CODE, Transaction
from devnet.encoding import parse_quantity, quantity
from devnet.errors import SERVER_ERROR, Rejected, RpcError
from devnet.node import Node


def signed(node: Node, fields: Fields, key: bytes | None = None) -> Transaction:
    """The transaction of a request, by this key, its sender's or impersonation. Raises RpcError where there is none."""
    sender = sender_of(fields)
    key = key or node.keys.get(sender)
    if key is None and not node.impersonation.covers(sender):
        raise node.profile.error(Rejected("unknown_account"))
    kind, items = filled(node, fields)
    if kind == BLOB:
        raise RpcError(SERVER_ERROR, "signing blob transactions not supported")
    if key is None:
        return sent_as(sender, unsigned(kind, node.settings.chain_id, items))
    return sign(key, kind, node.settings.chain_id, items)


def taken_at_its_word(node: Node, fields: Fields) -> Transaction:
    """The transaction of a request as its sender's, whoever that is."""
    return sent_as(sender_of(fields), without_signature(node, fields))


def without_signature(node: Node, fields: Fields) -> Transaction:
    """The transaction of a request, filled in and not signed."""
    kind, items = filled(node, fields)
    return unsigned(kind, node.settings.chain_id, items)


def sender_of(fields: Fields) -> bytes:
    """Who a request is from; the zero address where it does not say, as with geth."""
    return parse_call(fields).sender or bytes(20)


def rlp_fields(request: CallRequest) -> dict[str, Item]:
    """The fields of a request as RLP items by their names in the EIPs; what it leaves open is zero or empty."""
    numbers = {
        "nonce": request.nonce,
        "gasPrice": request.gas_price,
        "maxPriorityFeePerGas": request.max_priority_fee,
        "maxFeePerGas": request.max_fee,
        "maxFeePerBlobGas": request.max_blob_fee,
        "gas": request.gas,
        "value": request.value,
    }
    authorizations = [
        tuple(
            item if isinstance(item, bytes) else integer(item)
            for item in (entry.chain_id, entry.address, entry.nonce, entry.y_parity, entry.r, entry.s)
        )
        for entry in request.authorizations or ()
    ]
    fields: dict[str, Item] = {name: integer(number or 0) for name, number in numbers.items()}
    fields["to"] = request.to or b""
    fields["data"] = request.data
    fields["accessList"] = request.access_list or ()
    fields["blobVersionedHashes"] = request.blob_hashes or ()
    fields["authorizationList"] = authorizations
    return fields


def filled(node: Node, fields: Fields) -> tuple[int, dict[str, Item]]:
    """Type and RLP fields of the whole transaction: nonce, gas and prices are chosen where it leaves them open.

    Raises RpcError in geth's words for what contradicts itself or the chain.
    """
    given = parse_call(fields)
    if given.to is None:
        _check_creation(node, given)
    want = node.settings.chain_id
    if given.chain_id not in {None, want}:
        raise RpcError(SERVER_ERROR, f"chainId does not match node's (have={given.chain_id}, want={want})")
    kind = _type(given, fields.get("type"))
    request = _priced(node, given, kind)
    if request.nonce is None:
        request = replace(request, nonce=node.pool.next_nonce(request.sender or bytes(20)))
    if request.gas is None:
        pending = Reference(node.chain.head, pending=True)
        with state_at(node, pending):
            # Without the chosen prices: geth judges funds at an estimate by the prices the request itself names.
            request = replace(request, gas=estimate(node, context_of(node, pending), given))
    return kind, rlp_fields(request)


def _check_creation(node: Node, request: CallRequest) -> None:
    if request.blob_hashes is not None:
        raise RpcError(SERVER_ERROR, 'missing "to" in blob transaction')
    if not request.data:
        raise node.profile.error(Rejected("contract_creation_without_data"))
    if request.authorizations is not None:
        text = 'authorizationList provided for contract creation, but "to" field is missing'
        raise RpcError(SERVER_ERROR, text)


def _type(request: CallRequest, named: object) -> int:
    """The type a request needs for what it names; a `type` in it decides where it leaves a choice."""
    if request.authorizations is not None:
        if request.gas_price is not None:
            raise RpcError(SERVER_ERROR, "both gasPrice and authorizationList specified")
        return SET_CODE
    if request.blob_hashes is not None:
        return BLOB
    wanted = None if named is None else parse_quantity(named, "type")
    if request.gas_price is not None or wanted in {LEGACY, ACCESS_LIST}:
        return ACCESS_LIST if request.access_list is not None or wanted == ACCESS_LIST else LEGACY
    return DYNAMIC_FEE


def _priced(node: Node, request: CallRequest, kind: int) -> CallRequest:
    """With fees: those it names, else twice the base fee and a tip, as geth chooses."""
    if kind in {LEGACY, ACCESS_LIST}:
        price = suggested_price(node) if request.gas_price is None else request.gas_price
        if price == 0:
            raise RpcError(SERVER_ERROR, "gasPrice must be non-zero after london fork")
        return replace(request, gas_price=price)
    tip, cap = request.max_priority_fee, request.max_fee
    if tip is None:
        tip = suggested_tip(node) if cap is None else min(suggested_tip(node), cap)
    if cap is None:
        cap = tip + 2 * node.miner.next_context().base_fee
    if cap < tip:
        text = f"maxFeePerGas ({quantity(cap)}) < maxPriorityFeePerGas ({quantity(tip)})"
        raise RpcError(SERVER_ERROR, text)
    return replace(request, max_priority_fee=tip, max_fee=cap)
