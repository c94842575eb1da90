"""One child process from the executor's side: start it, talk to it under a deadline, kill its whole group.

The child may hang, end, write rubbish or never read; nothing it does blocks the caller beyond the deadline (P19).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from executor.plan_wire import MAX_RESPONSE_BYTES, Frames, TooLong, frame
from executor.strategy_values import FailureKind, PlanFailed

MAX_OUTPUT_BYTES: Final = 16 * 1024
_KEPT_VARIABLES: Final = frozenset({"PATH", "HOME", "LANG", "TZ"})
_SLICE_SECONDS: Final = 0.25
_STOPPED_SECONDS: Final = 0.5
_ROOT: Final = str(Path(__file__).resolve().parent.parent)
_BOOT: Final = """\
import sys
root = sys.argv.pop(1)
if root not in sys.path:
    sys.path.insert(0, root)
from executor.plan_child import main
main(sys.argv[1:])
"""


class Gone(Exception):
    """The child is of no more use and has been killed; `failure` is what that means for the plan it was running."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.failure = PlanFailed(kind, message)


class Child:
    """A process that has loaded one plan. Not thread-safe but for `kill`.

    It must be started from a thread that outlives it: the kernel ends it when the thread that started it ends.
    """

    def __init__(self, plan: str, search_path: Path, environment: Mapping[str, str]) -> None:
        self.plan = plan
        self.greeted = False
        self._ended = False
        self._frames = Frames(MAX_RESPONSE_BYTES)
        self._output = bytearray()
        self._outgoing = memoryview(b"")
        self._guard = threading.Lock()
        self._reaped = False
        request_r, self._request_w = os.pipe()
        self._response_r, response_w = os.pipe()
        self._log_r, log_w = os.pipe()
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    _BOOT,
                    _ROOT,
                    str(os.getpid()),
                    str(request_r),
                    str(response_w),
                    plan,
                    str(search_path),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log_w,
                stderr=log_w,
                pass_fds=(request_r, response_w),
                cwd=search_path,
                env=_scrubbed(environment),
                start_new_session=True,
            )
            self._pidfd = os.pidfd_open(self._process.pid)
        except BaseException:
            for fd in (self._request_w, self._response_r, self._log_r):
                os.close(fd)
            raise
        finally:
            for fd in (request_r, response_w, log_w):
                os.close(fd)
        for fd in (self._request_w, self._response_r, self._log_r):
            os.set_blocking(fd, False)
        self._poll = select.poll()
        for fd in (self._response_r, self._log_r, self._pidfd):
            self._poll.register(fd, select.POLLIN)

    def send(self, requests: list[tuple[int, dict[str, Any]]]) -> None:
        """Hand over a batch; what does not fit into the pipe now is written while `receive` waits."""
        self._outgoing = memoryview(frame(requests))
        self._poll.register(self._request_w, select.POLLOUT)
        self._write()

    def receive(self, seconds: float) -> Any:
        """The next answer, or Gone with the child killed.

        The deadline is counted on the monotonic clock in slices; a slice that took half a second too long counts as
        what it is, so that a stop of this process (SIGSTOP, a paused container) is not held against the plan.
        """
        spent = 0.0
        while True:
            try:
                value = self._frames.take()
            except TooLong:
                self._fail(
                    "bad_result", f"the plan's process answered with over {MAX_RESPONSE_BYTES} bytes; return less."
                )
            except ValueError:
                self._fail(
                    "bad_result", "the plan's process answered with something that is no JSON; leave its pipes alone."
                )
            if value is not None:
                self._read_log()
                return value
            if self._ended:
                self._fail("crashed", "")
            if spent >= seconds:
                self._fail(
                    "timeout",
                    f"the plan ran longer than {seconds:g} s and was killed; make it faster or raise plan_timeout.",
                )
            part = min(seconds - spent, _SLICE_SECONDS)
            begun = time.monotonic()
            self._step(part)
            passed = time.monotonic() - begun
            spent += passed if passed < part + _STOPPED_SECONDS else part

    def is_running(self) -> bool:
        """Whether the process has not ended since it was last asked something."""
        return not self._ended and not _readable(self._pidfd, 0)

    def take_output(self) -> str:
        """What the child printed since the last call, the last 16 KiB of it."""
        text = self._output.decode("utf-8", "replace")
        self._output.clear()
        return text

    def kill(self) -> None:
        """End the child and everything it started; safe from any thread, and when it is over already."""
        with self._guard:
            if not self._reaped:
                try:
                    os.killpg(self._process.pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    self._process.kill()

    def dispose(self) -> str:
        """Kill, reap and close; says how the child ended."""
        self.kill()
        with self._guard:
            if not self._reaped:
                self._process.wait()
                self._reaped = True
                for fd in (self._request_w, self._response_r, self._log_r, self._pidfd):
                    os.close(fd)
        return _ending(self._process.returncode)

    def _fail(self, kind: FailureKind, message: str) -> NoReturn:
        """Dispose of the child and raise Gone."""
        if kind == "crashed":
            _readable(self._pidfd, 500)  # the pipe closes a moment before the process has its exit code
        self._read_log()
        ending = self.dispose()
        raise Gone(kind, message or f"the plan's process {ending}; a plan must return, not end its process.")

    def _step(self, seconds: float) -> None:
        """Wait for something to happen and take it in."""
        for fd, _ in self._poll.poll(max(1, int(seconds * 1_000))):
            if fd == self._log_r:
                self._read_log()
            elif fd == self._request_w:
                self._write()
            else:
                self._read_response()
                self._ended |= fd == self._pidfd

    def _read_response(self) -> None:
        for _ in range(64):
            chunk = _read(self._response_r)
            if chunk is None:
                return
            self._frames.feed(chunk)
            if not chunk:
                self._ended = True
                return

    def _read_log(self) -> None:
        chunk = _read(self._log_r)
        if chunk == b"":
            self._poll_drop(self._log_r)
        elif chunk:
            self._output += chunk
            del self._output[:-MAX_OUTPUT_BYTES]

    def _write(self) -> None:
        try:
            self._outgoing = self._outgoing[os.write(self._request_w, self._outgoing) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it has ended; the other descriptors tell how
            self._outgoing = memoryview(b"")
        if not self._outgoing:
            self._poll_drop(self._request_w)

    def _poll_drop(self, fd: int) -> None:
        with contextlib.suppress(KeyError):
            self._poll.unregister(fd)


def _read(fd: int) -> bytes | None:
    """What is there now: None for nothing yet, empty at the end."""
    try:
        return os.read(fd, 1 << 16)
    except BlockingIOError:
        return None


def _readable(fd: int, milliseconds: int) -> bool:
    waiter = select.poll()
    waiter.register(fd, select.POLLIN)
    return bool(waiter.poll(milliseconds))


def _scrubbed(named: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: nothing that could hold a secret unless it was named."""
    kept = {key: value for key, value in os.environ.items() if key in _KEPT_VARIABLES or key.startswith("PYTHON")}
    return {**kept, "PYTHONTZPATH": "", **named}


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
