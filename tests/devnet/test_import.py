"""--init and --import: a chain from genesis.json and a file of blocks is the same chain, and a wrong one is refused."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rlp
from eth_account import Account
from eth_hash.auto import keccak
from trie import HexaryTrie

from devnet.chain_import import import_chain
from devnet.codec.block_decoding import decode_block
from devnet.codec.blocks import Block, Header
from devnet.codec.transaction import decode
from devnet.errors import StartError
from devnet.evm import system_contracts
from devnet.evm.forks import BY_NAME
from devnet.evm.proof_of_work import difficulty
from devnet.genesis_file import parse_genesis, read_genesis
from devnet.node import Node
from devnet.settings import Settings
from tests.devnet import blobs
from tests.devnet.bytecode import COUNTER, assemble, deploying
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER, GWEI, SOMEONE, Signed
from tests.support.devnet import ROOT, start_devnet
from tests.support.geth import geth_binary

TIME = 1_700_000_000
HEIGHTS = (
    "homestead",
    "eip150",
    "eip155",
    "eip158",
    "byzantium",
    "constantinople",
    "petersburg",
    "istanbul",
    "muirGlacier",
    "berlin",
    "london",
    "arrowGlacier",
    "grayGlacier",
)
MERGED = {f"{name}Block": 0 for name in HEIGHTS} | {"terminalTotalDifficulty": 0}
ALL_TIMES = {f"{name}Time": 0 for name in ("shanghai", "cancun", "prague", "osaka", "bpo1", "bpo2")}
BLOBS = {  # of mainnet (EIP-7840, EIP-7892)
    "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3_338_477},
    "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
    "osaka": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
    "bpo1": {"target": 10, "max": 15, "baseFeeUpdateFraction": 8_346_193},
    "bpo2": {"target": 14, "max": 21, "baseFeeUpdateFraction": 11_684_671},
}
COUNTED = "0x" + "c0" * 20
EMPTY = "0x" + "77" * 20  # in genesis, with nothing
SYSTEM = {
    system_contracts.BEACON_ROOTS: system_contracts.BEACON_ROOTS_CODE,
    system_contracts.BLOCK_HASHES: system_contracts.BLOCK_HASHES_CODE,
    system_contracts.WITHDRAWAL_QUEUE: system_contracts.WITHDRAWAL_QUEUE_CODE,
    system_contracts.CONSOLIDATION_QUEUE: system_contracts.CONSOLIDATION_QUEUE_CODE,
}


def genesis(config: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A genesis.json: three accounts with ether, a counter that stands at 5, an empty account, the system contracts."""
    alloc: dict[str, Any] = {wallet.address[2:]: {"balance": str(100 * ETHER)} for wallet in (ALICE, BOB, CAROL)}
    alloc[COUNTED] = {"balance": "0x0", "code": "0x" + COUNTER.hex(), "storage": {"0x" + "00" * 32: "0x05"}}
    alloc[EMPTY] = {"balance": "0x0"}
    alloc |= {"0x" + address.hex(): {"balance": "0x1", "code": "0x" + code.hex()} for address, code in SYSTEM.items()}
    fields: dict[str, Any] = {
        "config": {"chainId": 31337} | config,
        "alloc": alloc,
        "gasLimit": hex(30_000_000),
        "difficulty": "0x0",
        "timestamp": hex(TIME),
    }
    return fields | changes


def node_of(content: dict[str, Any]) -> Node:
    return Node(Settings(automine=False, timestamp=TIME).beginning_as(parse_genesis(content)))


def mine(node: Node, *transactions: Signed, at: int) -> Block:
    """A block so many seconds after genesis."""
    node.clock.next_exact = TIME + at
    node.miner.mine(chosen=[decode(bytes.fromhex(signed.raw[2:])) for signed in transactions])
    assert len(node.chain.head.receipts) == len(transactions)
    return node.chain.head


def written(path: Path, blocks: list[Block]) -> str:
    path.write_bytes(b"".join(block.rlp for block in blocks))
    return str(path)


