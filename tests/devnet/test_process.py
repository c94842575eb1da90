"""The program: its banner, its flags, and that it leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from devnet.node import Node
from devnet.settings import Settings
from tests.devnet.wallet import ALICE, ETHER
from tests.support.devnet import ROOT, start_devnet


def test_the_banner_names_accounts_and_ends_with_the_address() -> None:
    with start_devnet("--accounts", "2", "--balance", "7") as devnet:
        lines = devnet.output().splitlines()
        assert lines[-1] == f"Listening on 127.0.0.1:{devnet.port}"
        assert "(0) 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 (7.000000000000000000 ETH)" in lines
        assert f"(0) {ALICE.key}" in lines
        assert len(devnet.rpc("eth_accounts")) == 2


def test_flags_reach_the_chain() -> None:
    flags = "--silent --chain-id 1337 --base-fee 5 --gas-limit 1000000 --timestamp 1234567890 --accounts 12 --balance 3"
    with start_devnet(*flags.split()) as devnet:
        assert devnet.output() == f"Listening on 127.0.0.1:{devnet.port}\n"
        assert devnet.rpc("eth_chainId") == hex(1337)
        block = devnet.rpc("eth_getBlockByNumber", "0x0", False)
        assert (block["baseFeePerGas"], block["gasLimit"]) == ("0x5", hex(1_000_000))
        assert block["timestamp"] == hex(1_234_567_890)
        accounts = devnet.rpc("eth_accounts")
        assert len(accounts) == 12
        assert devnet.rpc("eth_getBalance", accounts[11], "latest") == hex(3 * ETHER)


def test_equal_histories_give_equal_hashes() -> None:
    chains = []
    for _ in range(2):
        node = Node(Settings(automine=False, timestamp=1_700_000_000))
        for nonce in range(3):
            node.submit(bytes.fromhex(ALICE.sign(nonce).raw[2:]))
            node.clock.next_exact = 1_700_000_100 + nonce
            node.miner.mine()
        node.rollback(1)
        node.clock.next_exact = 1_700_000_200
        node.miner.mine()
        chains.append([block.hash for block in node.chain.blocks])
    assert chains[0] == chains[1]
    assert len(chains[0]) == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_a_word(number: signal.Signals) -> None:
    with start_devnet("--silent", "--block-time", "0.1") as devnet:
        devnet.process.send_signal(number)
        assert devnet.process.wait(10) == 0
        assert devnet.output().count("\n") == 1


def test_a_taken_port_is_one_sentence() -> None:
    with start_devnet("--silent") as devnet:
        command = [sys.executable, "-m", "devnet", "--port", str(devnet.port)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"devnet: cannot listen on 127.0.0.1:{devnet.port}: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_it_dies_with_a_killed_parent() -> None:
    program = (
        "import os, sys; from tests.support.devnet import start_devnet; d = start_devnet('--silent'); "
        "print(d.process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=30, check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while _runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123  (a zombie waiting for init has ended too)
        return stat.read().rpartition(")")[2].split()[0] != "Z"
