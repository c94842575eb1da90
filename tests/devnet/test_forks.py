"""Which rules hold when: the table of forks, schedules, headers of each fork, and how a devnet is started under one."""

import pytest

from devnet.codec.blocks import EMPTY_UNCLES, NO_REQUESTS, Header
from devnet.codec.trie import EMPTY_ROOT
from devnet.errors import RpcError
from devnet.evm.forks import BY_NAME, DEFAULT, FORKS, Schedule
from devnet.evm.gas import floor_gas, initcode_gas, intrinsic_gas
from devnet.node import Node
from devnet.server.rpc import Dispatcher
from devnet.settings import Settings
from tests.devnet.bytecode import assemble, deploying
from tests.devnet.wallet import ALICE, GWEI
from tests.support.devnet import Devnet, start_devnet

ZERO = bytes(32)


def test_a_schedule_passes_by_height_then_by_difficulty_then_by_time() -> None:
    blocks = ((0, BY_NAME["frontier"]), (3, BY_NAME["homestead"]), (9, BY_NAME["london"]))
    schedule = Schedule(blocks, ((100, BY_NAME["shanghai"]), (200, BY_NAME["cancun"])), 1000)
    for number, timestamp, difficulty, name in [
        (0, 0, 1, "Frontier"),
        (2, 500, 10, "Frontier"),
        (3, 500, 10, "Homestead"),
        (9, 500, 999, "London"),
        (10, 50, 1000, "Paris"),
        (10, 100, 1000, "Shanghai"),
        (11, 199, 1001, "Shanghai"),
        (12, 200, None, "Cancun"),
    ]:
        assert schedule.at(number, timestamp, difficulty).name == name
    never = Schedule(((0, BY_NAME["berlin"]),), (), None)
    assert never.at(5, 5, 10**30).name == "Berlin"
    assert Schedule(((0, BY_NAME["london"]),), (), 50).at(1, 1, 50).name == "Paris"
    for fork in FORKS:
        assert Schedule.always(fork).at(0, 0) is fork


def test_the_header_of_every_fork_hashes_as_the_networks_do() -> None:
    mainnet = Header(
        number=0,
        parent_hash=ZERO,
        coinbase=bytes(20),
        state_root=bytes.fromhex("d7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544"),
        transactions_root=EMPTY_ROOT,
        receipts_root=EMPTY_ROOT,
        logs_bloom=bytes(256),
        gas_limit=5000,
        gas_used=0,
        timestamp=0,
        prevrandao=ZERO,
        base_fee=0,
        extra_data=bytes.fromhex("11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa"),
        has_base_fee=False,
        difficulty=17_179_869_184,
        nonce=(0x42).to_bytes(8, "big"),
    )
    assert mainnet.hash.hex() == "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3"
    # Block 0 of geth 1.17.10 --dev, which has all fields of Prague; of anvil 1.7.1 --hardfork cancun, without requests.
    geth = Header(
        number=0,
        parent_hash=ZERO,
        coinbase=bytes(20),
        state_root=bytes.fromhex("bd697b302a5670bea71c10ac19d3503126e7eb33969bec7982307e6383868c71"),
        transactions_root=EMPTY_ROOT,
        receipts_root=EMPTY_ROOT,
        logs_bloom=bytes(256),
        gas_limit=11_500_000,
        gas_used=0,
        timestamp=0,
        prevrandao=ZERO,
        base_fee=GWEI,
        uncles_hash=EMPTY_UNCLES,
        withdrawals_root=EMPTY_ROOT,
        blob_gas_used=0,
        excess_blob_gas=0,
        parent_beacon_root=ZERO,
        requests_hash=NO_REQUESTS,
    )
    assert geth.hash.hex() == "790ac206f4e9d3837e8284a6b81d69d832d6974d10735757ccad8ad35086d6ad"
    anvil = Header(
        number=0,
        parent_hash=ZERO,
        coinbase=bytes(20),
        state_root=EMPTY_ROOT,
        transactions_root=EMPTY_ROOT,
        receipts_root=EMPTY_ROOT,
        logs_bloom=bytes(256),
        gas_limit=30_000_000,
        gas_used=0,
        timestamp=1,
        prevrandao=ZERO,
        base_fee=GWEI,
        withdrawals_root=EMPTY_ROOT,
        blob_gas_used=0,
        excess_blob_gas=0,
        parent_beacon_root=ZERO,
    )
    assert anvil.hash.hex() == "4f696241f96c81d0c13ecbe685b1aeb164623a6e2c127332f9326cfeda5d7e6a"