def chain_of_all_forks() -> tuple[dict[str, Any], Node]:
    """A block or two under each fork since the merge, with every type of transaction its fork has."""
    times = {f"{name}Time": TIME + 10 * at for at, name in enumerate(("shanghai", "cancun", "prague", "osaka"), 1)}
    content = genesis(MERGED | times | {"bpo1Time": TIME + 50, "bpo2Time": TIME + 60, "blobSchedule": BLOBS})
    node = node_of(content)
    legacy: dict[str, Any] = {"gasPrice": 3 * GWEI}
    listed = [{"address": COUNTED, "storageKeys": ["0x" + "00" * 32]}]
    mine(node, ALICE.sign(0, **legacy), ALICE.call(1, EMPTY, gas=21_000), at=5)
    mine(node, ALICE.create(2, deploying(COUNTER)), ALICE.call(3, COUNTED, accessList=listed, **legacy), at=10)
    mine(node, ALICE.call(4, COUNTED), at=20)
    authorization = Account.from_key(CAROL.key).sign_authorization({"chainId": 31337, "address": COUNTED, "nonce": 0})
    delegating = ALICE.call(5, CAROL.address, authorizationList=[authorization], gas=200_000)
    request = ALICE.call(6, "0x" + system_contracts.WITHDRAWAL_QUEUE.hex(), bytes(56), value=1, gas=300_000)
    mine(node, delegating, request, at=30)
    for nonce in range(4):
        mine(node, blobs.body(BOB, nonce, 3), ALICE.call(7 + nonce, CAROL.address), at=40 + 10 * nonce)
    return content, node


@pytest.fixture(scope="module")
def all_forks() -> tuple[dict[str, Any], Node]:
    return chain_of_all_forks()


def test_a_chain_through_all_forks_is_the_same_chain_after_import(
    all_forks: tuple[dict[str, Any], Node], tmp_path: Path
) -> None:
    content, made = all_forks
    node = node_of(content)
    assert import_chain(node, written(tmp_path / "chain.rlp", made.chain.blocks)) == 8
    assert [block.hash for block in node.chain.blocks] == [block.hash for block in made.chain.blocks]
    assert [node.miner.context_of(block.header).fork.name for block in node.chain.blocks] == [
        *("Paris", "Paris", "Shanghai", "Cancun", "Prague", "Osaka", "Bpo1", "Bpo2", "Bpo2")
    ]
    assert import_chain(node, str(tmp_path / "chain.rlp")) == 0  # all known
    following = mine(node, ALICE.sign(11), at=71)
    assert (following.number, node.miner.context_of(following.header).fork.name) == (9, "Bpo2")


