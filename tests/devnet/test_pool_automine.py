"""With automine nothing that can be included waits: not in a burst, not out of order, not when it becomes possible later."""

import http.client
import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from eth_account import Account

from devnet.accounts import sign as quick_sign
from devnet.codec.rlp_coding import integer
from devnet.codec.transaction import DYNAMIC_FEE
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER, GWEI, SOMEONE, Wallet
from tests.support.devnet import Devnet, RpcFailure, start_devnet

EMPTY = {"pending": "0x0", "queued": "0x0"}


@pytest.fixture(scope="module")
def running() -> Iterator[Devnet]:
    with start_devnet("--silent", "--gas-limit", "1000000") as devnet:
        yield devnet


@pytest.fixture
def automining(running: Devnet) -> Iterator[Devnet]:
    snapshot = running.rpc("evm_snapshot")
    yield running
    assert running.rpc("evm_revert", snapshot)


def transfers(wallet: Wallet, count: int) -> list[str]:
    """Signed transfers of nonces from 0 on; by the devnet's own signer, which is ten times as fast as eth-account."""
    fees = {"maxPriorityFeePerGas": integer(GWEI), "maxFeePerGas": integer(10 * GWEI)}
    rest = {"gas": integer(21_000), "to": bytes.fromhex(SOMEONE[2:]), "value": b"\x01", "data": b"", "accessList": ()}
    key = bytes.fromhex(wallet.key[2:])
    return [
        "0x" + quick_sign(key, DYNAMIC_FEE, 31337, {"nonce": integer(nonce)} | fees | rest).raw.hex()
        for nonce in range(count)
    ]


def post(devnet: Devnet, raws: Sequence[str]) -> list[str]:
    """Submit one after the other over a connection of its own; the hashes."""
    connection = http.client.HTTPConnection(devnet.host, devnet.port, timeout=60)
    hashes = []
    for raw in raws:
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_sendRawTransaction", "params": [raw]}
        connection.request("POST", "/", json.dumps(body), {"Content-Type": "application/json"})
        hashes.append(json.loads(connection.getresponse().read())["result"])
    connection.close()
    return hashes


def is_mined(devnet: Devnet, *hashes: str) -> bool:
    receipts = devnet.batch([("eth_getTransactionReceipt", [tx_hash]) for tx_hash in hashes])
    return all(receipt and receipt["status"] == "0x1" for receipt in receipts)


def send(devnet: Devnet, wallet: Wallet, nonce: int, **fields: object) -> str:
    return str(devnet.rpc("eth_sendRawTransaction", wallet.sign(nonce, **fields).raw))


def test_a_burst_over_several_connections_is_mined_to_the_last(automining: Devnet) -> None:
    wallets = [ALICE, BOB, CAROL, Wallet("0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6")]
    with ThreadPoolExecutor(len(wallets)) as threads:
        sent = list(threads.map(lambda wallet: post(automining, transfers(wallet, 500)), wallets))
    assert automining.rpc("txpool_status") == EMPTY
    counts = [automining.rpc("eth_getTransactionCount", wallet.address, "latest") for wallet in wallets]
    assert counts == [hex(500)] * 4
    assert 500 <= int(automining.rpc("eth_blockNumber"), 16) <= 2000  # a block holds one of each connection at most
    assert is_mined(automining, *(hashes[-1] for hashes in sent))


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_nonces_of_one_key_over_many_connections_are_all_mined(automining: Devnet, seed: int) -> None:
    raws = transfers(ALICE, 30)
    random.Random(seed).shuffle(raws)
    with ThreadPoolExecutor(16) as threads:
        hashes = [tx_hash for [tx_hash] in threads.map(lambda raw: post(automining, [raw]), raws)]
    assert automining.rpc("txpool_status") == EMPTY
    assert automining.rpc("eth_getTransactionCount", ALICE.address, "latest") == hex(30)
    assert is_mined(automining, *hashes)


def test_money_lets_a_waiting_transaction_go(automining: Devnet) -> None:
    automining.rpc("evm_setAutomine", False)
    waiting = send(automining, ALICE, 0, value=5 * ETHER)
    automining.rpc("anvil_setBalance", ALICE.address, hex(ETHER))
    automining.rpc("evm_setAutomine", True)
    assert automining.rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
    automining.rpc("anvil_setBalance", ALICE.address, hex(6 * ETHER))
    assert is_mined(automining, waiting)


def test_a_nonce_lets_waiting_transactions_go(automining: Devnet) -> None:
    waiting = [send(automining, ALICE, nonce) for nonce in (3, 4)]
    automining.rpc("anvil_setNonce", ALICE.address, "0x3")
    assert is_mined(automining, *waiting)


def test_a_lower_base_fee_lets_a_waiting_transaction_go(automining: Devnet) -> None:
    waiting = send(automining, ALICE, 0, maxFeePerGas=GWEI // 2, maxPriorityFeePerGas=1)
    automining.rpc("anvil_setNextBlockBaseFeePerGas", hex(GWEI // 2 - 1))
    assert is_mined(automining, waiting)


def test_a_larger_block_lets_a_waiting_transaction_go(automining: Devnet) -> None:
    automining.rpc("evm_setAutomine", False)
    waiting = send(automining, ALICE, 0, gas=900_000)
    automining.rpc("evm_setBlockGasLimit", hex(100_000))
    automining.rpc("evm_setAutomine", True)
    assert automining.rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
    automining.rpc("evm_setBlockGasLimit", hex(1_000_000))
    assert is_mined(automining, waiting)


def test_what_a_reorg_gives_back_is_mined_again(automining: Devnet) -> None:
    sent = [send(automining, ALICE, nonce) for nonce in range(3)]
    automining.rpc("anvil_reorg", 2, [])
    assert automining.rpc("txpool_status") == EMPTY
    assert is_mined(automining, *sent)
    assert automining.rpc("eth_blockNumber") == "0x4"  # two empty blocks in place of two, and one with both


def test_what_a_rollback_gives_back_is_mined_again(automining: Devnet) -> None:
    sent = [send(automining, ALICE, nonce) for nonce in range(3)]
    automining.rpc("anvil_rollback", 2)
    assert is_mined(automining, *sent)
    assert automining.rpc("eth_blockNumber") == "0x2"


def test_a_nonce_counted_by_an_authorization_lets_the_next_one_go(automining: Devnet) -> None:
    waiting = send(automining, BOB, 1)
    authorization = Account.sign_authorization({"chainId": 31337, "address": SOMEONE, "nonce": 0}, BOB.key)
    send(automining, ALICE, 0, type=4, gas=100_000, authorizationList=[authorization])
    assert is_mined(automining, waiting)


def test_what_cannot_be_included_does_not_hold_up_the_others(automining: Devnet) -> None:
    gapped, cheap = send(automining, ALICE, 5), send(automining, BOB, 0, maxFeePerGas=1, maxPriorityFeePerGas=1)
    assert is_mined(automining, *(send(automining, CAROL, nonce) for nonce in range(3)))
    assert automining.rpc("eth_blockNumber") == "0x3"
    assert automining.rpc("txpool_status") == {"pending": "0x1", "queued": "0x1"}
    for tx_hash in (gapped, cheap):
        assert automining.rpc("eth_getTransactionByHash", tx_hash)["blockHash"] is None


def test_a_refused_one_answers_an_error_and_makes_no_block(automining: Devnet) -> None:
    with pytest.raises(RpcFailure, match="insufficient funds"):
        send(automining, Wallet("0x" + "11" * 32), 0)
    assert automining.rpc("eth_blockNumber") == "0x0"
