"""The contracts the protocol calls itself: EIP-4788, EIP-2935, EIP-7002, EIP-7251, and the requests of EIP-7685."""

from hashlib import sha256

from devnet.codec.blocks import Log, Receipt
from devnet.codec.transaction import decode
from devnet.evm import system_contracts
from devnet.evm.engine import BlockContext
from devnet.evm.forks import BY_NAME, DEFAULT, Schedule
from devnet.evm.lazy_engine import LazyEngine
from devnet.evm.system_contracts import (
    BEACON_ROOTS,
    BEACON_ROOTS_CODE,
    BLOCK_HASHES,
    BLOCK_HASHES_CODE,
    CONSOLIDATION_QUEUE,
    DEPOSIT_CONTRACT,
    HISTORY,
    WITHDRAWAL_QUEUE,
)
from devnet.evm.world import World
from devnet.node import Node
from devnet.settings import Settings
from tests.devnet.wallet import ALICE, ETHER, GWEI, words
from tests.support.devnet import Devnet, NodeProcess

NAMES = {name: "0x" + getattr(system_contracts, name).hex() for name in ("BEACON_ROOTS", "BLOCK_HASHES")}
NO_REQUESTS = "0x" + sha256(b"").hexdigest()


def test_block_hashes_are_remembered_and_served_as_on_anvil(either: NodeProcess) -> None:
    hashes = []
    for _ in range(3):
        hashes.append(either.rpc("eth_getBlockByNumber", "latest", False)["hash"])
        either.rpc("evm_mine")
    for number, block_hash in enumerate(hashes):
        assert either.rpc("eth_getStorageAt", NAMES["BLOCK_HASHES"], hex(number), "latest") == block_hash
    call = {"to": NAMES["BLOCK_HASHES"], "data": "0x" + words([1]).hex()}
    assert either.rpc("eth_call", call, "latest") == hashes[1]


def test_the_beacon_root_of_a_blocks_second_is_served(devnet: Devnet) -> None:
    devnet.rpc("evm_mine")
    block = devnet.rpc("eth_getBlockByNumber", "latest", False)
    assert block["parentBeaconBlockRoot"] == "0x" + "00" * 32
    stamp = int(block["timestamp"], 16)
    assert int(devnet.rpc("eth_getStorageAt", NAMES["BEACON_ROOTS"], hex(stamp % HISTORY), "latest"), 16) == stamp
    call = {"to": NAMES["BEACON_ROOTS"], "data": "0x" + words([stamp]).hex()}
    assert devnet.rpc("eth_call", call, "latest") == "0x" + "00" * 32


def test_writing_directly_gives_what_running_the_contracts_gives() -> None:
    """The canonical code with a JUMPDEST behind it is other code with the same effects: it is run."""
    parent, root = b"\x11" * 32, b"\x22" * 32
    written = []
    for suffix in (b"", b"\x5b"):
        world = World()
        world.write(world.codes, BEACON_ROOTS, BEACON_ROOTS_CODE + suffix)
        world.write(world.codes, BLOCK_HASHES, BLOCK_HASHES_CODE + suffix)
        block = BlockContext(9000, 1_700_000_123, bytes(20), bytes(32), 30_000_000, 7, 1, lambda _number: b"")
        system_contracts.begin_block(world, LazyEngine(), block, parent, root)
        written.append({key: dict(column) for key, column in world.storages.items()})
    slot = 1_700_000_123 % HISTORY
    assert written[0] == {
        BEACON_ROOTS: {slot: 1_700_000_123, slot + HISTORY: int.from_bytes(root, "big")},
        BLOCK_HASHES: {8999 % HISTORY: int.from_bytes(parent, "big")},
    }
    assert written[1] == written[0]