def test_geth_imports_the_chain_too(all_forks: tuple[dict[str, Any], Node], tmp_path: Path) -> None:
    geth, trouble = geth_binary()
    if geth is None:
        pytest.skip(trouble)
    content, made = all_forks
    (tmp_path / "genesis.json").write_text(json.dumps(content))
    chain = written(tmp_path / "chain.rlp", made.chain.blocks[1:])
    folder = ("--datadir", str(tmp_path / "geth"))
    for command in (("init", str(tmp_path / "genesis.json")), ("import", chain)):
        done = subprocess.run([str(geth), *folder, *command], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
    head = made.chain.head.hash.hex()
    assert f"number=8 hash={head[:6]}..{head[-6:]}" in done.stderr
    shutil.rmtree(tmp_path / "geth")


def test_before_the_merge_difficulty_rewards_receipts_and_empty_accounts_are_those_of_the_time(tmp_path: Path) -> None:
    config = {f"{name}Block": 0 for name in HEIGHTS[:2]} | {f"{name}Block": 3 for name in HEIGHTS[2:4]}
    config |= {"byzantiumBlock": 4, "constantinopleBlock": 5, "petersburgBlock": 5, "istanbulBlock": 6}
    config |= {"muirGlacierBlock": 6, "berlinBlock": 6, "londonBlock": 7, "terminalTotalDifficulty": 0x20000 * 9}
    content = genesis(config | ALL_TIMES, difficulty="0x20000", coinbase=SOMEONE)
    node = node_of(content)
    node.miner.coinbase = bytes.fromhex("cb" * 20)
    untouched, created = bytes.fromhex("77" * 20), bytes.fromhex("ee" * 20)
    mine(node, ALICE.sign(0, gasPrice=GWEI, to="0x" + "ee" * 20, value=0, chainId=None), at=10)
    assert state_root(node, empty=[untouched, created]) == node.chain.head.header.state_root
    assert node.chain.head.receipts[0].state_root not in {None, node.chain.head.header.state_root}
    mine(node, at=20)
    mine(node, ALICE.sign(1, gasPrice=GWEI, to="0x" + "ee" * 20, value=0), at=30)  # EIP-161 now: touched, gone
    assert state_root(node, empty=[untouched]) == node.chain.head.header.state_root
    for number in range(4, 10):
        mine(node, at=10 * number)
    rewards = 3 * 5 + 3 + 4 * 2  # ether: blocks 1 to 3, 4, 5 to 8; none for 9
    assert node.world.balance(node.miner.coinbase) == rewards * ETHER + 2 * 21_000 * GWEI
    headers = [block.header for block in node.chain.blocks]
    assert [header.difficulty for header in headers] == [0x20000] * 9 + [0]
    assert [header.base_fee for header in headers] == [0] * 7 + [GWEI, 875_000_000, 765_625_000]
    assert [header.withdrawals_root is None for header in headers] == [True] * 9 + [False]

    again = node_of(content)
    assert import_chain(again, written(tmp_path / "chain.rlp", node.chain.blocks)) == 9
    assert again.chain.head.hash == node.chain.head.hash
    again.miner.coinbase = node.miner.coinbase
    again.rollback(2)
    node.rollback(2)
    assert mine(again, at=85).header.state_root == mine(node, at=85).header.state_root


def state_root(node: Node, empty: list[bytes]) -> bytes:
    """The root over what the node holds, by another trie; with these empty accounts."""
    world, accounts = node.world, HexaryTrie({})
    for address in {*world.balances, *world.nonces, *world.codes}:
        if world.is_empty(address) and address not in empty:
            continue
        storage = HexaryTrie({})
        for slot, value in world.storages.get(address, {}).items():
            storage[keccak(slot.to_bytes(32, "big"))] = rlp.encode(value)
        fields = [world.nonce(address), world.balance(address), storage.root_hash, keccak(world.code(address))]
        accounts[keccak(address)] = rlp.encode(fields)
    for address in empty:
        accounts[keccak(address)] = rlp.encode([0, 0, HexaryTrie({}).root_hash, keccak(b"")])
    return bytes(accounts.root_hash)


@pytest.mark.parametrize(
    ("fork", "parent", "seconds", "expected"),
    [
        ("frontier", {"number": 1}, 12, 2**20 + 512),
        ("frontier", {"number": 1}, 13, 2**20 - 512),
        ("homestead", {"number": 1}, 9, 2**20 + 512),
        ("homestead", {"number": 1}, 35, 2**20 - 2 * 512),
        ("homestead", {"number": 1}, 5_000, 2**20 - 99 * 512),
        ("homestead", {"number": 299_999}, 10, 2**20 + 2),
        ("byzantium", {"number": 1}, 9, 2**20),
        ("byzantium", {"number": 1, "uncles_hash": bytes(32)}, 9, 2**20 + 512),
        ("byzantium", {"number": 3_199_999}, 9, 2**20 + 1),
        ("constantinople", {"number": 5_299_999}, 9, 2**20 + 2),
        ("muirglacier", {"number": 9_399_999}, 9, 2**20 + 4),
        ("london", {"number": 9_899_998}, 9, 2**20),
        ("arrowglacier", {"number": 10_899_999}, 9, 2**20 + 1),
        ("grayglacier", {"number": 11_599_999}, 9, 2**20 + 1),
        ("byzantium", {"number": 1, "difficulty": 131_072}, 90, 131_072),
        ("paris", {"number": 1}, 9, 0),
    ],
)
def test_difficulty_follows_the_parents_by_the_rule_of_the_fork(
    fork: str, parent: dict[str, Any], seconds: int, expected: int
) -> None:
    head = node_of(genesis(MERGED, difficulty=hex(2**20))).chain.head.header
    assert difficulty(BY_NAME[fork], replace(head, **parent), TIME + seconds) == expected


def header_with(**changes: Any) -> Callable[[Header], Header]:
    return lambda header: replace(header, **changes)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (header_with(state_root=bytes(32)), "stateRoot is 0x0000"),
        (header_with(receipts_root=bytes(32)), "receiptsRoot is 0x0000"),
        (header_with(gas_used=21_001), "gasUsed is 21001, but must be 48040"),
        (header_with(logs_bloom=b"\1" * 256), "logsBloom is 0x0101"),
        (header_with(transactions_root=bytes(32)), "transactionsRoot is 0x0000"),
        (header_with(requests_hash=bytes(32)), "requestsHash is 0x0000"),
        (header_with(withdrawals_root=bytes(32)), "withdrawalsRoot is 0x0000"),
        (header_with(uncles_hash=bytes(32)), "sha3Uncles is 0x0000"),
        (header_with(parent_hash=bytes(32)), "parentHash is 0x0000"),
        (header_with(base_fee=GWEI), "baseFeePerGas is 1000000000, but must be 765625000"),
        (header_with(blob_gas_used=131_072), "blobGasUsed is 131072, but must be 0"),
        (header_with(excess_blob_gas=1), "excessBlobGas is 1, but must be 0"),
        (header_with(difficulty=1), "difficulty is 1, but must be 0"),
        (header_with(nonce=b"\1" * 8), "nonce is 0x0101010101010101, but must be 0x0000000000000000"),
        (header_with(timestamp=TIME + 4), f"timestamp is {TIME + 4}, before its parent's {TIME + 5}"),
        (header_with(gas_limit=31_000_000), "gasLimit is 31000000, too far from its parent's 30000000"),
        (header_with(extra_data=bytes(33)), "extraData has 33 bytes, 32 are allowed"),
        (header_with(requests_hash=None), "requestsHash is not there, but must be 0x0000"),
    ],
)
def test_a_header_that_is_wrong_in_one_field_is_refused_by_its_name(
    change: Callable[[Header], Header], complaint: str, tmp_path: Path
) -> None:
    content = genesis(MERGED | ALL_TIMES)
    made = node_of(content)
    first = mine(made, at=5)
    second = mine(made, ALICE.sign(0), ALICE.call(1, COUNTED, gas=100_000), at=10)
    path = written(tmp_path / "chain.rlp", [first, replace(second, header=change(second.header))])
    node = node_of(content)
    with pytest.raises(StartError) as caught:
        import_chain(node, path)
    assert str(caught.value).startswith(f"{path}: block 2: {complaint}")
    assert node.chain.head.hash == first.hash
    assert import_chain(node, written(tmp_path / "right.rlp", [second])) == 1  # nothing of the wrong one is left


