"""The process a strategy runs in: loads one function, then answers requests until it is killed (P19).

Started by `plan_process` with two pipes of its own. It holds no key, no database and no other descriptor; what the
strategy prints goes to the log pipe. It dies with the executor.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import inspect
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from executor.plan_wire import MAX_RESPONSE_BYTES, Frames, frame
from executor.strategy import Context, InvalidPlan
from executor.strategy_context import Block, ChainReader, ChainUnreachable
from executor.strategy_values import encode_failure, encode_plan

MAX_REQUEST_BYTES: Final = 64 * 1024 * 1024
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38


def main(arguments: list[str]) -> None:
    """Serve requests: `arguments` are parent pid, request fd, response fd, plan, and the strategies' directory."""
    parent, request_fd, response_fd = (int(text) for text in arguments[:3])
    plan, directory = arguments[3:]
    _die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.set_inheritable(request_fd, False)
    os.set_inheritable(response_fd, False)
    sys.path.insert(0, directory)  # after our own imports: a strategy's module cannot stand in for ours
    served = _Server(request_fd, response_fd, os.getpid())
    function, greeting = _load(plan, Path(directory))
    served.answer(0, greeting)
    if function is not None:
        served.run(function, Path(directory))


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when the executor ends, and end now if it already has."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class _Server:
    """Reads batches, runs the plan for each request, and writes an answer as each one ends."""

    def __init__(self, request_fd: int, response_fd: int, pid: int) -> None:
        self._request_fd, self._response_fd, self._pid = request_fd, response_fd, pid

    def run(self, function: Callable[[Context], Any], directory: Path) -> None:
        """Answer until the request pipe closes."""
        frames = Frames(MAX_REQUEST_BYTES)
        while chunk := os.read(self._request_fd, 1 << 16):
            frames.feed(chunk)
            while (batch := frames.take()) is not None:
                for number, request in batch:
                    self.answer(number, _outcome(function, request, directory))

    def answer(self, number: int, value: dict[str, Any]) -> None:
        """Write the answer to request `number`; a fork of the strategy that came back here ends instead of answering twice."""
        if os.getpid() != self._pid:
            os._exit(0)
        _flush()
        payload = frame([number, value])
        if len(payload) > MAX_RESPONSE_BYTES:
            limit = f"the plan is longer than {MAX_RESPONSE_BYTES} bytes; return fewer or smaller calls."
            payload = frame([number, encode_failure("bad_result", limit)])
        view = memoryview(payload)
        while view:
            view = view[os.write(self._response_fd, view) :]


def _load(plan: str, directory: Path) -> tuple[Callable[[Context], Any] | None, dict[str, Any]]:
    """The plan's function and the greeting that says it is there, or why it is not."""
    module_name, _, name = plan.partition(":")
    try:
        module = importlib.import_module(module_name)
        function = getattr(module, name, None)
        source = hashlib.sha256(Path(module.__file__ or "").read_bytes()).hexdigest()
    except SystemExit as error:
        return None, encode_failure("import", f"{module_name} called sys.exit({error.code!r}) on import; drop that.")
    except Exception as error:  # noqa: BLE001 the strategy's module may raise anything
        what = _describe(error, directory, module_name)
        return None, encode_failure("import", f"{module_name} cannot be imported: {what}")
    if not callable(function):
        return None, encode_failure("import", f"{module_name} has no function {name}; define def {name}(ctx).")
    try:
        inspect.signature(function).bind(object())
    except (TypeError, ValueError):
        return None, encode_failure("import", f"{plan} does not take one argument; define def {name}(ctx).")
    return function, {"kind": "ready", "source": source}


def _outcome(function: Callable[[Context], Any], request: dict[str, Any], directory: Path) -> dict[str, Any]:
    """What one run of the plan came to, as a JSON object."""
    secret = request["endpoint_url"]
    try:
        return encode_plan(function(_context(request)))
    except ChainUnreachable as error:
        return encode_failure("unreachable", _message(error).replace(secret, "the endpoint") + ".")
    except InvalidPlan as error:
        return encode_failure("bad_result", _message(error) + _place(error, directory, function.__module__))
    except Exception as error:  # noqa: BLE001 the strategy may raise anything
        return encode_failure(
            "raised", _describe(error, directory, function.__module__).replace(secret, "the endpoint")
        )
    except SystemExit as error:
        _flush()
        os._exit(error.code if isinstance(error.code, int) else 0 if error.code is None else 1)


def _context(request: dict[str, Any]) -> Context:
    block = Block(request["block_number"], request["block_hash"])
    slot = request["slot"]
    return Context(
        execution_id=request["execution_id"],
        slot=None if slot is None else datetime.fromisoformat(slot),
        strategy=request["strategy"],
        params=request["params"],
        input=request["input"],
        account=request["account"],
        chain_id=request["chain_id"],
        block=block,
        chain=ChainReader(request["endpoint_url"], block, request["account"]),
    )


def _describe(error: BaseException, directory: Path, module: str) -> str:
    """Type, message and the strategy's own line of an exception, bounded."""
    return f"{type(error).__name__}: {_message(error)[:400]}" + _place(error, directory, module)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 a hostile __str__
        return "(no message)"


def _place(error: BaseException, directory: Path, module: str) -> str:
    """Where in the strategy's own file an exception passed last, such as " (strategies/payroll.py:12)"."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({_relative(error.filename, directory)}:{error.lineno})"
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename.startswith(str(directory))]
    own = [step for step in steps if step.filename == file] or steps
    return f" ({_relative(own[-1].filename, directory)}:{own[-1].lineno})" if own else ""


def _relative(file: str, directory: Path) -> str:
    path = Path(file)
    return str(path.relative_to(directory)) if path.is_relative_to(directory) else path.name


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (ValueError, OSError, AttributeError):  # the strategy may have closed or replaced it
            continue
