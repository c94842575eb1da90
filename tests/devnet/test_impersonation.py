"""Accounts send without their keys: known by hash, in blocks, in the ledger, and back in the pool after a reorg."""

import pytest

from tests.devnet.bytecode import assemble, deploying
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI, SOMEONE, words
from tests.support.devnet import Devnet, NodeProcess, RpcFailure

PRICES = {"maxFeePerGas": hex(10 * GWEI), "maxPriorityFeePerGas": hex(GWEI)}


def test_a_node_that_is_put_back_impersonates_as_before(devnet: Devnet) -> None:
    devnet.rpc("anvil_impersonateAccount", SOMEONE)
    put_back = devnet.remember()
    before = devnet.rpc("devnet_impersonation")
    assert before == {"everyone": False, "accounts": [SOMEONE]}
    devnet.rpc("anvil_stopImpersonatingAccount", SOMEONE)
    devnet.rpc("anvil_impersonateAccount", "0x" + "77" * 20)
    devnet.rpc("anvil_autoImpersonateAccount", True)
    assert put_back()
    assert devnet.rpc("devnet_impersonation") == before


def fund(node: NodeProcess, address: str) -> None:
    node.rpc("anvil_setBalance", address, hex(ETHER))


def test_an_impersonated_account_sends_as_on_anvil(either: NodeProcess) -> None:
    node, request = either, {"from": SOMEONE, "to": BOB.address, "value": "0x1", "gas": "0x5208"}
    with pytest.raises(RpcFailure):
        node.rpc("eth_sendTransaction", request | PRICES)
    node.rpc("anvil_impersonateAccount", SOMEONE)
    fund(node, SOMEONE)
    assert node.rpc("eth_accounts")[-1] == SOMEONE
    typed = node.rpc("eth_sendTransaction", request | PRICES)
    legacy = node.rpc("eth_sendTransaction", request | {"gasPrice": hex(5 * GWEI)})
    # Recorded from anvil 1.7.1: the hash covers the sender, the signature is zeros.
    assert typed == "0x7f888df75986e550dad88c3622348499f7607b62d3d0be3e712f25dc006687f4"
    assert legacy == "0xd192a024a5aad014da6f41fbb679d289a17f95c15119e961b7e5585f15acc908"
    node.rpc("evm_mine")
    told = [node.rpc("eth_getTransactionByHash", item) for item in (typed, legacy)]
    assert [item["from"] for item in told] == [SOMEONE, SOMEONE]
    assert [item["nonce"] for item in told] == ["0x0", "0x1"]
    assert [(item["r"], item["s"], item["v"]) for item in told] == [("0x0", "0x0", "0x0"), ("0x0", "0x0", "0xf4f5")]
    receipt = node.rpc("eth_getTransactionReceipt", typed)
    assert (receipt["status"], receipt["from"]) == ("0x1", SOMEONE)
    node.rpc("anvil_stopImpersonatingAccount", SOMEONE)
    with pytest.raises(RpcFailure):
        node.rpc("eth_sendTransaction", request | PRICES)


def test_equal_transactions_of_two_senders_are_two(devnet: Devnet) -> None:
    devnet.rpc("anvil_autoImpersonateAccount", True)
    others = ["0x" + digit * 40 for digit in "67"]
    for address in others:
        fund(devnet, address)
    request = {"to": BOB.address, "value": "0x1", "gas": "0x5208"} | PRICES
    sent = [devnet.rpc("eth_sendTransaction", request | {"from": address}) for address in others]
    assert len(set(sent)) == 2
    devnet.rpc("evm_mine")
    assert [devnet.rpc("eth_getTransactionReceipt", item)["from"] for item in sent] == others
    raw = {devnet.rpc("eth_getRawTransactionByHash", item) for item in sent}
    assert len(raw) == 1


def test_contracts_send_too(devnet: Devnet) -> None:
    devnet.rpc("eth_sendRawTransaction", ALICE.create(0, deploying(assemble("CALLER PUSH0 SSTORE STOP"))).raw)
    devnet.rpc("evm_mine")
    contract = deployed(0)
    fund(devnet, contract)
    devnet.rpc("anvil_impersonateAccount", contract)
    sent = devnet.rpc("eth_sendTransaction", {"from": contract, "to": contract})
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", sent)["status"] == "0x1"
    assert devnet.rpc("eth_getTransactionBySenderAndNonce", contract, "0x1")["hash"] == sent
    assert devnet.rpc("eth_getStorageAt", contract, "0x0", "latest").endswith(contract[2:])
    devnet.rpc("anvil_stopImpersonatingAccount", contract)


def test_they_are_in_the_ledger_and_survive_a_reorg(devnet: Devnet) -> None:
    since = len(devnet.rpc("devnet_submissions"))
    fund(devnet, SOMEONE)
    devnet.rpc("anvil_impersonateAccount", SOMEONE)
    devnet.rpc("evm_mine")
    sent = devnet.rpc("eth_sendTransaction", {"from": SOMEONE, "to": BOB.address})
    devnet.rpc("evm_mine")
    devnet.rpc("anvil_stopImpersonatingAccount", SOMEONE)
    devnet.rpc("anvil_reorg", 1, [])
    assert devnet.rpc("eth_getTransactionReceipt", sent) is None
    assert devnet.rpc("eth_getTransactionByHash", sent)["from"] == SOMEONE
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", sent)["blockNumber"] == "0x3"
    (item,) = devnet.rpc("devnet_submissions", {"since": since})
    assert (item["hash"], item["from"], item["verdict"]) == (sent, SOMEONE, "pending")
    assert [event["event"] for event in item["events"]] == ["mined", "orphaned", "mined"]


def test_an_unsigned_transaction_is_sent_for_anybody(devnet: Devnet) -> None:
    fund(devnet, SOMEONE)
    request = {"from": SOMEONE, "to": BOB.address, "value": "0x1", "gas": "0x5208", "nonce": "0x0"}
    sent = devnet.rpc("eth_sendUnsignedTransaction", request | {"gasPrice": "0x77359400"})
    # Recorded from anvil 1.7.1 with nonce 3.
    third = devnet.rpc("eth_sendUnsignedTransaction", request | {"gasPrice": "0x77359400", "nonce": "0x3"})
    assert third == "0xb242dae4ec81257bac3edf541a9eeca0439b6881dc626d95e189af1da713e030"
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", sent)["from"] == SOMEONE


def test_ecrecover_believes_a_given_signature(devnet: Devnet) -> None:
    signature = "0x" + "11" * 64 + "1b"
    call = {"to": "0x" + "00" * 19 + "01", "data": "0x" + ("22" * 32 + words([27]).hex() + "11" * 64)}
    before = devnet.rpc("eth_call", call, "latest")
    devnet.rpc("anvil_impersonateSignature", signature, BOB.address)
    assert devnet.rpc("eth_call", call, "latest") == "0x" + words([BOB.address]).hex() != before
    devnet.rpc("anvil_impersonateSignature", [signature, ALICE.address])
    assert devnet.rpc("eth_call", call, "latest") == "0x" + words([ALICE.address]).hex()
