"""The devnet beside anvil as nodes that senders hammer: the same signed bytes over HTTP to both, in the same run."""

import contextlib
import json
import random
import resource
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eth_account.hdaccount import key_from_seed, seed_from_mnemonic

from tests.bench import token
from tests.devnet.wallet import GWEI, Wallet
from tests.support.anvil import start_anvil
from tests.support.devnet import NodeProcess, start_devnet

RECIPIENTS = 97
PHRASE = "test test test test test test test test test test test junk"
SENDERS = tuple(
    Wallet("0x" + key_from_seed(seed_from_mnemonic(PHRASE, ""), f"m/44'/60'/0'/0/{at}").hex()) for at in range(16)
)
CREATED_FIRST = "0x5fbdb2315678afecb367f032d93f642f64180aa3"  # by the first sender's nonce 0
FEES = {"maxFeePerGas": 500 * GWEI, "maxPriorityFeePerGas": GWEI}  # affordable while blocks fill up
STALL_SECONDS = 15.0
TOKEN_UNITS = 10**24
START_TIME = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """How the bytes are offered: `batch` calls a request over `connections`; a block ordered each `block` calls (0: automine)."""

    name: str
    kind: str
    batch: int = 1
    connections: int = 1
    block: int = 0


SCENARIOS = (
    Scenario("transfer, automine, single, 1 connection", "transfer"),
    Scenario("transfer, automine, single, 16 connections", "transfer", connections=16),
    Scenario("transfer, automine, batches of 100", "transfer", batch=100),
    Scenario("transfer, evm_mine per 100, single", "transfer", block=100),
    Scenario("transfer, evm_mine per 500, single, 16 connections", "transfer", connections=16, block=500),
    Scenario("transfer, batches of 10, evm_mine per 10", "transfer", batch=10, block=10),
    Scenario("transfer, batches of 100, evm_mine per 100", "transfer", batch=100, block=100),
    Scenario("transfer, batches of 100, evm_mine per 500", "transfer", batch=100, block=500),
    Scenario("ERC-20, automine, single, 1 connection", "token"),
    Scenario("ERC-20, automine, single, 16 connections", "token", connections=16),
    Scenario("ERC-20, automine, batches of 100", "token", batch=100),
    Scenario("ERC-20, batches of 10, evm_mine per 10", "token", batch=10, block=10),
    Scenario("ERC-20, batches of 100, evm_mine per 100", "token", batch=100, block=100),
    Scenario("ERC-20, batches of 100, evm_mine per 500", "token", batch=100, block=500),
)


