"""A devnet as a real process of its own, gone when the test is."""

import itertools
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0


class RpcFailure(Exception):
    """The node answered with an error object."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class NodeProcess:
    """A running node: `.url`, `.rpc(method, *params)`, `.batch([(method, params), …])`, `.stop()`. A context manager.

    It ends with the thread that started it: start it from the main thread or one that lives as long.
    """

    kind = "node"

    def __init__(self, command: Sequence[str], *, preexec: Callable[[], None] | None = None) -> None:
        # A file, since a pipe nobody reads would stop a talkative node; open as long as the process runs.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            list(command),
            cwd=ROOT,
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
                if line.startswith("Listening on ") and line.endswith("\n"):
                    host, _, port = line.removeprefix("Listening on ").strip().rpartition(":")
                    return host, int(port)
            if ended:
                break
            time.sleep(0.01)
        raise RuntimeError(f"the node did not start: {self.output()[-2000:]}")

    def send(self, body: bytes) -> tuple[int, bytes]:
        """Post raw bytes; HTTP status and body."""
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()

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
                self.process.wait(10)
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
    """Our devnet."""

    kind = "devnet"


def start_devnet(*flags: str) -> Devnet:
    """`python -m devnet` on a free port with these flags besides; use it as a context manager or call `.stop()`."""
    return Devnet([sys.executable, "-m", "devnet", "--port", "0", "--die-with-parent", *flags])
