"""State and block overrides of calls, as geth's internal/ethapi/override takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from devnet.api.params import Fields
from devnet.encoding import checksum, parse_address, parse_data, parse_hash, parse_quantity
from devnet.errors import SERVER_ERROR, InvalidParams, RpcError
from devnet.evm.engine import BlockContext
from devnet.evm.world import World

_UNSUPPORTED: Final = ("beaconRoot", "withdrawals")


@dataclass(frozen=True, slots=True)
class AccountOverride:
    """What an account is to be like during a call; None leaves it. `state` is the whole storage, `diff` single slots.

    `precompile_to` moves the built-in code of this address to another.
    """

    address: bytes
    balance: int | None
    nonce: int | None
    code: bytes | None
    state: Mapping[int, int] | None
    diff: Mapping[int, int] | None
    precompile_to: bytes | None


def parse_state_overrides(value: object) -> Sequence[AccountOverride]:
    """Read the object; null is empty. Raises InvalidParams."""
    if value is None:
        return ()
    return [_account(parse_address(key), _object(fields, key)) for key, fields in _object(value, "overrides").items()]


def _object(value: object, name: str) -> Fields:
    if not isinstance(value, dict):
        raise InvalidParams(f"invalid argument: {name} is not an object")
    return cast("Fields", value)


def _account(address: bytes, fields: Fields) -> AccountOverride:
    def slots(name: str) -> Mapping[int, int] | None:
        value = fields.get(name)
        if value is None:
            return None
        return {_word(slot, "slot"): _word(word, "storage value") for slot, word in _object(value, name).items()}

    balance, nonce, code, target = map(fields.get, ("balance", "nonce", "code", "movePrecompileToAddress"))
    return AccountOverride(
        address=address,
        balance=None if balance is None else parse_quantity(balance, "balance"),
        nonce=None if nonce is None else parse_quantity(nonce, "nonce"),
        code=None if code is None else parse_data(code, "code"),
        state=slots("state"),
        diff=slots("stateDiff"),
        precompile_to=None if target is None else parse_address(target, "movePrecompileToAddress"),
    )


def _word(value: object, name: str) -> int:
    return int.from_bytes(parse_hash(value, name), "big")


def apply_state_overrides(world: World, context: BlockContext, overrides: Sequence[AccountOverride]) -> BlockContext:
    """Write the overrides into the world, which the caller reverts; the context has the precompiles left after it.

    Raises RpcError for those that exclude each other.
    """
    precompiles = dict(_precompiles(context))
    overridden = {item.address for item in overrides}
    moved: set[bytes] = set()
    for item in overrides:
        if item.address in moved:
            text = f"account {checksum(item.address)} has already been overridden by a precompile"
            raise RpcError(SERVER_ERROR, text)
        source = precompiles.get(item.address)
        if item.precompile_to is not None:
            if source is None:
                raise RpcError(SERVER_ERROR, f"account {checksum(item.address)} is not a precompile")
            if item.precompile_to in overridden:
                raise RpcError(SERVER_ERROR, f"account {checksum(item.precompile_to)} is already overridden")
            precompiles[item.precompile_to] = source
            moved.add(item.precompile_to)
        precompiles.pop(item.address, None)
        _write(world, item)
    return context if precompiles == _precompiles(context) else replace(context, precompiles=precompiles)


def _precompiles(context: BlockContext) -> Mapping[bytes, bytes]:
    if context.precompiles is not None:
        return context.precompiles
    return {address: address for address in context.fork.precompiles}


def _write(world: World, item: AccountOverride) -> None:
    address = item.address
    if item.nonce is not None:
        world.write(world.nonces, address, item.nonce)
    if item.code is not None:
        world.write(world.codes, address, item.code)
    if item.balance is not None:
        world.write(world.balances, address, item.balance)
    if item.state is not None and item.diff is not None:
        raise RpcError(SERVER_ERROR, f"account {checksum(address)} has both 'state' and 'stateDiff'")
    if item.state is not None:
        world.erase_storage(address)
    for slot, value in (item.state or item.diff or {}).items():
        world.set_slot(address, slot, value)


@dataclass(frozen=True, slots=True)
class BlockOverrides:
    """What the block a call runs in is to be like; None leaves it. Fees in wei per gas, `time` in seconds since 1970."""

    number: int | None = None
    time: int | None = None
    gas_limit: int | None = None
    fee_recipient: bytes | None = None
    prevrandao: bytes | None = None
    base_fee: int | None = None
    blob_base_fee: int | None = None


def parse_block_overrides(value: object) -> BlockOverrides:
    """Read the object; null is empty. Raises InvalidParams, and RpcError for fields that cannot be overridden."""
    if value is None:
        return BlockOverrides()
    fields = _object(value, "blockOverrides")
    for name in _UNSUPPORTED:
        if fields.get(name) is not None:
            raise RpcError(SERVER_ERROR, f'block override "{name}" is not supported for this RPC method')

    def number(name: str) -> int | None:
        given = fields.get(name)
        return None if given is None else parse_quantity(given, name)

    recipient, randao = fields.get("feeRecipient"), fields.get("prevRandao")
    return BlockOverrides(
        number=number("number"),
        time=number("time"),
        gas_limit=number("gasLimit"),
        fee_recipient=None if recipient is None else parse_address(recipient, "feeRecipient"),
        prevrandao=None if randao is None else parse_hash(randao, "prevRandao"),
        base_fee=number("baseFeePerGas"),
        blob_base_fee=number("blobBaseFee"),
    )


def apply_block_overrides(context: BlockContext, overrides: BlockOverrides) -> BlockContext:
    """The context with these fields in place of its own."""
    wanted = {
        "number": overrides.number,
        "timestamp": overrides.time,
        "gas_limit": overrides.gas_limit,
        "coinbase": overrides.fee_recipient,
        "prevrandao": overrides.prevrandao,
        "base_fee": overrides.base_fee,
        "blob_base_fee": overrides.blob_base_fee,
    }
    # The types of the fields are told by their names alone.
    return replace(context, **{name: value for name, value in wanted.items() if value is not None})  # type: ignore[arg-type]
