"""The methods clients call beyond blocks, pool and state: every name there should be, and what each answers."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from devnet.errors import RpcError
from devnet.server.rpc import METHODS
from tests.devnet.bytecode import COUNTER, assemble, deploying
from tests.devnet.conftest import GENESIS_TIME
from tests.devnet.in_process import InProcess
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER, GWEI, SOMEONE, words
from tests.support.devnet import Devnet, NodeProcess, RpcFailure

# anvil 1.7.1's names, but for trace_, ots_, erigon_ and its Tempo methods, which nobody who tests a sender calls.
ANVIL = """
web3_clientVersion web3_sha3 net_listening net_version personal_sign txpool_status txpool_inspect txpool_content
eth_accounts eth_requestAccounts eth_blobBaseFee eth_blockNumber eth_call eth_chainId eth_coinbase eth_config
eth_createAccessList eth_estimateGas eth_feeHistory eth_fillTransaction eth_gasPrice eth_getAccount eth_getAccountInfo
eth_getBalance eth_getBlockByHash eth_getBlockByNumber eth_getBlockReceipts eth_getBlockTransactionCountByHash
eth_getBlockTransactionCountByNumber eth_getCode eth_getFilterChanges eth_getFilterLogs eth_getLogs eth_getProof
eth_getRawTransactionByHash eth_getRawTransactionByBlockHashAndIndex eth_getRawTransactionByBlockNumberAndIndex
eth_getStorageAt eth_getStorageValues eth_getTransactionByHash eth_getTransactionByBlockHashAndIndex
eth_getTransactionByBlockNumberAndIndex eth_getTransactionBySenderAndNonce eth_getTransactionCount
eth_getTransactionReceipt eth_getUncleCountByBlockHash eth_getUncleCountByBlockNumber eth_getUncleByBlockHashAndIndex
eth_getUncleByBlockNumberAndIndex eth_hashrate eth_maxPriorityFeePerGas eth_networkId eth_newBlockFilter eth_newFilter
eth_newPendingTransactionFilter eth_protocolVersion eth_sendRawTransaction eth_sendRawTransactionSync
eth_sendTransaction eth_sendTransactionSync eth_sendUnsignedTransaction eth_sign eth_signTransaction
eth_signTypedData_v4 eth_simulateV1 eth_subscribe eth_unsubscribe eth_syncing eth_uninstallFilter
debug_getRawTransaction debug_traceTransaction debug_traceCall debug_codeByHash debug_traceBlockByHash
debug_traceBlockByNumber evm_mine
anvil_impersonateAccount hardhat_impersonateAccount anvil_stopImpersonatingAccount hardhat_stopImpersonatingAccount
anvil_autoImpersonateAccount hardhat_autoImpersonateAccount anvil_impersonateSignature anvil_getAutomine
hardhat_getAutomine anvil_mine hardhat_mine anvil_setAutomine evm_setAutomine anvil_setIntervalMining
evm_setIntervalMining anvil_getIntervalMining anvil_dropTransaction hardhat_dropTransaction anvil_dropAllTransactions
anvil_removePoolTransactions anvil_reset hardhat_reset anvil_setRpcUrl anvil_setBalance hardhat_setBalance
tenderly_setBalance anvil_addBalance hardhat_addBalance tenderly_addBalance anvil_dealERC20 hardhat_dealERC20
anvil_setERC20Allowance anvil_setCode hardhat_setCode anvil_setNonce hardhat_setNonce evm_setAccountNonce
anvil_setStorageAt hardhat_setStorageAt anvil_setCoinbase hardhat_setCoinbase anvil_setChainId
anvil_setLoggingEnabled hardhat_setLoggingEnabled anvil_setMinGasPrice hardhat_setMinGasPrice
anvil_setNextBlockBaseFeePerGas hardhat_setNextBlockBaseFeePerGas anvil_setTime evm_setTime anvil_dumpState
hardhat_dumpState anvil_loadState hardhat_loadState anvil_nodeInfo anvil_metadata hardhat_metadata anvil_snapshot
evm_snapshot anvil_revert evm_revert anvil_increaseTime evm_increaseTime anvil_setNextBlockTimestamp
evm_setNextBlockTimestamp anvil_setBlockGasLimit evm_setBlockGasLimit anvil_setBlockTimestampInterval
anvil_removeBlockTimestampInterval anvil_mine_detailed evm_mine_detailed anvil_reorg anvil_rollback
anvil_getBlobByHash anvil_getBlobsByTransactionHash anvil_getGenesisTime
"""
GETH = """
rpc_modules net_peerCount eth_pendingTransactions eth_getHeaderByHash eth_getHeaderByNumber eth_baseFee
txpool_contentFrom hardhat_setPrevRandao anvil_setPrevRandao anvil_setNextBlockPrevRandao eth_mining
"""
TYPED_DATA: dict[str, Any] = {
    "types": {
        "EIP712Domain": [{"name": "name", "type": "string"}, {"name": "chainId", "type": "uint256"}],
        "Mail": [{"name": "to", "type": "address"}, {"name": "text", "type": "string"}],
    },
    "primaryType": "Mail",
    "domain": {"name": "Post", "chainId": 31337},
    "message": {"to": BOB.address, "text": "hello"},
}


def test_every_name_that_clients_call_is_there() -> None:
    assert set((ANVIL + GETH).split()) - METHODS.keys() == set()


def test_the_namespaces_told_are_those_there_are(devnet: Devnet) -> None:
    assert devnet.rpc("rpc_modules").keys() == {name.partition("_")[0] for name in METHODS}


def test_accounts_signatures_and_info_are_those_of_anvil(either: NodeProcess) -> None:
    rpc = either.rpc
    rpc("eth_sendRawTransaction", ALICE.create(0, deploying(COUNTER)).raw)
    sent = ALICE.call(1, deployed(0), gasPrice=3 * GWEI)
    rpc("eth_sendRawTransaction", sent.raw)
    rpc("evm_mine")
    waiting = ALICE.sign(2)
    rpc("eth_sendRawTransaction", waiting.raw)
    assert rpc("eth_getTransactionBySenderAndNonce", ALICE.address, "0x1")["hash"] == sent.hash
    assert rpc("eth_getTransactionBySenderAndNonce", ALICE.address, "0x2")["hash"] == waiting.hash
    assert rpc("eth_getTransactionBySenderAndNonce", ALICE.address, "0x3") is None
    assert rpc("eth_getRawTransactionByBlockNumberAndIndex", "0x1", "0x1") == sent.raw
    # keccak of the code, and the root of a trie with the value 1 in slot 0.
    account = rpc("eth_getAccount", deployed(0), "latest")
    assert {name: account[name] for name in ("nonce", "balance")} == {"nonce": "0x1", "balance": "0x0"}
    assert account["storageRoot"] == "0x821e2556a290c86405f8160a2d662042a431ba456b9db265c79bb837c04be5f0"
    assert account["codeHash"] == rpc("web3_sha3", "0x" + COUNTER.hex())
    info = rpc("eth_getAccountInfo", deployed(0), "latest")
    assert info == {"nonce": "0x1", "balance": "0x0", "code": "0x" + COUNTER.hex()}
    slots = {deployed(0): ["0x" + "00" * 32, "0x" + "00" * 31 + "05"]}
    assert rpc("eth_getStorageValues", slots, "latest") == {
        deployed(0): ["0x" + "00" * 31 + "01", "0x" + "00" * 32],
    }
    signature = (
        "0xa114c834af73872c6c9efe918d85b0b1b34a486d10f9011e2630e28417c828c0"
        "60dbd65cda67e73d52ebb7c555260621dbc1b0b4036acb61086bba091ac3f1641b"
    )
    assert rpc("eth_sign", ALICE.address, "0xdeadbeef") == signature
    assert rpc("personal_sign", "0xdeadbeef", ALICE.address) == signature
    assert rpc("eth_signTypedData_v4", ALICE.address, TYPED_DATA) == (
        "0x4d6508b1c452b88d07129ca161fb1d341eecfe34ef1791cf2a2f6366c7acec3c"
        "6987deb1c6d27c488a446b40a1ef1c9f8e1918ad1b4b6987777eb66955603d301b"
    )
    metadata = rpc("anvil_metadata")
    assert metadata["clientVersion"].startswith("anvil/v1.7.1")
    assert metadata["clientSemver"].startswith("1.7.1")
    assert (metadata["chainId"], metadata["latestBlockNumber"], metadata["forkedNetwork"]) == (31337, 1, None)
    snapshot = rpc("evm_snapshot")
    head = rpc("eth_getBlockByNumber", "latest", False)["hash"]
    assert rpc("hardhat_metadata")["snapshots"][snapshot] == [1, head]
    assert metadata.keys() == {
        "clientVersion",
        "clientSemver",
        "clientCommitSha",
        "chainId",
        "instanceId",
        "latestBlockNumber",
        "latestBlockHash",
        "forkedNetwork",
        "snapshots",
    }
    assert rpc("anvil_getGenesisTime") == GENESIS_TIME
    assert (rpc("eth_hashrate"), rpc("eth_protocolVersion"), rpc("net_version")) == ("0x0", 1, "31337")
    rpc("anvil_setChainId", 77)
    told = rpc("eth_chainId"), rpc("net_version")
    rpc("anvil_setChainId", 31337)
    assert told == ("0x4d", "77")
    with pytest.raises(RpcFailure, match="anvil_setMinGasPrice is not supported when EIP-1559 is active"):
        rpc("anvil_setMinGasPrice", "0x1")


def test_blocks_can_be_timed_and_told_in_detail(either: NodeProcess) -> None:
    rpc = either.rpc
    rpc("anvil_setBlockTimestampInterval", 7)
    sent = ALICE.sign(0)
    rpc("eth_sendRawTransaction", sent.raw)
    (first,) = rpc("evm_mine_detailed")
    (second,) = rpc("anvil_mine_detailed")
    assert [tx["hash"] for tx in first["transactions"]] == [sent.hash]
    assert int(second["timestamp"], 16) - int(first["timestamp"], 16) == 7
    assert rpc("anvil_removeBlockTimestampInterval") is True
    assert rpc("anvil_removeBlockTimestampInterval") is False


def test_typed_data_may_come_as_json_and_must_be_some(devnet: Devnet) -> None:
    given = devnet.rpc("eth_signTypedData_v4", ALICE.address, TYPED_DATA)
    assert devnet.rpc("eth_signTypedData", ALICE.address, json.dumps(TYPED_DATA)) == given
    for data in ({}, "{", TYPED_DATA | {"message": {}}):
        with pytest.raises(RpcFailure) as caught:
            devnet.rpc("eth_signTypedData_v4", ALICE.address, data)
        assert caught.value.code == -32602
    with pytest.raises(RpcFailure, match="unknown account"):
        devnet.rpc("eth_signTypedData_v4", SOMEONE, TYPED_DATA)


# As geth 1.17 answers a request of these fields, for chain id 31337; the hash is of the bytes without a signature.
FILLED = {
    "type": "0x2",
    "chainId": "0x7a69",
    "nonce": "0x0",
    "to": BOB.address,
    "gas": "0x5208",
    "gasPrice": None,
    "maxPriorityFeePerGas": hex(GWEI),
    "maxFeePerGas": hex(3 * GWEI),
    "value": "0x5",
    "input": "0x",
    "accessList": [],
    "v": "0x0",
    "r": "0x0",
    "s": "0x0",
    "yParity": "0x0",
}


def test_a_request_is_filled_in_as_by_geth(devnet: Devnet) -> None:
    request = {"from": ALICE.address, "to": BOB.address, "value": "0x5"}
    filled = devnet.rpc("eth_fillTransaction", request)
    assert {name: value for name, value in filled["tx"].items() if name != "hash"} == FILLED
    assert filled["tx"]["hash"] == devnet.rpc("web3_sha3", filled["raw"])
    assert devnet.rpc("txpool_status")["pending"] == "0x0"
    signed = devnet.rpc("eth_signTransaction", request)
    assert {name: signed["tx"][name] for name in ("nonce", "gas", "maxFeePerGas", "gasPrice")} == {
        name: FILLED[name] for name in ("nonce", "gas", "maxFeePerGas", "gasPrice")
    }
    assert devnet.rpc("eth_sendRawTransaction", signed["raw"]) == signed["tx"]["hash"]
    legacy = devnet.rpc("eth_fillTransaction", request | {"type": "0x0"})["tx"]
    assert (legacy["type"], legacy["nonce"], legacy["gasPrice"]) == ("0x0", "0x1", hex(2 * GWEI))
    assert (legacy["maxFeePerGas"], "accessList" in legacy, "yParity" in legacy) == (None, False, False)
    delegation = {"chainId": "0x7a69", "address": SOMEONE, "nonce": "0x1", "yParity": "0x0", "r": "0x1", "s": "0x1"}
    assert devnet.rpc("eth_fillTransaction", request | {"authorizationList": [delegation]})["tx"]["type"] == "0x4"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"chainId": "0x1"}, r"chainId does not match node's \(have=1, want=31337\)"),
        (
            {"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"},
            r"maxFeePerGas \(0x1\) < maxPriorityFeePerGas \(0x2\)",
        ),
        ({"gasPrice": "0x0"}, "gasPrice must be non-zero after london fork"),
        ({"to": None}, "contract creation without any data provided"),
        ({"from": SOMEONE}, "unknown account"),
        ({"blobVersionedHashes": ["0x01" + "00" * 31]}, "signing blob transactions not supported"),
    ],
)
def test_requests_are_refused_in_geths_words(devnet: Devnet, fields: dict[str, Any], text: str) -> None:
    request = {"from": ALICE.address, "to": BOB.address, "gas": "0x5208"} | fields
    with pytest.raises(RpcFailure, match=text) as caught:
        devnet.rpc("eth_sendTransaction", request)
    assert caught.value.code == -32000


def test_what_is_not_there_is_empty_as_with_geth(devnet: Devnet) -> None:
    assert devnet.rpc("eth_getRawTransactionByHash", "0x" + "11" * 32) == "0x"
    assert devnet.rpc("eth_getRawTransactionByBlockNumberAndIndex", "0x0", "0x5") == "0x"
    assert devnet.rpc("eth_getRawTransactionByBlockNumberAndIndex", "0x99", "0x0") == "0x"
    with pytest.raises(RpcFailure, match="empty request") as caught:
        devnet.rpc("eth_getStorageValues", {}, "latest")
    assert caught.value.code == -32602
    with pytest.raises(RpcFailure, match=r"too many slots \(max 1024\)") as caught:
        devnet.rpc("eth_getStorageValues", {SOMEONE: ["0x" + "00" * 32] * 1025}, "latest")
    assert caught.value.code == -38026


def test_a_submission_can_wait_for_its_receipt(devnet: Devnet) -> None:
    signed = ALICE.sign(0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(devnet.rpc, "eth_sendRawTransactionSync", signed.raw)
        while devnet.rpc("txpool_status")["pending"] == "0x0":
            assert not waiting.done()
        devnet.rpc("evm_mine")
        receipt = waiting.result(20)
    assert receipt == devnet.rpc("eth_getTransactionReceipt", signed.hash)
    late = BOB.sign(0)
    with pytest.raises(RpcFailure) as caught:
        devnet.rpc("eth_sendRawTransactionSync", late.raw, 2)
    assert (caught.value.code, caught.value.data) == (4, late.hash)
    assert caught.value.message == "The transaction was added to the transaction pool but wasn't processed in 2ms"
    assert devnet.rpc("eth_getTransactionByHash", late.hash)["blockHash"] is None
    with pytest.raises(RpcFailure, match="already known") as caught:
        devnet.rpc("eth_sendRawTransactionSync", late.raw)
    assert caught.value.code == -32000


def test_with_automine_the_receipt_is_there_at_once(devnet: Devnet) -> None:
    devnet.rpc("evm_setAutomine", True)
    receipt = devnet.rpc("eth_sendTransactionSync", {"from": ALICE.address, "to": BOB.address})
    assert (receipt["blockNumber"], receipt["status"]) == ("0x1", "0x1")
    answers = devnet.batch(
        [("eth_sendRawTransactionSync", [CAROL.sign(0).raw]), ("eth_blockNumber", []), ("eth_mining", [])]
    )
    assert answers[0]["blockNumber"] == answers[1] == "0x2"
    assert answers[2] is False


# balanceOf at keccak(owner . 0) after a look at slot 5, all else allowance at keccak(spender . keccak(owner . 1))
GETTERS = assemble(
    "PUSH0 CALLDATALOAD 224 SHR 0x70a08231 EQ @balance JUMPI "
    "4 CALLDATALOAD PUSH0 MSTORE 1 32 MSTORE 64 PUSH0 KECCAK256 32 MSTORE 36 CALLDATALOAD PUSH0 MSTORE "
    "64 PUSH0 KECCAK256 SLOAD PUSH0 MSTORE 32 PUSH0 RETURN "
    ":balance 5 SLOAD POP 4 CALLDATALOAD PUSH0 MSTORE PUSH0 32 MSTORE "
    "64 PUSH0 KECCAK256 SLOAD PUSH0 MSTORE 32 PUSH0 RETURN"
)


def test_token_balances_and_allowances_can_be_set(either: NodeProcess) -> None:
    node = either
    node.rpc("anvil_setCode", SOMEONE, "0x" + GETTERS.hex())

    def get(selector: str, *of: str) -> int:
        call = {"to": SOMEONE, "data": "0x" + selector + words(of).hex()}
        return int(node.rpc("eth_call", call, "latest"), 16)

    node.rpc("anvil_dealERC20", ALICE.address, SOMEONE, hex(10**30))
    node.rpc("anvil_setERC20Allowance", ALICE.address, BOB.address, SOMEONE, "0x7")
    assert get("70a08231", ALICE.address) == 10**30
    assert get("70a08231", BOB.address) == 0
    assert get("dd62ed3e", ALICE.address, BOB.address) == 7
    assert get("dd62ed3e", BOB.address, ALICE.address) == 0
    assert int(node.rpc("eth_getStorageAt", SOMEONE, "0x5", "latest"), 16) == 0
    with pytest.raises(RpcFailure, match="Unable to set ERC20 balance, no slot found") as caught:
        node.rpc("anvil_dealERC20", ALICE.address, BOB.address, "0x7")
    assert caught.value.code == -32603


def test_a_reset_goes_back_to_genesis_with_nothing_kept() -> None:
    rpc = InProcess("--no-mining").rpc
    genesis = rpc("eth_getBlockByNumber", "0x0", False)["hash"]
    snapshot = rpc("evm_snapshot")
    rpc("anvil_setBalance", SOMEONE, hex(ETHER))
    rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
    rpc("anvil_mine", 3)
    rpc("eth_sendRawTransaction", ALICE.sign(1).raw)
    with pytest.raises(RpcError, match="does not fork"):
        rpc("hardhat_reset", {"forking": {"jsonRpcUrl": "http://localhost:1"}})
    rpc("hardhat_reset")
    assert rpc("eth_getBlockByNumber", "latest", False)["hash"] == genesis
    assert rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}
    assert rpc("eth_getBalance", SOMEONE, "latest") == "0x0"
    assert rpc("evm_revert", snapshot) is False
    rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
    rpc("evm_mine")
    assert rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x1"


def test_the_next_block_has_the_ordered_randomness(devnet: Devnet) -> None:
    wanted = "0x" + "ab" * 32
    for method in ("hardhat_setPrevRandao", "anvil_setNextBlockPrevRandao"):
        devnet.rpc(method, wanted)
        devnet.rpc("evm_mine")
        assert devnet.rpc("eth_getBlockByNumber", "latest", False)["mixHash"] == wanted
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getHeaderByNumber", "latest")["mixHash"] != wanted


def test_all_transactions_of_a_sender_can_be_removed(devnet: Devnet) -> None:
    for signed in (ALICE.sign(0), ALICE.sign(1), ALICE.sign(7), BOB.sign(0)):
        devnet.rpc("eth_sendRawTransaction", signed.raw)
    devnet.rpc("anvil_removePoolTransactions", ALICE.address)
    assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, "pending") == "0x0"


def hashes(devnet: Devnet, *numbers: int) -> list[list[str]]:
    return [devnet.rpc("eth_getBlockByNumber", hex(number), False)["transactions"] for number in numbers]


def test_a_reorg_puts_chosen_transactions_into_the_new_blocks(devnet: Devnet) -> None:
    lost = ALICE.sign(0)
    devnet.rpc("eth_sendRawTransaction", lost.raw)
    devnet.rpc("anvil_mine", 3)
    rival = ALICE.sign(0, to=CAROL.address)
    later = BOB.sign(0)
    request = {"from": CAROL.address, "to": BOB.address, "value": "0x1"}
    since = len(devnet.rpc("devnet_submissions"))
    devnet.rpc("anvil_reorg", 3, [[rival.raw, 0], [later.raw, 2], [request, 2]])
    first, second, (third, fourth) = hashes(devnet, 1, 2, 3)
    assert (first, second, third) == ([rival.hash], [], later.hash)
    assert devnet.rpc("eth_getTransactionByHash", fourth)["from"] == CAROL.address
    assert devnet.rpc("eth_getTransactionReceipt", later.hash)["status"] == "0x1"
    assert devnet.rpc("eth_getTransactionByHash", lost.hash) is None
    assert [item["verdict"] for item in devnet.rpc("devnet_submissions", {"since": since})] == ["injected"] * 3
    devnet.rpc("anvil_reorg", {"depth": 1, "tx_block_pairs": [[ALICE.sign(1).raw, "0x0"]]})
    assert hashes(devnet, 3) == [[ALICE.sign(1).hash]]
    assert devnet.rpc("txpool_status") == {"pending": "0x2", "queued": "0x0"}


@pytest.mark.parametrize(
    ("depth", "pairs", "text"),
    [
        (9, [], "Reorg depth must not exceed current chain height: current height 2, depth 9"),
        (1, [["0x1234", 0]], "Failed to decode transaction"),
        (1, [[5, 0]], "transaction is not a hex string"),
        (1, [[BOB.sign(0).raw, 1]], r"Block number 1 must not exceed \(depth-1\) 0"),
        (1, [[BOB.sign(7).raw, 0]], "cannot be in new block 0"),
        (1, [BOB.sign(0).raw], "want pairs"),
    ],
)
def test_a_reorg_that_cannot_be_changes_nothing(devnet: Devnet, depth: int, pairs: list[Any], text: str) -> None:
    devnet.rpc("anvil_mine", 2)
    before = devnet.rpc("eth_getBlockByNumber", "latest", False)
    with pytest.raises(RpcFailure, match=text) as caught:
        devnet.rpc("anvil_reorg", depth, pairs)
    assert caught.value.code == -32602
    assert devnet.rpc("eth_getBlockByNumber", "latest", False) == before
