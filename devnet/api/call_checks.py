"""What geth's state transition refuses before it runs a message (core/state_transition.go), in its words."""

from devnet.codec.transaction import Transaction
from devnet.encoding import checksum
from devnet.errors import INTERNAL_ERROR, INVALID_PARAMS
from devnet.evm.engine import BlockContext
from devnet.evm.gas import floor_gas, intrinsic_gas
from devnet.evm.world import World

NONCE_TOO_LOW = -38010
NONCE_TOO_HIGH = -38011
FEE_CAP_TOO_LOW = -38012
INTRINSIC_GAS = -38013
INSUFFICIENT_FUNDS = -38014
INITCODE_SIZE = -38025
_MAX_NONCE = 2**64 - 1
_BLOB_VERSION = 1


class Unfit(Exception):
    """A message that cannot run as it is. `code` is what eth_simulateV1 answers with; other methods use -32000."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def check(world: World, block: BlockContext, tx: Transaction, *, validating: bool = False) -> None:
    """Refuse what cannot pay or is malformed. Nonces, and fees of zero, count only if `validating`. Raises Unfit."""
    name = checksum(tx.sender)
    if validating:
        _check_nonce(world, tx, name)
    if validating or tx.max_fee or tx.max_priority_fee:
        _check_fees(block, tx, name)
    _check_blobs(block, tx, name, validating=validating)
    if tx.type == 4 and not tx.authorizations:
        raise Unfit(INTERNAL_ERROR, f"EIP-7702 transaction with empty auth list (sender {name})")
    have, want = world.balance(tx.sender), tx.cost
    if have < want:
        raise Unfit(
            INSUFFICIENT_FUNDS, f"insufficient funds for gas * price + value: address {name} have {have} want {want}"
        )
    creation = tx.to is None
    authorizations = len(tx.authorizations)
    needed = intrinsic_gas(tx.data, tx.access_list, creation=creation, authorizations=authorizations, fork=block.fork)
    if tx.gas < needed:
        raise Unfit(INTRINSIC_GAS, f"intrinsic gas too low: have {tx.gas}, want {needed}")
    floor = floor_gas(tx.data, block.fork)
    if tx.gas < floor:
        raise Unfit(INTRINSIC_GAS, f"insufficient gas for floor data gas cost: have {tx.gas}, want {floor}")
    if creation and block.fork.limits_initcode and len(tx.data) > block.fork.max_initcode:
        size = len(tx.data)
        raise Unfit(INITCODE_SIZE, f"max initcode size exceeded: code size {size} limit {block.fork.max_initcode}")


def _check_nonce(world: World, tx: Transaction, name: str) -> None:
    nonce = world.nonce(tx.sender)
    if tx.nonce < nonce:
        raise Unfit(NONCE_TOO_LOW, f"nonce too low: address {name}, tx: {tx.nonce} state: {nonce}")
    if tx.nonce > nonce:
        raise Unfit(NONCE_TOO_HIGH, f"nonce too high: address {name}, tx: {tx.nonce} state: {nonce}")
    if nonce == _MAX_NONCE:
        raise Unfit(INTERNAL_ERROR, f"nonce has max value: address {name}, nonce: {nonce}")


def _check_fees(block: BlockContext, tx: Transaction, name: str) -> None:
    cap, tip = tx.max_fee, tx.max_priority_fee
    if cap < tip:
        text = f"max priority fee per gas higher than max fee per gas: address {name}, "
        raise Unfit(INVALID_PARAMS, text + f"maxPriorityFeePerGas: {tip}, maxFeePerGas: {cap}")
    if cap < block.base_fee:
        text = f"max fee per gas less than block base fee: address {name}, "
        raise Unfit(FEE_CAP_TOO_LOW, text + f"maxFeePerGas: {cap}, baseFee: {block.base_fee}")


def _check_blobs(block: BlockContext, tx: Transaction, name: str, *, validating: bool) -> None:
    if tx.type != 3:
        return
    if not tx.blob_hashes:
        raise Unfit(INTERNAL_ERROR, "blob transaction missing blob hashes")
    for at, blob in enumerate(tx.blob_hashes):
        if blob[0] != _BLOB_VERSION:
            raise Unfit(INTERNAL_ERROR, f"blob {at} has invalid hash version")
    cap, price = tx.max_fee_per_blob_gas, block.blob_base_fee
    if cap < price and (validating or cap):
        text = f"max fee per blob gas less than block blob gas fee: address {name} "
        raise Unfit(INTERNAL_ERROR, text + f"blobGasFeeCap: {cap}, blobBaseFee: {price}")