def test_withdrawal_and_consolidation_requests_leave_with_the_block(devnet: Devnet) -> None:
    key, other, amount = b"\x0a" * 48, b"\x0b" * 48, 7
    sender = bytes.fromhex(ALICE.address[2:])
    requests = [
        (WITHDRAWAL_QUEUE, key + amount.to_bytes(8, "big")),
        (CONSOLIDATION_QUEUE, key + other),
    ]
    for nonce, (contract, data) in enumerate(requests):
        signed = ALICE.call(nonce, "0x" + contract.hex(), data, value=1)
        devnet.rpc("eth_sendRawTransaction", signed.raw)
    devnet.rpc("evm_mine")
    block = devnet.rpc("eth_getBlockByNumber", "latest", False)
    # EIP-7002 and 7251: who asked, the key, and the amount in little-endian bytes or the other key.
    withdrawal = b"\x01" + sender + key + amount.to_bytes(8, "little")
    consolidation = b"\x02" + sender + key + other
    expected = sha256(sha256(withdrawal).digest() + sha256(consolidation).digest()).hexdigest()
    assert block["requestsHash"] == "0x" + expected
    assert devnet.rpc("eth_getBalance", "0x" + WITHDRAWAL_QUEUE.hex(), "latest") == "0x1"
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getBlockByNumber", "latest", False)["requestsHash"] == NO_REQUESTS


def test_an_excess_of_requests_raises_their_fee_and_wears_off_block_by_block() -> None:
    """EIP-7002: two requests a block are the target; each one above raises the exponent of the fee by 1/17."""
    node = Node(Settings(automine=False))
    queue = "0x" + WITHDRAWAL_QUEUE.hex()
    for nonce in range(20):
        signed = ALICE.call(nonce, queue, bytes(56), value=10 * GWEI)
        node.submit(bytes.fromhex(signed.raw[2:]))
    sizes, excess = [], []
    for _ in range(4):
        block = node.miner.mine()
        assert block is not None
        sizes.append(block.header.requests_hash.hex() if block.header.requests_hash else "")
        excess.append(node.world.slot(WITHDRAWAL_QUEUE, 0))
    assert excess == [18, 16, 14, 12]
    assert sizes[0] != sizes[1] != NO_REQUESTS[2:]  # 16 in the first block, 4 in the second
    assert sizes[2] == sizes[3] == NO_REQUESTS[2:]


def test_deposits_are_read_out_of_the_logs() -> None:
    """EIP-6110: the five byte strings of DepositEvent, one after the other."""
    parts = [b"\x01" * 48, b"\x02" * 32, b"\x03" * 8, b"\x04" * 96, b"\x05" * 8]
    heads, tails = b"", b""
    for part in parts:
        heads += words([160 + len(tails)])
        tails += words([len(part)]) + part + bytes(-len(part) % 32)
    event = bytes.fromhex("649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5")
    logs = (
        Log(DEPOSIT_CONTRACT, (event,), heads + tails),
        Log(DEPOSIT_CONTRACT, (bytes(32),), heads + tails),
        Log(BEACON_ROOTS, (event,), heads + tails),
    )
    tx = decode(bytes.fromhex(ALICE.sign(0).raw[2:]))
    receipt = Receipt(tx, 0, True, 21_000, 21_000, 1, logs, 0, bytes(256), None)
    context = BlockContext(1, 1, bytes(20), bytes(32), 1, 1, 1, lambda _number: b"", fork=DEFAULT)
    requests = system_contracts.end_block(World(), LazyEngine(), context, [receipt])
    assert requests.entries == (b"\x00" + b"".join(parts),)


def test_forks_before_them_have_neither_contracts_nor_header_fields() -> None:
    for name, roots, hashes in (("shanghai", False, False), ("cancun", True, False), ("prague", True, True)):
        node = Node(Settings(automine=False, schedule=Schedule.always(BY_NAME[name])))
        node.miner.mine()
        header = node.chain.head.header
        assert bool(node.world.code(BEACON_ROOTS)) is roots
        assert bool(node.world.code(BLOCK_HASHES)) is hashes
        assert (header.parent_beacon_root is not None) is roots
        assert (header.requests_hash is not None) is hashes
        assert (node.world.slot(BLOCK_HASHES, 0) != 0) is hashes
    assert node.world.balance(bytes.fromhex(ALICE.address[2:])) == 10_000 * ETHER
