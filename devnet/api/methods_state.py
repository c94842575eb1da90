"""eth_ methods that read accounts, now or at an older block."""

from collections.abc import Mapping

from devnet.api.block_reference import PENDING, Reference, resolve
from devnet.api.params import Params
from devnet.api.registry import Methods
from devnet.api.simulation import state_at
from devnet.codec.keccak import keccak
from devnet.codec.trie import Trie
from devnet.encoding import data, parse_address, parse_data, parse_hash, quantity
from devnet.errors import CLIENT_LIMIT_EXCEEDED, InvalidParams, RpcError
from devnet.evm.state_root import put_slot
from devnet.evm.world import Column
from devnet.node import Node

MAX_STORAGE_VALUES = 1024
METHODS = Methods()


def _read(node: Node, column: Column, key: bytes | int, reference: Reference) -> object:
    if reference.pending:
        with state_at(node, reference):
            return column.get(key)
    if reference.block is node.chain.head:
        return column.get(key)
    node.check_known(reference.block.number)
    return column.at(key, reference.block.number)


@METHODS.named("eth_getBalance")
def get_balance(node: Node, params: Params) -> str:
    """Wei held by an account after a block."""
    value = _read(node, node.world.balances, params.address(0), resolve(node, params.optional(1)))
    return quantity(value if isinstance(value, int) else 0)


@METHODS.named("eth_getTransactionCount")
def get_transaction_count(node: Node, params: Params) -> str:
    """An account's nonce after a block; with `pending`, after its contiguous transactions in the pool."""
    address = params.address(0)
    if params.optional(1) == PENDING:
        return quantity(node.pool.next_nonce(address))
    value = _read(node, node.world.nonces, address, resolve(node, params.optional(1)))
    return quantity(value if isinstance(value, int) else 0)


@METHODS.named("eth_getCode")
def get_code(node: Node, params: Params) -> str:
    """Deployed code after a block."""
    value = _read(node, node.world.codes, params.address(0), resolve(node, params.optional(1)))
    return data(value if isinstance(value, bytes) else b"")


@METHODS.named("eth_getStorageAt")
def get_storage_at(node: Node, params: Params) -> str:
    """One 32-byte word of storage after a block."""
    address, slot = params.address(0), _slot(params)
    reference = resolve(node, params.optional(2))
    column = node.world.storages.get(address)
    value = _read(node, column, slot, reference) if column is not None else 0
    return data((value if isinstance(value, int) else 0).to_bytes(32, "big"))


@METHODS.named("eth_getStorageValues")
def get_storage_values(node: Node, params: Params) -> dict[str, list[str]]:
    """Several words of storage of several accounts after a block: `{address: [slot, …]}`."""
    wanted = {
        parse_address(address): [int.from_bytes(parse_hash(slot, "slot"), "big") for slot in Params([slots]).items(0)]
        for address, slots in params.fields(0).items()
    }
    count = sum(len(slots) for slots in wanted.values())
    if count == 0:
        raise InvalidParams("empty request")
    if count > MAX_STORAGE_VALUES:
        raise RpcError(CLIENT_LIMIT_EXCEEDED, f"too many slots (max {MAX_STORAGE_VALUES})")
    world = node.world
    with state_at(node, resolve(node, params.optional(1))):
        return {
            data(address): [data(world.slot(address, slot).to_bytes(32, "big")) for slot in slots]
            for address, slots in wanted.items()
        }


@METHODS.named("eth_getAccount")
def get_account(node: Node, params: Params) -> dict[str, str]:
    """An account as the state trie holds it after a block: nonce, balance, storage root and code hash."""
    address = params.address(0)
    world = node.world
    with state_at(node, resolve(node, params.optional(1))):
        return {
            "nonce": quantity(world.nonce(address)),
            "balance": quantity(world.balance(address)),
            "storageRoot": data(_storage_root(world.storages.get(address, {}))),
            "codeHash": data(keccak(world.code(address))),
        }


def _storage_root(slots: Mapping[int, int]) -> bytes:
    trie = Trie()
    for slot, value in slots.items():
        put_slot(trie, slot, value)
    return trie.root()


@METHODS.named("eth_getAccountInfo")
def get_account_info(node: Node, params: Params) -> dict[str, str]:
    """An account's nonce, balance and code after a block."""
    address = params.address(0)
    world = node.world
    with state_at(node, resolve(node, params.optional(1))):
        return {
            "balance": quantity(world.balance(address)),
            "nonce": quantity(world.nonce(address)),
            "code": data(world.code(address)),
        }


def _slot(params: Params) -> int:
    """A slot number as quantity or as bytes with leading zeros, 32 at most."""
    value = params.required(1)
    if isinstance(value, str) and value.startswith("0x"):
        digits = value[2:]
        raw = parse_data("0x" + "0" * (len(digits) % 2) + digits, "storage slot")
        if len(raw) > 32:
            raise InvalidParams(f"storage slot too long (want at most 32 bytes): {value}")
        return int.from_bytes(raw, "big")
    return params.number(1)
