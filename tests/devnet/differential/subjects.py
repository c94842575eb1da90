"""The nodes that are compared, brought to the same starting point: geth's developer chain, its key funded, its gas limit."""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_account import Account

from tests.devnet.wallet import GWEI, Signed, Wallet
from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import NodeProcess, RpcFailure, start_devnet
from tests.support.geth import CHAIN_ID, DEVELOPER_KEY, GAS_LIMIT, geth_binary, start_geth

Json = Any
RICH = Wallet(DEVELOPER_KEY)
POOR, MIDDLE, DELEGATING = (Wallet("0x" + digits * 32) for digits in ("11", "22", "33"))
GENESIS = Path(__file__).with_name("genesis.json")  # geth 1.17.10 --dev, as far as Osaka
FIRST_BASE_FEE = 875_000_000  # what follows geth's empty genesis at 1 gwei
PATIENCE_SECONDS = 20.0
SUBJECTS = ("devnet", "devnet --profile anvil", "anvil", "geth")


def missing(name: str) -> str:
    """Why a subject cannot be had here; empty where it can."""
    if name == "anvil":
        return anvil_binary()[1]
    return geth_binary()[1] if name == "geth" else ""


@dataclass
class Subject:
    """A node under comparison and what it was seen to do, by label."""

    name: str
    node: NodeProcess
    seen: dict[str, Json]

    def see(self, label: str, act: Callable[[], Json]) -> Json:
        """Note what an act results in, or its error."""
        assert label not in self.seen, f"two observations are called {label!r}"
        try:
            value = act()
        except RpcFailure as failure:
            value = {"code": failure.code, "message": failure.message}
            if failure.data is not None:
                value["data"] = failure.data
        self.seen[label] = value
        return value

    def ask(self, label: str, method: str, *params: Json) -> Json:
        """Note the answer to a call."""
        return self.see(label, lambda: self.node.rpc(method, *params))

    def send(self, label: str, signed: Signed) -> Json:
        """Note whether the bytes are taken, or the words they are refused with."""
        return self.see(label, lambda: "taken" if self.node.rpc("eth_sendRawTransaction", signed.raw) else "no hash")

    def mined(self, label: str, signed: Signed) -> Json:
        """Submit, have a block made; the receipt. None, and the refusal noted, where it is not taken."""
        try:
            self.node.rpc("eth_sendRawTransaction", signed.raw)
        except RpcFailure as failure:
            self.seen[label] = {"refused": failure.message}
            return None
        if self.name != "geth":
            self.node.rpc("evm_mine")
        receipt = self.until(lambda: self._receipt(signed.hash))
        if receipt is None:
            self.seen[label] = "accepted, never mined"
        return receipt

    def until(self, ask: Callable[[], Json]) -> Json:
        """Ask until there is an answer other than None, for 20 seconds at most."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (answer := ask()) is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return answer

    def _receipt(self, tx_hash: str) -> Json:
        try:
            return self.node.rpc("eth_getTransactionReceipt", tx_hash)
        except RpcFailure as failure:
            if failure.message != "transaction indexing is in progress":  # geth's, for a moment after its start
                raise
            return None


@contextlib.contextmanager
def pair(name: str) -> Iterator[Callable[[str], Subject]]:
    """A way to start a subject for a story, "execution" first, then "pool"; the second starts where the first ended."""
    with tempfile.TemporaryDirectory(prefix="differential-") as folder, contextlib.ExitStack() as running:
        seen: dict[str, Json] = {}
        nodes: list[NodeProcess] = []

        def start(story: str) -> Subject:
            if name == "geth":
                if nodes:
                    nodes.pop().stop()
                node: NodeProcess = start_geth(Path(folder), GENESIS, mines=story == "execution")
            elif nodes:
                return Subject(name, nodes[0], seen)
            else:
                flags = ("--init", str(GENESIS), "--no-mining")
                limit = ("--gas-limit", str(GAS_LIMIT))  # anvil does not take it from the genesis
                node = start_anvil(*flags, *limit) if name == "anvil" else start_devnet(*flags, *name.split()[1:])
                node.rpc("anvil_setCoinbase", RICH.address)  # as geth's developer mode has it
                node.rpc("anvil_setNextBlockBaseFeePerGas", hex(FIRST_BASE_FEE))
            nodes.append(node)
            subject = Subject(name, node, seen)
            if name == "geth" and story == "pool":  # it makes one block soon after it starts, then none
                head = node.rpc("eth_blockNumber")
                subject.until(lambda: True if node.rpc("eth_blockNumber") != head else None)
            running.callback(lambda: node.stop() if node.process.returncode is None else None)
            return subject

        yield start


def sign(wallet: Wallet, nonce: int, **fields: Json) -> Signed:
    """Sign for geth's developer chain."""
    return wallet.sign(
        nonce, chainId=CHAIN_ID, **({"maxFeePerGas": 20 * GWEI} if "gasPrice" not in fields else {}) | fields
    )


def authorize(wallet: Wallet, code_at: str, nonce: int) -> Json:
    """A signed tuple of EIP-7702: this wallet's account runs the code at that address."""
    return Account.sign_authorization({"chainId": CHAIN_ID, "address": code_at, "nonce": nonce}, wallet.key)
