"""Contracts the protocol itself calls: at the start of a block to remember, at its end to collect requests.

Beacon roots (EIP-4788), block hashes (EIP-2935), withdrawal requests (EIP-7002), consolidation requests (EIP-7251) and
the deposits of a log (EIP-6110). The code is the one of mainnet and `geth --dev`. Where an account holds exactly that
code, what its system call would write is written directly; any other code is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from devnet.codec.blocks import NO_REQUESTS, Receipt
from devnet.evm.engine import BlockContext, Engine, Message
from devnet.evm.forks import Fork
from devnet.evm.world import World

SYSTEM_ADDRESS: Final = bytes.fromhex("fffffffffffffffffffffffffffffffffffffffe")
BEACON_ROOTS: Final = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")
BLOCK_HASHES: Final = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")
WITHDRAWAL_QUEUE: Final = bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002")
CONSOLIDATION_QUEUE: Final = bytes.fromhex("0000bbddc7ce488642fb579f8b00f3a590007251")
DEPOSIT_CONTRACT: Final = bytes.fromhex("00000000219ab540356cbb839cbe05303d7705fa")
HISTORY: Final = 8_191  # slots, blocks for the one, seconds for the other
_SYSTEM_GAS: Final = 30_000_000
_DEPOSIT_EVENT: Final = bytes.fromhex("649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5")
_DEPOSIT, _WITHDRAWAL, _CONSOLIDATION = b"\0", b"\1", b"\2"

BEACON_ROOTS_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe14604d57602036146024575f5ffd5b5f35801560495762001fff8106"
    "90815414603c575f5ffd5b62001fff01545f5260205ff35b5f5ffd5b62001fff42064281555f359062001fff015500"
)
BLOCK_HASHES_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe14604657602036036042575f35600143038111604257611fff814303"
    "11604257611fff9006545f5260205ff35b5f5ffd5b5f35611fff60014303065500"
)
WITHDRAWAL_QUEUE_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe1460cb5760115f54807fffffffffffffffffffffffffffffffffffff"
    "ffffffffffffffffffffffffffff146101f457600182026001905f5b5f821115606857810190830284830290049160010191"
    "90604d565b909390049250505036603814608857366101f457346101f4575f5260205ff35b34106101f45760015460010160"
    "0155600354806003026004013381556001015f35815560010160203590553360601b5f5260385f601437604c5fa060010160"
    "0355005b6003546002548082038060101160df575060105b5f5b8181146101835782810160030260040181604c0281546060"
    "1b8152601401816001015481526020019060020154807fffffffffffffffffffffffffffffffff0000000000000000000000"
    "0000000000168252906010019060401c908160381c81600701538160301c81600601538160281c81600501538160201c8160"
    "0401538160181c81600301538160101c81600201538160081c81600101535360010160e1565b910180921461019557906002"
    "556101a0565b90505f6002555f6003555b5f54807fffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
    "ffffff14156101cd57505f5b6001546002828201116101e25750505f6101e8565b01600290035b5f555f600155604c025ff3"
    "5b5f5ffd"
)
CONSOLIDATION_QUEUE_CODE: Final = bytes.fromhex(
    "3373fffffffffffffffffffffffffffffffffffffffe1460d35760115f54807fffffffffffffffffffffffffffffffffffff"
    "ffffffffffffffffffffffffffff1461019a57600182026001905f5b5f821115606857810190830284830290049160010191"
    "90604d565b9093900492505050366060146088573661019a573461019a575f5260205ff35b341061019a5760015460010160"
    "0155600354806004026004013381556001015f358155600101602035815560010160403590553360601b5f5260605f601437"
    "60745fa0600101600355005b6003546002548082038060021160e7575060025b5f5b81811461012957828101600402600401"
    "81607402815460601b815260140181600101548152602001816002015481526020019060030154905260010160e9565b9101"
    "80921461013b5790600255610146565b90505f6002555f6003555b5f54807fffffffffffffffffffffffffffffffffffffff"
    "ffffffffffffffffffffffffff141561017357505f5b6001546001828201116101885750505f61018e565b01600190035b5f"
    "555f6001556074025ff35b5f5ffd"
)


@dataclass(frozen=True, slots=True)
class Requests:
    """What a block asks of the consensus layer: one entry a type, its number first, in ascending order (EIP-7685)."""

    entries: tuple[bytes, ...] = ()

    @property
    def hash(self) -> bytes:
        """The requests hash of the header."""
        if not self.entries:
            return NO_REQUESTS
        return sha256(b"".join(sha256(entry).digest() for entry in self.entries)).digest()


def deploy(world: World, fork: Fork) -> None:
    """Put the contracts of a fork into a world that has no block yet, with nonce 1 as `geth --dev` does."""
    contracts = []
    if fork.has_beacon_root:
        contracts.append((BEACON_ROOTS, BEACON_ROOTS_CODE))
    if fork.has_requests:
        contracts.append((BLOCK_HASHES, BLOCK_HASHES_CODE))
        contracts.append((WITHDRAWAL_QUEUE, WITHDRAWAL_QUEUE_CODE))
        contracts.append((CONSOLIDATION_QUEUE, CONSOLIDATION_QUEUE_CODE))
    for address, code in contracts:
        world.write(world.codes, address, code)
        world.write(world.nonces, address, 1)


def begin_block(world: World, engine: Engine, block: BlockContext, parent_hash: bytes, beacon_root: bytes) -> None:
    """What happens before a block's first transaction. The caller seals or reverts the world."""
    if block.fork.has_beacon_root:
        if world.code(BEACON_ROOTS) == BEACON_ROOTS_CODE:
            slot = block.timestamp % HISTORY
            _store(world, BEACON_ROOTS, slot, block.timestamp)
            _store(world, BEACON_ROOTS, slot + HISTORY, int.from_bytes(beacon_root, "big"))
        else:
            _call(world, engine, block, BEACON_ROOTS, beacon_root)
    if block.fork.has_requests:
        if world.code(BLOCK_HASHES) == BLOCK_HASHES_CODE:
            _store(world, BLOCK_HASHES, (block.number - 1) % HISTORY, int.from_bytes(parent_hash, "big"))
        else:
            _call(world, engine, block, BLOCK_HASHES, parent_hash)