def test_a_transaction_the_chain_must_not_hold_is_named(tmp_path: Path) -> None:
    content = genesis(MERGED | ALL_TIMES | {"osakaTime": TIME + 100, "bpo1Time": TIME + 200, "bpo2Time": TIME + 300})
    alice = ALICE.address
    for signed, complaint in (
        (ALICE.sign(1), f"its nonce is 1, that of {alice} is 0"),
        (ALICE.sign(0, gas=20_999), "its gas 20999 is below the 21000 it needs at least"),
        (ALICE.sign(0, chainId=1), "it is signed for chain 1"),
        (ALICE.sign(0, maxFeePerGas=5, maxPriorityFeePerGas=1), "its fee cap 5 is below the base fee 875000000"),
        (ALICE.sign(0, gas=30_000_001), "its gas 30000001 is more than the 30000000 left in the block"),
        (ALICE.sign(0, value=100 * ETHER), f"{alice} has {100 * ETHER} wei and the transaction may cost"),
        (blobs.body(ALICE, 0, maxFeePerBlobGas=0), "its blob fee cap 0 is below the blob base fee 1"),
        (Signed("0x05c0", ""), "transaction type not supported"),
    ):
        node = node_of(content)
        made = mine(node, at=5)
        raw = bytes.fromhex(signed.raw[2:])
        body = rlp.encode([rlp.decode(made.header.rlp), [raw], [], []])
        root = HexaryTrie({})
        root[rlp.encode(0)] = raw
        header = replace(decode_block(body).header, transactions_root=bytes(root.root_hash))
        (tmp_path / "chain.rlp").write_bytes(rlp.encode([rlp.decode(header.rlp), [raw], [], []]))
        with pytest.raises(StartError) as caught:
            import_chain(node_of(content), str(tmp_path / "chain.rlp"))
        assert str(caught.value).startswith(f"{tmp_path}/chain.rlp: block 1: transaction 0: {complaint}")


