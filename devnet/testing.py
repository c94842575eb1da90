"""A devnet as a process of its own, for tests: start it, talk to it, order blocks, time and faults, read its ledger.

Needs the standard library only. `devnet.pytest_plugin` makes pytest fixtures of it.
"""

import itertools
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_SECONDS = 30.0
STOP_SECONDS = 10.0
ANSWER_SECONDS = 60.0
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a node on this machine is behind no proxy


class RpcFailure(Exception):
    """The node answered with an error object: its `code`, `message` and `data`."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


@dataclass(frozen=True, slots=True)
class DevelopmentAccount:
    """A funded account of the devnet: `address` and private `key` as 0x-prefixed hex. The key is public knowledge."""

    address: str
    key: str


class NodeProcess:
    """A running node: `.url`, `.rpc(method, *params)`, `.batch([(method, params), …])`, `.stop()`. A context manager.

    Any program will do that prints `Listening on HOST:PORT`, anvil too. Raises RuntimeError with what it printed if it
    does not start within 30 seconds.
    """

    kind = "node"

    def __init__(
        self, command: Sequence[str], *, cwd: Path | None = None, preexec: Callable[[], None] | None = None
    ) -> None:
        # A file, since a pipe nobody reads would stop a talkative node; open as long as the process runs.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            list(command),
            cwd=cwd,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            preexec_fn=preexec,  # noqa: PLW1509  (one system call, no lock is taken)
        )
        self._ids = itertools.count(1)
        try:
            self.host, self.port = self._wait_for_address()
        except BaseException:
            self.stop()
            raise
        self.url = f"http://{self.host}:{self.port}"

    def output(self) -> str:
        """What it has printed so far, on both channels."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")

    def _wait_for_address(self) -> tuple[str, int]:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            for line in self.output().splitlines(keepends=True):
                if line.endswith("\n") and (address := self.address_in(line)):
                    return address
            if ended:
                break
            time.sleep(0.01)
        raise RuntimeError(f"the node did not start: {self.output()[-2000:]}")

    def address_in(self, line: str) -> tuple[str, int] | None:
        """Host and port, if this line it printed tells them."""
        if not line.startswith("Listening on "):
            return None
        host, _, port = line.removeprefix("Listening on ").strip().rpartition(":")
        return host, int(port)

    def send(self, body: bytes) -> tuple[int, bytes]:
        """Post raw bytes; HTTP status and body."""
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})  # noqa: S310  (our own URL)
        with _OPENER.open(request, timeout=ANSWER_SECONDS) as answer:
            status: int = answer.status
            return status, answer.read()

    def request(self, payload: Any) -> Any:
        """Post any JSON value; the parsed answer, None if it is empty."""
        _, body = self.send(json.dumps(payload).encode())
        return json.loads(body) if body else None

    def rpc(self, method: str, *params: Any) -> Any:
        """Call a method; its result. Raises RpcFailure."""
        answer = self.request({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": list(params)})
        if "error" in answer:
            raise RpcFailure(answer["error"])
        return answer["result"]

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Call several methods in one request; results in order, an RpcFailure in place of each that failed."""
        answers = self.request(
            [
                {"jsonrpc": "2.0", "id": index, "method": method, "params": list(params)}
                for index, (method, params) in enumerate(calls)
            ]
        )
        by_id = {answer["id"]: answer for answer in answers}
        ordered = [by_id[index] for index in range(len(calls))]
        return [RpcFailure(item["error"]) if "error" in item else item["result"] for item in ordered]

    def stop(self) -> int:
        """End it and wait; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        code = self.process.wait()
        self._output.close()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()


class Devnet(NodeProcess):
    """A devnet process, with its orders as methods. It ends with the process that started it, however that ends (Linux)."""

    kind = "devnet"

    def __init__(self, *flags: str, cwd: Path | None = None) -> None:
        kept = ["--die-with-parent"] if sys.platform == "linux" else []
        super().__init__([sys.executable, "-m", "devnet", "--port", "0", *kept, *flags], cwd=cwd)
        self.ws_url = f"ws://{self.host}:{self.port}"
        self.first_submission = 0

    @cached_property
    def accounts(self) -> list[DevelopmentAccount]:
        """The funded accounts, with the keys the node printed when it started. Raises RuntimeError if it is `--silent`."""
        lines = self.output().splitlines()
        if "Available Accounts" not in lines:
            raise RuntimeError("this devnet has printed no accounts: start it without --silent")
        addresses = [line.split()[1] for line in _section(lines, "Available Accounts")]
        keys = [line.split()[1] for line in _section(lines, "Private Keys")]
        return [DevelopmentAccount(*pair) for pair in zip(addresses, keys, strict=True)]

    def mine(self, blocks: int = 1) -> int:
        """Make blocks; the head's number."""
        self.rpc("anvil_mine", blocks)
        return int(self.rpc("anvil_nodeInfo")["currentBlockNumber"], 16)

    def automine(self, on: bool = True) -> None:
        """Make a block with each submission, or on order only."""
        if not on:
            self.rpc("evm_setIntervalMining", 0)
        self.rpc("evm_setAutomine", on)

    def interval(self, seconds: float) -> None:
        """Make a block every so many seconds; 0 for none."""
        self.rpc("evm_setIntervalMining", seconds)

    def advance(self, seconds: int) -> None:
        """Move the chain's time on by so many seconds and make a block that shows it."""
        self.rpc("evm_increaseTime", seconds)
        self.rpc("evm_mine")

    def reorg(self, depth: int, **outcome: Any) -> Any:
        """Replace the last `depth` blocks; `outcome` is what devnet_reorg takes (keep, inject, drop, newDepth …)."""
        return self.rpc("devnet_reorg", {"depth": depth, **outcome})

    @contextmanager
    def fault(self, kind: str, method: str = "eth_sendRawTransaction", **rule: Any) -> Iterator[str]:
        """Meet calls of `method` with a fault while the block runs; `rule` is what devnet_fault takes besides."""
        match = {"method": method, **rule.pop("match", {})}
        name: str = self.rpc("devnet_fault", {"kind": kind, "match": match, **rule})
        try:
            yield name
        finally:
            self.rpc("devnet_clearFaults", name)

    def calm(self) -> None:
        """End all faults: what is asked from now on is answered."""
        self.rpc("devnet_clearFaults")

    def submissions(self, sender: str | None = None) -> list[dict[str, Any]]:
        """Every raw transaction received since the test began, in order, with what became of it."""
        wanted = {"since": self.first_submission} | ({"sender": sender} if sender else {})
        rows: list[dict[str, Any]] = self.rpc("devnet_submissions", wanted)
        return rows

    def violations(self, sender: str | None = None) -> list[dict[str, Any]]:
        """What the ledger holds against the senders since the test began: none for one that never sends twice."""
        wanted = {"since": self.first_submission} | ({"sender": sender} if sender else {})
        report: dict[str, Any] = self.rpc("devnet_invariants", wanted)
        violations: list[dict[str, Any]] = report["violations"]
        return violations

    def remember(self) -> Callable[[], bool]:
        """Note how the node is now, and count submissions from here on. What is returned puts it back; False if it cannot.

        Chain, state, pool, clock, orders, faults, mining mode and impersonated accounts come back. Where something else
        has been changed, such as the profile or the chain id, the node is of no further use.
        """
        self.first_submission += len(self.submissions())
        automine, interval = self.rpc("anvil_getAutomine"), self.rpc("anvil_getIntervalMining")
        impersonated = self.rpc("devnet_impersonation")
        settings, snapshot = self._settings(), self.rpc("evm_snapshot")

        def put_back() -> bool:
            self.calm()
            self._impersonate(impersonated)
            self.rpc("evm_setIntervalMining", 0)
            if not self.rpc("evm_revert", snapshot):
                return False
            if interval:
                self.rpc("evm_setIntervalMining", interval)
            if automine:
                self.rpc("evm_setAutomine", True)
            return self._settings() == settings

        return put_back

    def _impersonate(self, wanted: dict[str, Any]) -> None:
        """Let these accounts send without a key, and no others."""
        now = self.rpc("devnet_impersonation")
        if now == wanted:
            return
        self.rpc("anvil_autoImpersonateAccount", wanted["everyone"])
        for address in {*now["accounts"]} - {*wanted["accounts"]}:
            self.rpc("anvil_stopImpersonatingAccount", address)
        for address in {*wanted["accounts"]} - {*now["accounts"]}:
            self.rpc("anvil_impersonateAccount", address)

    def _settings(self) -> list[Any]:
        """What no snapshot brings back, as far as the node tells it."""
        info, clock = self.rpc("anvil_nodeInfo"), self.rpc("devnet_clock")
        names = ("devnet_setProfile", "devnet_poolLimits", "devnet_plan", "eth_coinbase", "eth_accounts")
        modes = ("anvil_getAutomine", "anvil_getIntervalMining")
        asked = [self.rpc(name) for name in (*names, *modes)]
        return [
            info["hardFork"],
            info["environment"]["chainId"],
            info["environment"]["gasLimit"],
            clock["manual"],
            *asked,
        ]


def _section(lines: list[str], title: str) -> list[str]:
    """The numbered lines below a heading of the banner."""
    at = lines.index(title) + 1
    below = itertools.dropwhile(lambda line: not line.startswith("("), lines[at:])
    return list(itertools.takewhile(lambda line: line.startswith("("), below))
