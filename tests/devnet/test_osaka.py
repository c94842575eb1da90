"""What Osaka changed for transactions and code: EIP-7823, 7825, 7883, 7934, 7939, 7951."""

import json
from pathlib import Path
from typing import Any

import pytest

from devnet.errors import RpcError
from devnet.evm.forks import BY_NAME, Schedule
from devnet.evm.precompiles import modexp_gas, p256_holds
from devnet.node import Node
from devnet.server.rpc import Dispatcher
from devnet.settings import Settings
from tests.devnet.wallet import ALICE, words
from tests.support.devnet import Devnet, NodeProcess, RpcFailure

MODEXP = "0x" + "00" * 19 + "05"
P256VERIFY = "0x" + "00" * 18 + "0100"
VECTORS = json.loads((Path(__file__).parent / "golden" / "osaka_precompiles.json").read_text())


def answer(node: NodeProcess, code: bytes) -> int:
    """What code returns, run at an address where there is none."""
    target = "0x" + "c0" * 20
    return int(node.rpc("eth_call", {"to": target}, "latest", {target: {"code": "0x" + code.hex()}}), 16)


@pytest.mark.parametrize(
    ("word", "zeros"),
    # The cases of EIP-7939.
    [
        (0, 256),
        (1 << 255, 0),
        ((1 << 256) - 1, 0),
        (1 << 254, 1),
        ((1 << 255) - 1, 1),
        (1, 255),
    ],
)
def test_clz_counts_leading_zeros(devnet: Devnet, word: int, zeros: int) -> None:
    code = b"\x7f" + word.to_bytes(32, "big") + bytes.fromhex("1e5f5260205ff3")
    assert answer(devnet, code) == zeros


@pytest.mark.parametrize("vector", VECTORS["p256verify"], ids=lambda vector: vector["name"])
def test_p256verify_answers_the_vectors(devnet: Devnet, vector: dict[str, Any]) -> None:
    assert devnet.rpc("eth_call", {"to": P256VERIFY, "data": vector["input"]}, "latest") == vector["output"]


def test_p256verify_rejects_what_the_eip_names(devnet: Devnet) -> None:
    good = VECTORS["p256verify"][0]["input"]
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    field = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
    digest, r, s, x, y = (int(good[2 + 64 * at :][:64], 16) for at in range(5))
    assert p256_holds(digest, r, s, x, y)
    assert p256_holds(digest, r, order - s, x, y)  # both of the two s hold: there is no rule against the high one
    for wrong in (
        (digest ^ 1, r, s, x, y),
        (digest, 0, s, x, y),
        (digest, r, 0, x, y),
        (digest, r + order, s, x, y),
        (digest, r, order, x, y),
        (digest, r, s, x, y ^ 1),
        (digest, r, s, 0, 0),
        (digest, r, s, x + field, y),
    ):
        assert not p256_holds(*wrong)
    for data in (good[:-2], good + "00", "0x"):
        assert devnet.rpc("eth_call", {"to": P256VERIFY, "data": data}, "latest") == "0x"


@pytest.mark.parametrize("vector", VECTORS["modexp"], ids=lambda vector: vector["name"])
def test_modexp_answers_and_costs_as_geths_vectors_say(devnet: Devnet, vector: dict[str, Any]) -> None:
    assert devnet.rpc("eth_call", {"to": MODEXP, "data": vector["input"]}, "latest") == vector["output"]
    raw = bytes.fromhex(vector["input"][2:])
    base, exponent, modulus = (int.from_bytes(raw[at : at + 32], "big") for at in (0, 32, 64))
    assert modexp_gas(base, raw[96 + base :][:exponent].ljust(exponent, b"\0"), modulus) == vector["gas"]


@pytest.mark.parametrize(
    ("size", "exponent", "gas"),
    # The gas of geth's longer vectors: nagydani-2-pow0x10001 and so on.
    [
        (128, "010001", 8_192),
        (256, "02", 2_048),
        (256, "010001", 32_768),
        (512, "02", 8_192),
        (1024, "03", 32_768),
        (1024, "010001", 524_288),
    ],
)
def test_modexp_costs_by_the_square_of_its_size(size: int, exponent: str, gas: int) -> None:
    assert modexp_gas(size, bytes.fromhex(exponent), size) == gas


def test_modexp_takes_1024_bytes_and_no_more(devnet: Devnet) -> None:
    for size, good in ((1024, True), (1025, False)):
        data = "0x" + (words([size, 1, 1]) + bytes(size) + b"\x01\x07").hex()
        if good:
            assert devnet.rpc("eth_call", {"to": MODEXP, "data": data}, "latest") == "0x00"
        else:
            with pytest.raises(RpcFailure):
                devnet.rpc("eth_call", {"to": MODEXP, "data": data}, "latest")


def test_a_base_of_no_bytes_is_zero_and_its_zeroth_power_one(devnet: Devnet) -> None:
    data = "0x" + (words([0, 0, 1]) + b"\x07").hex()
    assert devnet.rpc("eth_call", {"to": MODEXP, "data": data}, "latest") == "0x01"


def test_a_transaction_may_ask_for_two_to_the_24_gas(devnet: Devnet) -> None:
    cap = 1 << 24
    signed = ALICE.sign(0, gas=cap)
    assert devnet.rpc("eth_sendRawTransaction", signed.raw) == signed.hash
    with pytest.raises(RpcFailure) as problem:
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(1, gas=cap + 1).raw)
    assert problem.value.code == -32000
    assert problem.value.message == "transaction gas limit too high (cap: 16777216, tx: 16777217)"
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", signed.hash)["gasUsed"] == hex(21_000)


def test_before_osaka_none_of_it_holds() -> None:
    node = Node(Settings(automine=False, schedule=Schedule.always(BY_NAME["prague"])))
    node.submit(bytes.fromhex(ALICE.sign(0, gas=(1 << 24) + 1).raw[2:]))
    node.miner.mine()
    assert len(node.chain.head.receipts) == 1
    call = Dispatcher(node).call
    target = "0x" + "c0" * 20
    overrides = {target: {"code": "0x5f1e5f5260205ff3"}}
    with pytest.raises(RpcError, match="invalid opcode"):
        call("eth_call", [{"to": target}, "latest", overrides])
    good = VECTORS["p256verify"][0]
    assert call("eth_call", [{"to": P256VERIFY, "data": good["input"]}, "latest"]) == "0x"
    long = "0x" + (words([1025, 1, 1]) + bytes(1025) + b"\x01\x07").hex()
    assert call("eth_call", [{"to": MODEXP, "data": long}, "latest"]) == "0x00"