def test_under_an_old_fork_what_came_later_is_refused(tmp_path: Path) -> None:
    homestead = genesis({"homesteadBlock": 0}, difficulty="0x20000")
    for signed, complaint in (
        (ALICE.sign(0, gasPrice=GWEI), "it is signed for chain 31337"),  # EIP-155
        (ALICE.sign(0), "type 2 is not known under Homestead"),
    ):
        made = mine(node_of(homestead), at=5)
        raw = bytes.fromhex(signed.raw[2:])
        item = rlp.decode(raw) if raw[0] > 0x7F else raw
        root = HexaryTrie({})
        root[rlp.encode(0)] = raw
        header = replace(made.header, transactions_root=bytes(root.root_hash))
        (tmp_path / "chain.rlp").write_bytes(rlp.encode([rlp.decode(header.rlp), [item], []]))
        with pytest.raises(StartError, match=f"block 1: transaction 0: {complaint}"):
            import_chain(node_of(homestead), str(tmp_path / "chain.rlp"))


def test_files_that_hold_no_blocks_are_refused(tmp_path: Path) -> None:
    content = genesis(MERGED | ALL_TIMES)
    whole = mine(node_of(content), at=5).rlp
    for raw, complaint in (
        (whole[:-1], "is no file of RLP blocks: rlp: value size exceeds available input length"),
        (b"hello", ": block number 1 in the file: block is no list"),
        (rlp.encode([[], [], []]), ": block number 1 in the file: a header has 15, 16, 17, 20 or 21 fields, not 0"),
        (rlp.encode([b""]), ": block number 1 in the file: a block has 3 or 4 parts, not 1"),
    ):
        (tmp_path / "chain.rlp").write_bytes(raw)
        with pytest.raises(StartError) as caught:
            import_chain(node_of(content), str(tmp_path / "chain.rlp"))
        assert str(caught.value).replace("chain.rlp ", "chain.rlp") == f"{tmp_path}/chain.rlp{complaint}"
    with pytest.raises(StartError, match=r"cannot read .*: No such file or directory"):
        import_chain(node_of(content), str(tmp_path / "none.rlp"))


