"""Methods that sign, or send for accounts whose keys the devnet holds."""

import json

from devnet.accounts import sign_digest, sign_text
from devnet.api import shapes
from devnet.api.params import Fields, Params
from devnet.api.registry import Methods
from devnet.api.transaction_request import signed, taken_at_its_word, without_signature
from devnet.codec.keccak import keccak
from devnet.encoding import data
from devnet.errors import InvalidParams, Rejected
from devnet.node import Node

METHODS = Methods()


@METHODS.named("eth_accounts", "eth_requestAccounts")
def accounts(node: Node, _params: Params) -> list[str]:
    """The development accounts and the impersonated ones, which eth_sendTransaction sends for."""
    return [data(address) for address in [*node.keys, *sorted(node.impersonation.addresses - node.keys.keys())]]


@METHODS.named("eth_sendTransaction")
def send_transaction(node: Node, params: Params) -> str:
    """Sign for a development account or send as an impersonated one, filling in what is missing, and submit."""
    return data(node.submit_decoded(signed(node, params.fields(0))).hash)


@METHODS.named("eth_sendUnsignedTransaction")
def send_unsigned_transaction(node: Node, params: Params) -> str:
    """As eth_sendTransaction for any sender, impersonated or not (anvil)."""
    return data(node.submit_decoded(taken_at_its_word(node, params.fields(0))).hash)


@METHODS.named("eth_signTransaction")
def sign_transaction(node: Node, params: Params) -> shapes.Json:
    """As eth_sendTransaction without the submission (geth's shape: raw and tx)."""
    return shapes.raw_and_fields(signed(node, params.fields(0)))


@METHODS.named("eth_fillTransaction")
def fill_transaction(node: Node, params: Params) -> shapes.Json:
    """The transaction of a request with nothing left open, unsigned."""
    return shapes.raw_and_fields(without_signature(node, params.fields(0)))


@METHODS.named("eth_sign")
def sign(node: Node, params: Params) -> str:
    """Sign a text for an account (EIP-191)."""
    return data(sign_text(_key(node, params.address(0)), params.data(1)))


@METHODS.named("personal_sign")
def personal_sign(node: Node, params: Params) -> str:
    """As eth_sign with its parameters the other way round."""
    return data(sign_text(_key(node, params.address(1)), params.data(0)))


@METHODS.named("eth_signTypedData_v4", "eth_signTypedData_v3", "eth_signTypedData")
def sign_typed_data(node: Node, params: Params) -> str:
    """Sign structured data for an account (EIP-712), given as an object or as its JSON."""
    from eth_account.messages import encode_typed_data

    key = _key(node, params.address(0))
    try:
        message = encode_typed_data(full_message=dict(_typed_data(params)))
    except Exception as problem:  # noqa: BLE001  (the encoder raises whatever the malformed part makes it trip over)
        raise InvalidParams(f"invalid argument 1: no typed data of EIP-712: {problem}") from None
    return data(sign_digest(key, keccak(b"\x19" + message.version + message.header + message.body)))


def _typed_data(params: Params) -> Fields:
    value = params.required(1)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise InvalidParams("invalid argument 1: want an object or its JSON") from None
    return Params([value]).fields(0)


def _key(node: Node, address: bytes) -> bytes:
    key = node.keys.get(address)
    if key is None:
        raise node.profile.error(Rejected("unknown_account"))
    return key
