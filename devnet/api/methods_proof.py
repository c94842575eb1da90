"""eth_getProof: an account and slots of its storage with the trie nodes that prove them (EIP-1186)."""

from typing import Final

from devnet.api.block_reference import resolve
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.replay import branched_at
from devnet.codec.blocks import ZERO_HASH
from devnet.codec.keccak import keccak
from devnet.encoding import data, quantity
from devnet.errors import CLIENT_LIMIT_EXCEEDED, InvalidParams, RpcError
from devnet.node import Node

METHODS = Methods()
_MAX_SLOTS: Final = 1024
_HASH_DIGITS: Final = 64


@METHODS.named("eth_getProof")
def get_proof(node: Node, params: Params) -> dict[str, object]:
    """An account after a block, and its storage at some slots, with proofs against the block's state root."""
    address = params.address(0)
    keys = [_slot(key) for key in params.items(1)]
    if len(keys) > _MAX_SLOTS:
        raise RpcError(CLIENT_LIMIT_EXCEEDED, f"too many slots (max {_MAX_SLOTS})")
    world = node.world
    with branched_at(node, resolve(node, params.optional(2)).block):
        proof = node.miner.state_root.prove(address, [slot for slot, _ in keys])
        none = world.is_empty(address)  # geth has zeros for an account that is none
        return {
            "address": data(address),
            "accountProof": [data(entry) for entry in proof.account],
            "balance": quantity(world.balance(address)),
            "codeHash": data(ZERO_HASH if none else keccak(world.code(address))),
            "nonce": quantity(world.nonce(address)),
            "storageHash": data(ZERO_HASH if none else proof.storage_root),
            "storageProof": [
                {"key": name, "value": quantity(world.slot(address, slot)), "proof": [data(entry) for entry in entries]}
                for (slot, name), entries in zip(keys, proof.slots, strict=True)
            ],
        }


def _slot(key: object) -> tuple[int, str]:
    """A slot's number, and its name as geth gives it back: in full where it came in full, else as a quantity."""
    if not isinstance(key, str):
        raise InvalidParams("invalid argument 1: a storage key is no string")
    digits = key[2:] if key[:2] in {"0x", "0X"} else key
    if len(digits) > _HASH_DIGITS:
        raise InvalidParams(f"storage key too long (want at most 32 bytes): {key!r}")
    try:
        number = int(digits or "0", 16)
    except ValueError:
        raise InvalidParams(f"unable to decode storage key: {key!r} is not hex") from None
    return number, data(number.to_bytes(32, "big")) if len(digits) == _HASH_DIGITS else quantity(number)
