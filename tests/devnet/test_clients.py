"""Clients that know nothing of us run against the devnet unchanged: web3.py; viem, ethers, hardhat's helpers, cast.

The latter where npm can fetch them. What they do works on anvil too, but for the misses named below.
"""

import re
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.devnet.bytecode import COUNTER, deploying
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI, SOMEONE
from tests.support.anvil import anvil_binary, foundry_binary, start_anvil
from tests.support.devnet import NodeProcess, start_devnet
from tests.support.npm_clients import client_modules, run_steps

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


STEPS = {"viem": 30, "ethers": 9, "hardhat_helpers": 23}
ANVIL_MISSES = {
    "viem": {
        "gas estimates",  # estimates a transfer nobody could pay
        "dump state, reset, load state",  # takes viem's reset() for a wish to fork
    },
    "ethers": set(),
    "hardhat_helpers": {"setPrevRandao"},
}


def contracts() -> dict[str, Any]:
    """Compiled contracts out of the web3 wheel, for the scripts to deploy."""
    from web3._utils.contract_sources.contract_data.math_contract import MATH_CONTRACT_DATA
    from web3._utils.contract_sources.contract_data.revert_contract import REVERT_CONTRACT_DATA

    return {"math": MATH_CONTRACT_DATA, "revert": REVERT_CONTRACT_DATA}


@pytest.fixture(scope="module")
def modules() -> Path:
    path, trouble = client_modules()
    if path is None:
        pytest.skip(trouble)
    return path


@pytest.mark.parametrize("script", STEPS)
def test_every_step_of_a_javascript_client_works(script: str, modules: Path) -> None:
    with start_devnet("--silent") as devnet:
        errors = run_steps(script, modules, devnet, contracts())
    assert {step: error for step, error in errors.items() if error is not None} == {}
    assert len(errors) == STEPS[script]


@pytest.mark.anvil
@pytest.mark.parametrize("script", STEPS)
def test_anvil_misses_the_steps_it_is_said_to_miss(script: str, modules: Path) -> None:
    path, trouble = anvil_binary()
    if path is None:
        pytest.skip(trouble)
    with start_anvil() as anvil:
        errors = run_steps(script, modules, anvil, contracts())
    failed = {step for step, error in errors.items() if error is not None}
    print(f"{script}: anvil passes {len(errors) - len(failed)} of {len(errors)} steps, not {sorted(failed)}")
    assert failed >= ANVIL_MISSES[script]


@pytest.fixture
def cast() -> Callable[..., str]:
    """Runs cast and returns what it prints; fails if it does."""
    path, trouble = foundry_binary("cast")
    if path is None:
        pytest.skip(trouble)

    def run(command: str, *words: str, node: NodeProcess) -> str:
        done = subprocess.run(
            [str(path), command, "--rpc-url", node.url, *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"cast {command}: {done.stderr}"
        return done.stdout.strip()

    return run


@pytest.mark.parametrize("kind", ["devnet", pytest.param("anvil", marks=pytest.mark.anvil)])
def test_cast_sends_and_reads(kind: str, cast: Callable[..., str]) -> None:
    if kind == "anvil":
        path, trouble = anvil_binary()
        if path is None:
            pytest.skip(trouble)
    with start_devnet("--silent") if kind == "devnet" else start_anvil() as node:

        def run(command: str, *words: str) -> str:
            return cast(command, *words, node=node)

        key = ("--private-key", ALICE.key)
        counter = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512"  # ALICE's second transaction creates it
        assert run("chain-id") == "31337"
        assert run("client").startswith("anvil/")
        assert "success" in run("send", BOB.address, "--value", "1ether", *key)
        assert run("balance", BOB.address) == str(10_001 * ETHER)
        assert run("nonce", ALICE.address) == "1"
        assert "contractAddress" in run("send", "--legacy", *key, "--create", "0x" + deploying(COUNTER).hex())
        assert run("block-number") == "2"
        assert run("call", counter).endswith("01")
        assert run("code", counter) == "0x" + COUNTER.hex()
        assert run("codesize", counter) == str(len(COUNTER))
        assert int(run("estimate", counter, "--from", ALICE.address)) > 21_000
        receipt = run("send", counter, *key)
        sent = re.search(r"^transactionHash\s+(0x\w{64})$", receipt, re.MULTILINE)
        assert sent is not None, receipt
        assert run("receipt", sent[1], "status") == "true"
        assert run("tx", sent[1], "nonce") == "2"
        assert int(run("storage", counter, "0"), 16) == 1
        assert f"0x{42:064x}" in run("logs", "--from-block", "1", "--address", counter)
        raw = run("mktx", SOMEONE, "--value", "5", *key)
        assert f'"to":"{SOMEONE}"' in run("publish", raw)
        assert run("balance", SOMEONE) == "5"
        assert run("block", "4", "-f", "gasUsed") == "21000"
        assert int(run("base-fee", "4")) < GWEI
        assert run("gas-price").isdecimal()
        assert run("rpc", "evm_mine") in ('"0x0"', "null")
        assert "accessList" in run("rpc", "eth_createAccessList", f'{{"to":"{counter}"}}')
        assert '"storageProof"' in run("proof", counter, "0")