def test_gas_of_a_transactions_bytes_follows_the_fork() -> None:
    data = b"\x00" * 3 + b"\x01" * 5
    listed = ((bytes(20), (ZERO, ZERO)),)
    for name, call, creation, floor in [
        ("frontier", 21_000 + 12 + 5 * 68, 21_000 + 12 + 5 * 68, 0),
        ("homestead", 21_000 + 12 + 5 * 68, 53_000 + 12 + 5 * 68, 0),
        ("istanbul", 21_000 + 12 + 5 * 16, 53_000 + 12 + 5 * 16, 0),
        ("shanghai", 21_000 + 12 + 5 * 16, 53_000 + 12 + 5 * 16 + 2, 0),
        ("prague", 21_000 + 12 + 5 * 16, 53_000 + 12 + 5 * 16 + 2, 21_000 + 10 * (3 + 20)),
    ]:
        fork = BY_NAME[name]
        assert intrinsic_gas(data, (), creation=False, fork=fork) == call
        assert intrinsic_gas(data, (), creation=True, fork=fork) == creation
        assert floor_gas(data, fork) == floor
    assert intrinsic_gas(b"", listed, creation=False) == 21_000 + 2_400 + 2 * 1_900
    assert intrinsic_gas(b"", (), creation=False, authorizations=2) == 21_000 + 50_000
    assert [initcode_gas(bytes(size)) for size in (0, 1, 32, 33)] == [0, 2, 2, 4]


def test_types_and_opcodes_come_with_their_forks() -> None:
    push0 = assemble("PUSH0 PUSH0 MSTORE 32 PUSH0 RETURN")
    for name, types, runs in (
        ("london", {0, 1, 2}, False),
        ("shanghai", {0, 1, 2}, True),
        ("cancun", {0, 1, 2, 3}, True),
    ):
        fork = BY_NAME[name]
        assert fork.transaction_types == types
        node = Node(Settings(automine=False, schedule=Schedule.always(fork)))
        signed = ALICE.create(0, deploying(assemble("1 1 ADD")))
        node.submit(bytes.fromhex(signed.raw[2:]))
        node.miner.mine()
        assert node.chain.head.receipts[0].succeeded is runs  # `deploying` itself has a PUSH0
        call = Dispatcher(node).call
        target = "0x" + "c0" * 20
        parameters: list[object] = [{"to": target}, "latest", {target: {"code": "0x" + push0.hex()}}]
        if runs:
            assert call("eth_call", parameters) == "0x" + "00" * 32
        else:
            with pytest.raises(RpcError, match="invalid opcode"):
                call("eth_call", parameters)
    assert DEFAULT.transaction_types == {0, 1, 2, 3, 4}


def test_a_devnet_says_which_fork_it_runs(devnet: Devnet) -> None:
    assert devnet.rpc("anvil_nodeInfo")["hardFork"] == "Bpo2"
    config = devnet.rpc("eth_config")
    assert (config["next"], config["last"]) == (None, None)
    current = config["current"]
    assert current["blobSchedule"] == {"target": 14, "max": 21, "baseFeeUpdateFraction": 11_684_671}
    assert current["activationTime"] == 0
    assert current["chainId"] == "0x7a69"
    assert current["precompiles"]["P256VERIFY"] == "0x" + "00" * 18 + "0100"
    assert len(current["precompiles"]) == 18
    assert sorted(current["systemContracts"]) == [
        "BEACON_ROOTS_ADDRESS",
        "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS",
        "DEPOSIT_CONTRACT_ADDRESS",
        "HISTORY_STORAGE_ADDRESS",
        "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS",
    ]
    assert len(current["forkId"]) == 10


def test_hardfork_chooses_the_rules_and_a_name_it_does_not_know_is_one_sentence() -> None:
    with start_devnet("--hardfork", "london", "--no-state-root", "--no-mining") as old:
        assert old.rpc("anvil_nodeInfo")["hardFork"] == "London"
        signed = ALICE.sign(0)
        old.rpc("eth_sendRawTransaction", signed.raw)
        old.rpc("evm_mine")
        block = old.rpc("eth_getBlockByNumber", "latest", False)
        assert block["transactions"] == [signed.hash]
        assert block["stateRoot"] == "0x" + "00" * 32
        later = {"withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash"}
        assert not later & set(block)
    with pytest.raises(RuntimeError, match="berlin is not supported: choose one of london, "):
        start_devnet("--hardfork", "berlin")


def test_forks_compare_by_their_place_in_history() -> None:
    assert BY_NAME["london"] < BY_NAME["paris"] <= BY_NAME["paris"] < DEFAULT
    assert [fork.name for fork in FORKS if fork.blobs] == ["Cancun", "Prague", "Osaka", "Bpo1", "Bpo2"]
