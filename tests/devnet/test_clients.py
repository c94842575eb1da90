"""Clients that know nothing of us run against the devnet unchanged: web3.py, and cast where it can be had."""

import subprocess
import warnings

import pytest

from tests.devnet.bytecode import COUNTER, deploying
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI
from tests.support.anvil import foundry_binary
from tests.support.devnet import start_devnet

ABI = [
    {"type": "function", "name": "count", "inputs": [], "outputs": [{"type": "uint256"}], "stateMutability": "view"},
]


def test_web3_deploys_calls_and_reads_logs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from web3 import Web3
    with start_devnet("--silent", "--block-time", "0.05") as devnet:
        web3 = Web3(Web3.HTTPProvider(devnet.url))
        assert web3.is_connected()
        assert web3.eth.chain_id == 31337
        alice = web3.eth.account.from_key(ALICE.key)
        sent = web3.eth.send_transaction({"from": alice.address, "data": "0x" + deploying(COUNTER).hex()})
        receipt = web3.eth.wait_for_transaction_receipt(sent, timeout=20, poll_latency=0.02)
        assert receipt["status"] == 1
        contract = web3.eth.contract(address=receipt["contractAddress"], abi=ABI)
        assert contract.functions.count().call() == 1
        raw = alice.sign_transaction(
            {
                "chainId": 31337,
                "nonce": web3.eth.get_transaction_count(alice.address, "pending"),
                "to": receipt["contractAddress"],
                "gas": web3.eth.estimate_gas({"from": alice.address, "to": receipt["contractAddress"]}),
                "maxFeePerGas": 10 * GWEI,
                "maxPriorityFeePerGas": web3.eth.max_priority_fee,
                "value": 0,
            }
        ).raw_transaction
        receipt = web3.eth.wait_for_transaction_receipt(
            web3.eth.send_raw_transaction(raw), timeout=20, poll_latency=0.02
        )
        assert len(receipt["logs"]) == 1
        assert web3.eth.get_logs({"fromBlock": 0, "address": contract.address}) == receipt["logs"]
        history = web3.eth.fee_history(2, "latest", [25.0, 75.0])
        assert len(history["baseFeePerGas"]) == 3
        assert web3.eth.get_block("latest", full_transactions=True)["gasLimit"] == 30_000_000
        assert web3.eth.get_block("pending")["number"] > 0
        bob = web3.eth.accounts[1]
        with web3.batch_requests() as batch:
            batch.add(web3.eth.get_balance(bob))
            batch.add(web3.eth.get_block("earliest"))
            balance, genesis = batch.execute()
        assert balance == 10_000 * ETHER
        assert genesis["number"] == 0
        assert web3.geth.txpool.status() == {"pending": "0x0", "queued": "0x0"}


def test_cast_sends_and_reads() -> None:
    cast, trouble = foundry_binary("cast")
    if cast is None:
        pytest.skip(trouble)
    with start_devnet("--silent") as devnet:

        def run(*words: str) -> str:
            command = [str(cast), words[0], "--rpc-url", devnet.url, *words[1:]]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        out = run("send", BOB.address, "--value", "1ether", "--private-key", ALICE.key)
        assert "success" in out
        assert run("balance", BOB.address) == str(10_001 * ETHER)
        assert run("nonce", ALICE.address) == "1"
        out = run("send", "--private-key", ALICE.key, "--legacy", "--create", "0x" + deploying(COUNTER).hex())
        assert "contractAddress" in out
        assert run("block-number") == "2"
        assert run("call", "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512").endswith("01")
        assert run("gas-price").isdecimal()