def end_block(
    world: World,
    engine: Engine,
    block: BlockContext,
    receipts: Sequence[Receipt],
    deposit_contract: bytes = DEPOSIT_CONTRACT,
) -> Requests:
    """What happens after a block's last transaction; the requests it collects. The caller seals or reverts the world."""
    if not block.fork.has_requests:
        return Requests()
    withdrawals = _collect(world, engine, block, WITHDRAWAL_QUEUE, WITHDRAWAL_QUEUE_CODE)
    consolidations = _collect(world, engine, block, CONSOLIDATION_QUEUE, CONSOLIDATION_QUEUE_CODE)
    deposits = b"".join(_deposits(receipts, deposit_contract))
    found = ((_DEPOSIT, deposits), (_WITHDRAWAL, withdrawals), (_CONSOLIDATION, consolidations))
    return Requests(tuple(kind + data for kind, data in found if data))


def _store(world: World, address: bytes, slot: int, value: int) -> None:
    if world.slot(address, slot) != value:
        world.set_slot(address, slot, value)


def _collect(world: World, engine: Engine, block: BlockContext, address: bytes, code: bytes) -> bytes:
    """The output of a queue's system call. With nothing queued and no excess to wear off it would change nothing."""
    state: Mapping[int, int] = world.storages.get(address, {})
    if world.code(address) == code and not (state.get(0) or state.get(1) or state.get(2) or state.get(3)):
        return b""
    return _call(world, engine, block, address, b"")


def _call(world: World, engine: Engine, block: BlockContext, address: bytes, data: bytes) -> bytes:
    if not world.code(address):
        return b""
    world.begin_transaction()
    return engine.execute(world, block, Message(SYSTEM_ADDRESS, address, 0, data, _SYSTEM_GAS, 0)).output


def _deposits(receipts: Sequence[Receipt], contract: bytes) -> list[bytes]:
    """The deposits of the logs: key, credentials, amount, signature and index out of their ABI encoding (EIP-6110)."""
    return [
        log.data[192:240] + log.data[288:320] + log.data[352:360] + log.data[416:512] + log.data[544:552]
        for receipt in receipts
        for log in receipt.logs
        if log.address == contract and log.topics[:1] == (_DEPOSIT_EVENT,)
    ]
