"""`python -m devnet`: a local chain on a port, with anvil's flags where they exist."""

import argparse
import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Sequence

from devnet.errors import StartError
from devnet.node import GWEI, Node, Settings
from devnet.txpool.profiles import ETHER

_PR_SET_PDEATHSIG = 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="devnet", description="A local chain for tests, with funded accounts.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("-p", "--port", type=int, default=8545, help="port to listen on; 0 takes a free one (8545)")
    parser.add_argument("-a", "--accounts", type=int, default=10, help="development accounts (10)")
    parser.add_argument("--balance", type=int, default=10_000, help="ether for each of them (10000)")
    parser.add_argument("--chain-id", type=int, default=31337, help="chain id (31337)")
    parser.add_argument("-b", "--block-time", type=float, metavar="SECONDS", help="a block every so many seconds")
    parser.add_argument("--no-mining", action="store_true", help="blocks on order only (evm_mine)")
    parser.add_argument("--gas-limit", type=int, default=30_000_000, help="gas limit of a block (30000000)")
    parser.add_argument("--base-fee", type=int, default=GWEI, help="base fee of genesis in wei (1000000000)")
    parser.add_argument("--timestamp", type=int, help="timestamp of genesis; the clock runs on from it (now)")
    parser.add_argument("--silent", action="store_true", help="print the Listening line only")
    parser.add_argument("--die-with-parent", action="store_true", help="end when the starting process ends (Linux)")
    options = parser.parse_args(argv)
    if options.block_time is not None and options.block_time <= 0:
        parser.error("--block-time must be above 0")
    if options.block_time is not None and options.no_mining:
        parser.error("--block-time and --no-mining exclude each other")
    return options


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


def _banner(node: Node) -> str:
    from devnet.accounts import DERIVATION_PATH, MNEMONIC
    from devnet.encoding import checksum

    ether = node.settings.balance // ETHER
    accounts = [f"({at}) {checksum(item.address)} ({ether} ETH)" for at, item in enumerate(node.accounts)]
    keys = [f"({at}) 0x{item.key.hex()}" for at, item in enumerate(node.accounts)]
    settings = node.settings
    lines = ["fenced devnet: for tests only, every key below is public", "", "Available Accounts"]
    lines += ["==================", "", *accounts, "", "Private Keys", "==================", "", *keys]
    lines += ["", "Wallet", "==================", f"Mnemonic:          {MNEMONIC}"]
    lines += [f"Derivation path:   {DERIVATION_PATH}", "", "Chain ID", "==================", "", str(settings.chain_id)]
    lines += ["", "Base Fee", "==================", "", str(settings.base_fee)]
    lines += ["", "Gas Limit", "==================", "", str(settings.gas_limit)]
    lines += ["", "Genesis Timestamp", "==================", "", str(node.chain.head.header.timestamp), ""]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a devnet until it is told to stop. Returns the exit code: 2 where it could not start."""
    options = _arguments(argv)
    try:
        if options.die_with_parent:
            _die_with_parent()
        node = Node(
            Settings(
                chain_id=options.chain_id,
                accounts=options.accounts,
                balance=options.balance * ETHER,
                gas_limit=options.gas_limit,
                base_fee=options.base_fee,
                timestamp=options.timestamp,
                automine=not options.no_mining and options.block_time is None,
                interval=options.block_time or 0.0,
            )
        )
        if not options.silent:
            sys.stdout.write(_banner(node) + "\n")

        def listening(port: int) -> None:
            sys.stdout.write(f"Listening on {options.host}:{port}\n")
            sys.stdout.flush()

        from devnet.server.http import serve

        asyncio.run(serve(node, options.host, options.port, listening))
    except StartError as problem:
        sys.stderr.write(f"devnet: {problem}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
