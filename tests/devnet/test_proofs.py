"""eth_getProof, verified by py-trie and rlp, which share no code with our tries."""

from typing import Any

import pytest
import rlp
from eth_utils import keccak
from trie import HexaryTrie

from tests.devnet.bytecode import COUNTER, TOKEN, TRANSFER, deploying
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, SOMEONE, words
from tests.support.devnet import Devnet, RpcFailure

ABSENT = "0x" + "ab" * 20


def raw(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def proven(root: bytes, key: bytes, proof: list[str]) -> bytes:
    """The value the nodes prove for a key, empty where they prove that there is none."""
    return bytes(HexaryTrie.get_from_proof(root, keccak(key), [rlp.decode(raw(node)) for node in proof]))


def check(devnet: Devnet, proof: dict[str, Any], block: str) -> None:
    """Every claim of the answer against the state root of the block."""
    root = raw(devnet.rpc("eth_getBlockByNumber", block, False)["stateRoot"])
    leaf = proven(root, raw(proof["address"]), proof["accountProof"])
    if leaf:
        nonce, balance, storage, code = rlp.decode(leaf)
        assert int.from_bytes(nonce, "big") == int(proof["nonce"], 16)
        assert int.from_bytes(balance, "big") == int(proof["balance"], 16)
        assert (storage, code) == (raw(proof["storageHash"]), raw(proof["codeHash"]))
    else:
        assert (proof["nonce"], proof["balance"]) == ("0x0", "0x0")
    for slot in proof["storageProof"]:
        key = int(slot["key"], 16).to_bytes(32, "big")
        found = proven(raw(proof["storageHash"]), key, slot["proof"]) if slot["proof"] else b""
        assert (int.from_bytes(rlp.decode(found), "big") if found else 0) == int(slot["value"], 16)


@pytest.fixture
def chain(devnet: Devnet) -> Devnet:
    """Two contracts, then one block a call of each."""
    for nonce, code in enumerate((COUNTER, TOKEN)):
        devnet.rpc("eth_sendRawTransaction", ALICE.create(nonce, deploying(code)).raw)
    devnet.rpc("evm_mine")
    for nonce in range(2, 8, 2):
        transfer = TRANSFER + words([SOMEONE, nonce])
        for signed in (ALICE.call(nonce, deployed(0)), ALICE.call(nonce + 1, deployed(1), transfer)):
            devnet.rpc("eth_sendRawTransaction", signed.raw)
        devnet.rpc("evm_mine")
    return devnet


def balance_slot(address: str) -> str:
    return "0x" + keccak(raw(address).rjust(32, b"\0") + bytes(32)).hex()


def test_accounts_and_slots_are_proven_at_every_block(chain: Devnet) -> None:
    slots = [balance_slot(ALICE.address), balance_slot(SOMEONE), balance_slot(BOB.address)]
    for block in map(hex, range(5)):
        for address in (ALICE.address, BOB.address, deployed(0)):
            check(
                chain,
                chain.rpc("eth_getProof", address, ["0x0", "0x1"] if address == deployed(0) else [], block),
                block,
            )
        token = chain.rpc("eth_getProof", deployed(1), slots, block)
        check(chain, token, block)
        sent = sum(range(2, 2 * int(block, 16), 2))  # one transfer of 2, 4, 6 a block from the second on
        want = [hex(1000 - sent), hex(sent), "0x0"] if int(block, 16) > 1 else ["0x0"] * 3
        assert [slot["value"] for slot in token["storageProof"]] == want


def test_what_is_not_there_is_proven_absent(chain: Devnet) -> None:
    proof = chain.rpc("eth_getProof", ABSENT, [], "latest")
    assert proof["codeHash"] == proof["storageHash"] == "0x" + "00" * 32
    check(chain, proof, "latest")
    check(chain, chain.rpc("eth_getProof", deployed(0), ["0x0"], "0x0"), "0x0")


def test_keys_come_back_as_geth_writes_them(chain: Devnet) -> None:
    keys = ["0x00", "0x1", "0x" + "00" * 31 + "02"]
    proof = chain.rpc("eth_getProof", deployed(0), keys)
    assert [slot["key"] for slot in proof["storageProof"]] == ["0x0", "0x1", "0x" + "00" * 31 + "02"]
    check(chain, proof, "latest")
    for bad in (["0x" + "00" * 33], ["zz"], [5]):
        with pytest.raises(RpcFailure) as caught:
            chain.rpc("eth_getProof", deployed(0), bad)
        assert caught.value.code == -32602


def test_proofs_of_old_blocks_change_nothing(chain: Devnet) -> None:
    before = chain.rpc("eth_getProof", deployed(0), ["0x0"], "latest")
    for block in ("0x1", "0x0", "0x3"):
        chain.rpc("eth_getProof", deployed(0), ["0x0"], block)
    assert chain.rpc("eth_getProof", deployed(0), ["0x0"], "latest") == before
    chain.rpc("eth_sendRawTransaction", ALICE.call(8, deployed(0)).raw)
    chain.rpc("evm_mine")
    check(chain, chain.rpc("eth_getProof", deployed(0), ["0x0"], "latest"), "latest")


def test_changes_by_hand_are_proven_in_the_next_block(chain: Devnet) -> None:
    chain.rpc("anvil_setStorageAt", deployed(0), "0x5", "0x" + (9).to_bytes(32, "big").hex())
    chain.rpc("anvil_setBalance", ABSENT, "0x7")
    chain.rpc("evm_mine")
    proof = chain.rpc("eth_getProof", deployed(0), ["0x5"], "latest")
    assert proof["storageProof"][0]["value"] == "0x9"
    check(chain, proof, "latest")
    check(chain, chain.rpc("eth_getProof", ABSENT, [], "latest"), "latest")
