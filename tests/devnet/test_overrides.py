"""eth_call and eth_estimateGas: overrides of state and block, limits, and geth's recorded answers."""

import json
import math
from typing import Any

import pytest

from devnet.evm.engine import Message
from devnet.evm.pyevm import PyEvm
from devnet.evm.tracing import Deadline, ExecutionAborted, Watch
from devnet.node import Node
from devnet.settings import Settings
from tests.devnet.bytecode import COUNTER, TOGGLE, assemble
from tests.devnet.geth_calls import RECORD, requests
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI, SOMEONE
from tests.support.devnet import Devnet, RpcFailure

RECORDED: dict[str, Any] = json.loads(RECORD.read_text())
PLACE = "0x" + "77" * 20
MINER = "0x" + "c1" * 20


def word(number: int) -> str:
    return "0x" + number.to_bytes(32, "big").hex()


def returning(*words: str) -> str:
    """Code that gives back what each of these opcodes pushes."""
    stores = " ".join(f"{text} {32 * at} MSTORE" for at, text in enumerate(words))
    return "0x" + assemble(f"{stores} {32 * len(words)} PUSH0 RETURN").hex()


def numbers(answer: str) -> list[int]:
    return [int(answer[at : at + 64], 16) for at in range(2, len(answer), 64)]


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
def test_answers_are_geths(devnet: Devnet, method: str) -> None:
    asked = [request for request in requests() if request[1] == method]
    assert len(asked) > 40
    devnet.rpc("anvil_setBalance", "0x" + "00" * 19 + "02", "0x1")
    for name, _, params in asked:
        reply = devnet.request({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert {part: reply[part] for part in ("result", "error") if part in reply} == RECORDED[name], name


def test_state_is_overridden_for_the_call_alone(devnet: Devnet) -> None:
    code = returning(f"{SOMEONE} BALANCE", "SELFBALANCE", "1 SLOAD", "2 SLOAD", f"{SOMEONE} EXTCODESIZE")
    devnet.rpc("anvil_setStorageAt", PLACE, "0x1", word(11))
    devnet.rpc("anvil_setStorageAt", PLACE, "0x2", word(22))
    accounts = {
        PLACE: {"code": code, "balance": "0x6", "stateDiff": {word(1): word(5)}},
        SOMEONE: {"balance": "0x7", "nonce": "0x9", "code": "0x0102"},
    }
    call = {"from": ALICE.address, "to": PLACE}
    assert numbers(devnet.rpc("eth_call", call, "latest", accounts)) == [7, 6, 5, 22, 2]
    accounts[PLACE]["state"] = accounts[PLACE].pop("stateDiff")
    assert numbers(devnet.rpc("eth_call", call, "latest", accounts)) == [7, 6, 5, 0, 2]
    assert devnet.rpc("eth_call", call, "latest") == "0x"
    assert devnet.rpc("eth_getStorageAt", PLACE, "0x2", "latest") == word(22)
    # the nonce decides where a creation lands
    creation = {"from": SOMEONE, "data": returning("ADDRESS")}
    here, there = (devnet.rpc("eth_call", creation, "latest", {SOMEONE: {"nonce": nonce}}) for nonce in ("0x0", "0x1"))
    assert here != there


def test_block_fields_are_overridden(devnet: Devnet) -> None:
    block = {
        "number": "0x64",
        "time": hex(2_000_000_000),
        "gasLimit": "0x1234567",
        "feeRecipient": MINER,
        "prevRandao": word(99),
        "baseFeePerGas": hex(3 * GWEI),
        "blobBaseFee": "0x5",
    }
    opcodes = ("NUMBER", "TIMESTAMP", "GASLIMIT", "COINBASE", "PREVRANDAO", "BASEFEE", "BLOBBASEFEE")
    accounts = {PLACE: {"code": returning(*opcodes)}}
    call = {"from": ALICE.address, "to": PLACE, "maxFeePerGas": hex(4 * GWEI)}
    found = numbers(devnet.rpc("eth_call", call, "latest", accounts, block))
    assert found == [100, 2_000_000_000, 0x1234567, int(MINER, 16), 99, 3 * GWEI, 5]
    # A call without a price pays none, and sees a base fee of 0.
    call = {"from": ALICE.address, "to": PLACE}
    assert numbers(devnet.rpc("eth_call", call, "latest", accounts, block))[5] == 0
    for field in ("beaconRoot", "withdrawals"):
        with pytest.raises(RpcFailure, match=f'block override "{field}" is not supported for this RPC method'):
            devnet.rpc("eth_call", call, "latest", {}, {field: word(1)})


def test_an_estimate_takes_overrides_too(devnet: Devnet) -> None:
    accounts = {PLACE: {"code": "0x" + COUNTER.hex()}}
    call = {"from": ALICE.address, "to": PLACE}
    assert int(devnet.rpc("eth_estimateGas", call, "latest", accounts), 16) > 40_000
    assert devnet.rpc("eth_estimateGas", call, "latest") == "0x5208"
    only_later = "0x" + assemble("99 NUMBER GT @ok JUMPI PUSH0 PUSH0 REVERT :ok STOP").hex()
    accounts = {PLACE: {"code": only_later}}
    assert int(devnet.rpc("eth_estimateGas", call, "latest", accounts, {"number": "0x64"}), 16) > 21_000
    with pytest.raises(RpcFailure, match="execution reverted"):
        devnet.rpc("eth_estimateGas", call, "latest", accounts)


def test_an_estimate_is_at_most_a_hundredth_and_a_half_above_the_least(devnet: Devnet) -> None:
    accounts = {PLACE: {"code": "0x" + TOGGLE.hex()}}
    call = {"from": ALICE.address, "to": PLACE}
    estimated = int(devnet.rpc("eth_estimateGas", call, "latest", accounts), 16)

    def suffices(gas: int) -> bool:
        try:
            devnet.rpc("eth_call", call | {"gas": hex(gas)}, "latest", accounts)
        except RpcFailure:
            return False
        return True

    low, high = 21_000, estimated
    assert suffices(high)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    assert high <= estimated <= math.ceil(high / 0.985)


def test_precompiles_can_be_moved_and_replaced(devnet: Devnet) -> None:
    sha = "0x" + "00" * 19 + "02"
    digest = "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    call = {"data": "0x616263"}
    moved = {sha: {"movePrecompileToAddress": PLACE}}
    assert devnet.rpc("eth_call", call | {"to": PLACE}, "latest", moved) == digest
    assert devnet.rpc("eth_call", call | {"to": sha}, "latest", moved) == "0x"
    replaced = {sha: {"code": returning("7")}}
    assert devnet.rpc("eth_call", call | {"to": sha}, "latest", replaced) == word(7)
    assert devnet.rpc("eth_call", call | {"to": sha}, "latest") == digest
    through = {PLACE: {"code": returning("0x616263 232 SHL PUSH0 MSTORE 32 64 3 PUSH0 2 GAS STATICCALL POP 64 MLOAD")}}
    assert devnet.rpc("eth_call", {"to": PLACE}, "latest", through) == digest
    # An account that is no contract gives nothing; code put in its place may.
    assert devnet.rpc("eth_call", {"to": PLACE}, "latest", through | {sha: {"balance": "0x0"}}) == word(0)
    for overrides, message in (
        ({sha: {"movePrecompileToAddress": PLACE}, PLACE: {"balance": "0x1"}}, "is already overridden"),
        ({PLACE: {"movePrecompileToAddress": SOMEONE}}, "is not a precompile"),
    ):
        with pytest.raises(RpcFailure, match=message):
            devnet.rpc("eth_call", call | {"to": PLACE}, "latest", overrides)


def test_blob_hashes_and_authorizations_are_seen_by_a_call(devnet: Devnet) -> None:
    accounts = {PLACE: {"code": returning("PUSH0 BLOBHASH", "1 BLOBHASH", "BLOBBASEFEE")}}
    blob = "0x01" + "ab" * 31
    call = {"from": ALICE.address, "to": PLACE, "blobVersionedHashes": [blob], "maxFeePerBlobGas": "0x5"}
    assert numbers(devnet.rpc("eth_call", call, "latest", accounts)) == [int(blob, 16), 0, 1]
    poor = call | {"from": SOMEONE}
    with pytest.raises(RpcFailure, match="have 0 want 655360"):
        devnet.rpc("eth_call", poor, "latest", accounts)
    unsigned = {"chainId": "0x7a69", "address": PLACE, "nonce": "0x0", "yParity": "0x0", "r": "0x1", "s": "0x1"}
    plain = {"from": ALICE.address, "to": BOB.address}
    assert devnet.rpc("eth_estimateGas", plain) == "0x5208"
    priced = int(devnet.rpc("eth_estimateGas", plain | {"authorizationList": [unsigned]}), 16)
    assert 46_000 <= priced <= 46_000 / 0.985


def test_a_call_gets_fifty_million_gas_at_most(devnet: Devnet) -> None:
    accounts = {PLACE: {"code": returning("GAS")}}
    [left] = numbers(devnet.rpc("eth_call", {"to": PLACE}, "latest", accounts))
    assert left == 50_000_000 - 21_000 - 2
    [left] = numbers(devnet.rpc("eth_call", {"to": PLACE, "gas": hex(10**12)}, "latest", accounts))
    assert left == 50_000_000 - 21_000 - 2


def test_a_price_is_paid_before_the_code_runs(devnet: Devnet) -> None:
    accounts = {
        PLACE: {"code": returning("GASPRICE", f"{ALICE.address} BALANCE")},
        ALICE.address: {"balance": hex(ETHER)},
    }
    fees = {"maxFeePerGas": hex(9 * GWEI), "maxPriorityFeePerGas": hex(GWEI), "gas": hex(100_000)}
    price, left = numbers(devnet.rpc("eth_call", {"from": ALICE.address, "to": PLACE} | fees, "latest", accounts))
    assert (price, left) == (2 * GWEI, ETHER - 100_000 * 2 * GWEI)


def test_fields_that_contradict_each_other_are_refused(devnet: Devnet) -> None:
    for call, message in (
        ({"data": "0x01", "input": "0x02"}, 'both "data" and "input" are set and not equal'),
        ({"gasPrice": "0x1", "maxPriorityFeePerGas": "0x1"}, "both gasPrice and"),
        ({"chainId": "0x1"}, "chainId does not match node's \\(have=1, want=31337\\)"),
    ):
        for method in ("eth_call", "eth_estimateGas"):
            with pytest.raises(RpcFailure, match=message) as caught:
                devnet.rpc(method, {"to": PLACE} | call)
            assert caught.value.code == -32000


@pytest.mark.parametrize(
    "code",
    ["1 1 SSTORE :a @a JUMP", "1 1 SSTORE :a 1 @a JUMPI", "1 1 SSTORE PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 ADDRESS GAS CALL"],
)
def test_code_past_its_deadline_is_aborted(code: str) -> None:
    node = Node(Settings(automine=False))
    place = bytes.fromhex(PLACE[2:])
    world = node.world
    world.write(world.codes, place, assemble(code))
    mark = world.snapshot()
    message = Message(bytes(20), place, 0, b"", 10_000_000, 0)
    with pytest.raises(ExecutionAborted):
        PyEvm().execute(world, node.miner.next_context(), message, Watch(deadline=Deadline(-1)))
    world.revert(mark)
    assert world.slot(place, 1) == 0
