"""`python -m devnet`: a local chain on a port, with anvil's flags where they exist."""

import argparse
import ctypes
import gc
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from devnet.api import methods_faults, methods_views
from devnet.banner import banner, configuration
from devnet.chain_import import import_chain
from devnet.command_line import hosts_of, parse, settings_of
from devnet.errors import StartError
from devnet.node import Node
from devnet.plan import load_plan
from devnet.state_file import StateFile

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Have the kernel end this process with its parent; raises StartError elsewhere than on Linux."""
    parent = os.getppid()
    try:
        failed = ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (AttributeError, OSError):
        failed = True
    if failed:
        raise StartError("--die-with-parent needs Linux: leave it out")
    if os.getppid() != parent:  # it died while we asked
        os.kill(os.getpid(), signal.SIGKILL)


def _collect_seldom() -> None:
    """A chain keeps what it makes: looking through all of it for garbage takes a tenth of the time by Python's own measure."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def _started(options: argparse.Namespace) -> Node:
    """The node as the flags want it. Raises StartError."""
    node = Node(settings_of(options))
    node.impersonation.everyone = options.auto_impersonate
    if options.import_file is not None:
        import_chain(node, options.import_file, _silent if options.silent else _show_progress)
    return node


def _silent(_done: int, _all: int) -> None: ...


def _show_progress(done: int, of: int) -> None:
    sys.stdout.write(f"Imported {done} of {of} blocks\n")
    sys.stdout.flush()


def _write_configuration(node: Node, path: Path) -> None:
    try:
        path.write_text(json.dumps(configuration(node)))
    except OSError as problem:
        raise StartError(f"cannot write {path}: {problem.strerror or problem}") from None


def _prepare_faults(node: Node, options: argparse.Namespace) -> None:
    """Seed, nodes and plan as the flags want them. Raises StartError where the plan is no good."""
    if options.nodes is not None:
        methods_views.spread(node, options.nodes)
    if options.plan is not None:
        from devnet.server.rpc import METHODS

        methods_faults.follow(node, load_plan(options.plan, METHODS))
    if options.seed is not None:
        node.faults.seed = options.seed
        if not node.clock.manual:
            node.clock.block_interval = 1  # what blocks carry must not depend on the machine


def _run(options: argparse.Namespace) -> None:
    if options.die_with_parent:
        _die_with_parent()
    node = _started(options)
    kept = StateFile.of(options.state, options.load_state, options.dump_state)
    kept.load_into(node)
    _prepare_faults(node, options)
    if options.config_out is not None:
        _write_configuration(node, Path(options.config_out))
    if not options.silent:
        sys.stdout.write(banner(node) + "\n")

    def listening(addresses: Sequence[str]) -> None:
        if options.state_interval is not None:
            node.clock.call_every(options.state_interval, lambda: kept.dump(node))
        sys.stdout.write(f"Listening on {', '.join(addresses)}\n")
        sys.stdout.flush()

    from devnet.server.http import run
    from devnet.server.listener import MAX_BODY, Listener

    listener = Listener(
        hosts=hosts_of(options),
        port=options.port,
        ipc_path=options.ipc,
        allow_origin=None if options.no_cors else options.allow_origin,
        max_body=None if options.no_request_size_limit else MAX_BODY,
    )
    _collect_seldom()
    run(node, listener, listening)
    kept.dump(node)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a devnet until it is told to stop. Returns the exit code: 2 where it could not start or not keep its state."""
    options = parse(argv)
    try:
        _run(options)
    except StartError as problem:
        sys.stderr.write(f"devnet: {problem}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