@dataclass(frozen=True, slots=True)
class Rate:
    """Transactions mined and the seconds from the first byte sent until then; `missing` never were, in 15 seconds."""

    mined: int
    missing: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Mined transactions a second of wall time."""
        return self.mined / self.seconds


class Connection:
    """A keep-alive connection that costs the measuring side as little as Python can."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: "

    def post(self, body: bytes) -> bytes:
        """Send a body; the answer's body."""
        self._socket.sendall(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._some()
        head, _, rest = data.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(rest) < length:
            rest += self._some()
        return rest

    def _some(self) -> bytes:
        if got := self._socket.recv(1 << 18):
            return got
        raise ConnectionError("the node closed the connection")

    def close(self) -> None:
        """End it."""
        self._socket.close()


@dataclass(frozen=True, slots=True)
class Load:
    """Signed transactions in the order of sending; `deployment` goes before them where there is one."""

    raws: list[str]
    deployment: str | None = None


def load(kind: str, count: int, rng: random.Random) -> Load:
    """`count` transfers of one wei, or of one token unit, by sixteen senders to 97 recipients."""
    recipients = ["0x" + rng.randbytes(20).hex() for _ in range(RECIPIENTS)]
    places = [(SENDERS[at % len(SENDERS)], at // len(SENDERS), recipients[at % RECIPIENTS]) for at in range(count)]
    if kind == "transfer":
        return Load([sender.sign(nonce, to=to, value=1, **FEES).raw for sender, nonce, to in places])
    creation = token.creation([sender.address for sender in SENDERS], TOKEN_UNITS)
    deployment = SENDERS[0].create(0, creation, gas=1_500_000)
    raws = [
        sender.call(nonce + (sender is SENDERS[0]), CREATED_FIRST, token.transfer(to, 1), gas=100_000, **FEES).raw
        for sender, nonce, to in places
    ]
    return Load(raws, deployment.raw)


def rate(kind: str, scenario: Scenario, work: Load) -> Rate:
    """Offer the load to a fresh node of a kind; wait until it is mined, or has not been for 15 seconds."""
    mining = ("--no-mining",) if scenario.block else ()
    with _node(kind, *mining) as node:
        if work.deployment:
            node.rpc("eth_sendRawTransaction", work.deployment)
            node.rpc("evm_mine")
        bodies = _bodies(scenario, work.raws)
        began = time.perf_counter()
        _offer(node, scenario, bodies)
        mined = _await_mined(node, work)
        # Where some never come, the rate is that of the others until the waiting began.
        waited = STALL_SECONDS if mined < len(work.raws) else 0.0
        return Rate(mined, len(work.raws) - mined, time.perf_counter() - began - waited)


@contextlib.contextmanager
def _node(kind: str, *flags: str) -> Iterator[NodeProcess]:
    start = start_anvil if kind == "anvil" else start_devnet
    with start(
        "--accounts", str(len(SENDERS)), "--gas-limit", "30000000", "--timestamp", str(START_TIME), *flags
    ) as node:
        yield node


def _bodies(scenario: Scenario, raws: Sequence[str]) -> list[bytes]:
    calls = [
        {"jsonrpc": "2.0", "id": at, "method": "eth_sendRawTransaction", "params": [raw]} for at, raw in enumerate(raws)
    ]
    if scenario.batch == 1:
        return [json.dumps(call).encode() for call in calls]
    return [json.dumps(calls[at : at + scenario.batch]).encode() for at in range(0, len(calls), scenario.batch)]


def _offer(node: NodeProcess, scenario: Scenario, bodies: list[bytes]) -> None:
    """Send everything. A sender's transactions come over one connection, in their order."""
    lines = scenario.connections
    each = max(scenario.block // scenario.batch, 1) if scenario.block else len(bodies)
    mine = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "evm_mine", "params": []}).encode()
    connections = [Connection(node.host, node.port) for _ in range(lines)]
    failures: list[bytes] = []

    def send(connection: Connection, part: list[bytes]) -> None:
        for body in part:
            answer = connection.post(body)
            if b'"error"' in answer:
                failures.append(answer)

    try:
        for at in range(0, len(bodies), each):
            part = bodies[at : at + each]
            if lines == 1:
                send(connections[0], part)
            else:
                shares = [part[line::lines] for line in range(lines)]
                threads = [threading.Thread(target=send, args=pair) for pair in zip(connections, shares, strict=True)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            if scenario.block:
                connections[0].post(mine)
    finally:
        for connection in connections:
            connection.close()
    if failures:
        raise RuntimeError(f"{node.kind} refused {len(failures)} of the load: {failures[0][:300]!r}")


def _await_mined(node: NodeProcess, work: Load) -> int:
    """Wait for every transaction; how many are mined when they are, or 15 seconds later."""
    deadline = time.monotonic() + STALL_SECONDS
    while True:
        counts = [int(node.rpc("eth_getTransactionCount", sender.address, "latest"), 16) for sender in SENDERS]
        mined = sum(counts) - (work.deployment is not None)
        if mined == len(work.raws) or time.monotonic() > deadline:
            return mined
        time.sleep(0.002)


def start(kind: str) -> tuple[float, float]:
    """Seconds from starting the program until it answers, and its resident memory then, in MiB."""
    began = time.perf_counter()
    with _node(kind) as node:
        node.rpc("eth_chainId")
        seconds = time.perf_counter() - began
        pages = int(Path(f"/proc/{node.process.pid}/statm").read_text().split()[1])
    return seconds, pages * resource.getpagesize() / 2**20