def test_genesis_is_sepolias_for_sepolias_file() -> None:
    """Accounts, fields and the hash everybody knows it by."""
    million, more = "0xd3c21bcecceda1000000", "0x52b7d2dcc80cd2e4000000"
    alloc = {
        "0000006916a87b82333f4245046623b23794c65c": "0x84595161401484a000000",
        "10f5d45854e038071485ac9e402308cf80d2d2fe": more,
        "799d329e5f583419167cd722962485926e338f4a": "0xde0b6b3a7640000",
        "7cf5b79bfe291a67ab02b393e456ccc4c266f753": million,
        "8b7f0977bb4f0fbe7076fa22bc24aca043583f5e": million,
        "a2a6d93439144ffe4d27c9e088dcd8b783946263": million,
        "aaec86394441f915bce3e6ab399977e9906f3b69": million,
        "b21c33de1fab3fa15499c62b59fe0cc3250020d1": more,
        "bc11295936aa79d594139de1b2e12629414f3bdb": million,
        "beef32ca5b9a198d27b4e02f4c70439fe60356cf": million,
        "d7d76c58b3a519e9fa6cc4d22dc017259bc49f1e": more,
        "d7eddb78ed295b3c9629240e8924fb8d8874ddd8": million,
        "d9a5179f091d85051d3c982785efd1455cec8699": million,
        "e2e2659028143784d557bcec6ff3a0721048880a": million,
        "f47cae1cf79ca6758bfc787dbd21e6bdbe7112b8": million,
    }
    sepolia = node_of(
        {
            "config": {f"{name}Block": 0 for name in HEIGHTS[:-2]}
            | {"chainId": 11155111, "mergeNetsplitBlock": 1735371, "terminalTotalDifficulty": 17 * 10**15},
            "timestamp": "0x6159af19",
            "extraData": "0x" + b"Sepolia, Athens, Attica, Greece!".hex(),
            "gasLimit": "0x1c9c380",
            "difficulty": "0x20000",
            "alloc": {address: {"balance": balance} for address, balance in alloc.items()},
        }
    )
    assert sepolia.chain.head.hash.hex() == "25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9"
    assert sepolia.settings.chain_id == 11155111


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"gasLimit": None}, "gasLimit is missing"),
        ({"gasLimit": "many"}, "gasLimit is no number: 'many'"),
        ({"config": None}, "config is no object"),
        ({"config": {}}, "config.chainId is missing"),
        ({"alloc": {"0x12": {"balance": "1"}}}, "alloc.0x12 has 1 bytes, want 20"),
        ({"alloc": {COUNTED: {"balance": "-1"}}}, f"alloc.{COUNTED}.balance is no number: '-1'"),
        ({"alloc": {COUNTED: {"code": "0xzz"}}}, f"alloc.{COUNTED}.code is not in hex: '0xzz'"),
        ({"number": 7}, "number must be 0: a chain begins with block 0"),
        (
            {"config": MERGED | {"chainId": 1, "amsterdamTime": 5}},
            "config.amsterdamTime is a fork this devnet does not know: take it out",
        ),
        (
            {"config": {"chainId": 1, "shanghaiTime": 5}},
            "config.terminalTotalDifficulty is missing, and shanghaiTime needs it",
        ),
        (
            {"config": MERGED | {"chainId": 1, "cancunTime": 5, "blobSchedule": {"cancun": {"target": 3}}}},
            "config.blobSchedule.cancun.max is missing",
        ),
    ],
)
def test_a_genesis_that_is_wrong_is_refused_by_the_name_of_the_field(
    changes: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "genesis.json"
    path.write_text(json.dumps(genesis(MERGED) | changes))
    with pytest.raises(StartError) as caught:
        read_genesis(str(path))
    assert str(caught.value) == f"{path}: {complaint}"


def test_blob_schedules_and_late_forks_are_those_of_the_file() -> None:
    own = {"cancun": {"target": 1, "max": 2, "baseFeeUpdateFraction": 3}}
    times = {"cancunTime": TIME, "pragueTime": TIME + 5, "bpo3Time": TIME + 9, "amsterdamTime": 2**64 - 1}
    schedule = parse_genesis(genesis(MERGED | {"shanghaiTime": 0, "blobSchedule": own} | times)).schedule
    cancun, prague, last = (schedule.at(1, TIME + at) for at in (0, 5, 9))
    assert cancun.blobs is not None
    assert (cancun.blobs.target, cancun.blobs.max, cancun.blobs.base_fee_update_fraction) == (1, 2, 3)
    assert prague.blobs == BY_NAME["prague"].blobs
    assert (last.name, last.transaction_gas_cap) == ("Bpo3", 1 << 24)


def test_the_process_begins_with_the_file_goes_on_from_its_head_and_reads_its_past(tmp_path: Path) -> None:
    init = tmp_path / "genesis.json"
    content = genesis(MERGED | ALL_TIMES)
    init.write_text(json.dumps(content))
    made = node_of(content)
    for nonce in range(3):
        mine(made, ALICE.call(nonce, COUNTED), at=nonce)
    hashes = ["0x" + block.hash.hex() for block in made.chain.blocks]
    chain = written(tmp_path / "chain.rlp", made.chain.blocks[1:])
    with start_devnet("--init", str(init), "--import", chain, "--no-mining", "--timestamp", str(TIME)) as node:
        assert "(0) 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 (99.99" in node.output()
        assert node.rpc("eth_chainId") == hex(31337)
        assert [node.rpc("eth_getBlockByNumber", hex(number), False)["hash"] for number in range(4)] == hashes
        exported = [node.rpc("debug_getRawBlock", hex(number)) for number in range(1, 4)]
        assert "".join(raw[2:] for raw in exported) == Path(chain).read_bytes().hex()
        counts = [node.rpc("eth_getStorageAt", COUNTED, "0x0", hex(number)) for number in range(4)]
        assert [int(count, 16) for count in counts] == [5, 6, 7, 8]
        assert int(node.rpc("eth_call", {"to": COUNTED}, "0x1"), 16) == 7
        assert len(node.rpc("eth_getLogs", {"fromBlock": "0x0"})) == 3
        other = node.rpc("eth_accounts")[5]
        assert node.rpc("eth_getBalance", other, "latest") == "0x0"  # the mnemonic's accounts get nothing on top
        node.rpc("eth_sendRawTransaction", ALICE.call(3, COUNTED).raw)
        node.rpc("evm_mine")
        assert int(node.rpc("eth_getStorageAt", COUNTED, "0x0", "latest"), 16) == 9
        node.rpc("anvil_rollback", 2)
        assert node.rpc("eth_getBlockByNumber", "latest", False)["hash"] == hashes[2]


def test_a_bad_chain_ends_the_start_with_one_sentence_and_code_2(tmp_path: Path) -> None:
    content = genesis(MERGED | ALL_TIMES)
    made = mine(node_of(content), at=5)
    chain = written(tmp_path / "chain.rlp", [replace(made, header=replace(made.header, gas_used=1))])
    (tmp_path / "genesis.json").write_text(json.dumps(content))
    command = [sys.executable, "-m", "devnet", "--port", "0", "--init", str(tmp_path / "genesis.json")]
    for flags, sentence in (
        (["--import", chain], f"devnet: {chain}: block 1: gasUsed is 1, but must be 0\n"),
        (["--chain-id", "5"], "devnet: --init brings this with it: leave --chain-id out\n"),
    ):
        done = subprocess.run([*command, *flags], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, done.stderr) == (2, sentence)


def test_uncles_are_paid_and_must_be_kin(tmp_path: Path) -> None:
    content = genesis({"homesteadBlock": 0}, difficulty="0x20000")
    made = node_of(content)
    mine(made, at=10)
    second = mine(made, at=20)
    uncle = replace(second.header, coinbase=bytes.fromhex("ab" * 20), extra_data=b"uncle")
    made.rollback(1)
    mine(made, at=20)
    third = mine(made, at=30)
    wrong = "block 3: the uncle 0x[0-9a-f]{64} is "
    for header, complaint in (
        (replace(uncle, parent_hash=bytes(32)), wrong + "no child of a recent ancestor"),
        (made.chain.blocks[2].header, wrong + "a block of the chain"),
        (uncle, "block 3: stateRoot is "),  # the block below knows nothing of the rewards
    ):
        listed = rlp.encode([rlp.decode(header.rlp)])
        block = replace(third, header=replace(third.header, uncles_hash=keccak(listed)), uncles=listed)
        with pytest.raises(StartError, match=complaint):
            import_chain(node_of(content), written(tmp_path / "chain.rlp", [*made.chain.blocks[1:3], block]))
    node = node_of(content)
    import_chain(node, written(tmp_path / "chain.rlp", made.chain.blocks[1:3]))
    context = node.miner.next_context()
    node.miner.finish(context, [], [uncle])
    assert node.world.balance(uncle.coinbase) == 5 * ETHER * 7 // 8
    assert node.world.balance(context.coinbase) == 2 * 5 * ETHER + 5 * ETHER + 5 * ETHER // 32


def test_a_selfdestruct_before_cancun_takes_the_account(tmp_path: Path) -> None:
    content = genesis(MERGED | {"shanghaiTime": 0, "cancunTime": TIME + 20})
    content["alloc"][COUNTED] = {"balance": "7", "code": "0x" + assemble(f"{BOB.address} SELFDESTRUCT").hex()}
    made = node_of(content)
    mine(made, ALICE.call(0, COUNTED), at=10)
    assert made.world.code(bytes.fromhex(COUNTED[2:])) == b""
    assert made.world.balance(bytes.fromhex(BOB.address[2:])) == 100 * ETHER + 7
    again = node_of(content)
    import_chain(again, written(tmp_path / "chain.rlp", made.chain.blocks))
    assert again.chain.head.hash == made.chain.head.hash
    made.rollback(1)
    mine(made, ALICE.call(0, COUNTED), at=20)
    assert made.world.code(bytes.fromhex(COUNTED[2:])) != b""  # EIP-6780
