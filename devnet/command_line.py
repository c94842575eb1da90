"""The flags of `python -m devnet`: anvil's names with anvil's meaning where there are any.

Every problem is one sentence on standard error and exit code 2.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from devnet.accounts import DERIVATION_PATH, MNEMONIC, Wallet, random_mnemonic, seeded_mnemonic
from devnet.evm.forks import BY_NAME, CODE_LIMIT, DEFAULT, FORKS, Fork, Schedule
from devnet.genesis_file import read_genesis
from devnet.settings import CLIENT_VERSION, GWEI, Settings
from devnet.txpool.profiles import ETHER, GETH, POOL_FLAGS, PROFILES, profile_with
from devnet.views import MAX_NODES

IPC_PATH = Path("/tmp/devnet.ipc")  # noqa: S108  (where anvil has its own; only its owner can use the socket)
_FORKS = [fork.name.lower() for fork in FORKS if fork.has_base_fee]  # older ones can be imported only
SEEDED_GENESIS = 1_700_000_000  # where the clock begins with --seed
UNLIMITED = 2**62  # bytes
_NO_FORKING = "this devnet does not fork another chain"
_REFUSED = {
    **dict.fromkeys(
        (
            "-f",
            "--fork-url",
            "--rpc-url",
            "--fork-block-number",
            "--fork-chain-id",
            "--fork-header",
            "--fork-retry-backoff",
            "--fork-transaction-hash",
            "--compute-units-per-second",
            "--no-rate-limit",
            "--no-storage-caching",
            "--retries",
            "--timeout",
        ),
        _NO_FORKING,
    ),
    **dict.fromkeys(("--celo", "--network", "-n"), "this devnet is an Ethereum chain"),
    "--number": "genesis is block 0 here",
    "--disable-pool-balance-checks": "the pool judges funds as geth does: give accounts more with --balance",
}
# anvil's, and without effect here: all history is kept, nothing is logged, tracers run when they are asked for.
_WITHOUT_EFFECT = (
    ("--preserve-historical-states", "store_true"),
    ("--prune-history", "optional"),
    ("--transaction-block-keeper", "value"),
    ("--max-persisted-states", "value"),
    ("--cache-path", "value"),
    ("--memory-limit", "value"),
    ("--gas-price", "value"),
    ("--steps-tracing", "store_true"),
    ("--tracing", "store_true"),
    ("--print-traces", "store_true"),
    ("--enable-trace-printing", "store_true"),
    ("--disable-console-log", "store_true"),
    ("--no-console-log", "store_true"),
    ("--enable-tx-gas-limit", "store_true"),
    ("--tx-gas-limit", "store_true"),
    ("--threads", "value"),
    ("--jobs", "value"),
    ("-j", "value"),
    ("--color", "value"),
    ("--json", "store_true"),
    ("--md", "store_true"),
    ("-v", "count"),
)

_IN_GENESIS = ("chain_id", "gas_limit", "base_fee", "hardfork", "balance", "disable_default_create2_deployer")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"devnet: {message}\n")


def _above_zero(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def _fork(name: str) -> Fork:
    if name.lower() == "latest":
        return DEFAULT
    if name.lower() not in _FORKS:
        raise argparse.ArgumentTypeError(f"{name} is not supported: choose one of {', '.join(_FORKS)}, latest")
    return BY_NAME[name.lower()]


def parser() -> argparse.ArgumentParser:
    """All flags, by what they are about."""
    made = _Parser(
        prog="devnet",
        description="A local chain for tests, with funded accounts.",
        allow_abbrev=False,
    )
    made.add_argument("-V", "--version", action="version", version=CLIENT_VERSION)
    _add_server(made)
    _add_accounts(made)
    _add_chain(made)
    _add_mining(made)
    _add_pool(made)
    _add_faults(made)
    _add_state(made)
    _add_refused(made)
    return made


def _add_server(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("server")
    group.add_argument(
        "--host", action="append", metavar="ADDRESS", help="address to listen on; repeatable (127.0.0.1)"
    )
    group.add_argument("-p", "--port", type=int, default=8545, help="port to listen on; 0 takes a free one (8545)")
    group.add_argument(
        "--ipc",
        "--ipcpath",
        nargs="?",
        type=Path,
        const=IPC_PATH,
        metavar="PATH",
        help=f"serve on a Unix socket too ({IPC_PATH})",
    )
    group.add_argument("--allow-origin", default="*", metavar="ORIGIN", help="what CORS allows (*)")
    group.add_argument("--no-cors", action="store_true", help="answer without CORS headers")
    group.add_argument("--no-request-size-limit", action="store_true", help="take bodies of any size")
    group.add_argument("--client-version", default=CLIENT_VERSION, help="what web3_clientVersion answers")
    group.add_argument("--config-out", metavar="FILE", help="write accounts, keys and fees to a JSON file")
    group.add_argument("-q", "--silent", "--quiet", action="store_true", help="print the Listening line only")
    group.add_argument("--die-with-parent", action="store_true", help="end when the starting process ends (Linux)")


def _add_accounts(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("accounts")
    group.add_argument("-a", "--accounts", type=int, default=10, help="development accounts (10)")
    group.add_argument("--balance", type=int, default=10_000, help="ether for each of them (10000)")
    phrase = group.add_mutually_exclusive_group()
    phrase.add_argument("-m", "--mnemonic", help=f"BIP-39 phrase they are derived from ({MNEMONIC})")
    phrase.add_argument(
        "--mnemonic-random", type=int, nargs="?", const=12, metavar="WORDS", help="derive them from a new phrase (12)"
    )
    phrase.add_argument(
        "--mnemonic-seed-unsafe", type=int, metavar="SEED", help="derive them from a phrase that follows from a number"
    )
    group.add_argument(
        "--derivation-path", default=DERIVATION_PATH, help=f"BIP-44 path before the index ({DERIVATION_PATH})"
    )
    group.add_argument(
        "--auto-impersonate", "--auto-unlock", action="store_true", help="let every account send without its key"
    )


def _add_chain(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("chain")
    group.add_argument("--chain-id", "--chain", type=int, default=31337, help="chain id (31337)")
    group.add_argument("--gas-limit", type=int, default=30_000_000, help="gas limit of a block (30000000)")
    group.add_argument("--disable-block-gas-limit", action="store_true", help="let blocks hold more gas than that")
    size = group.add_mutually_exclusive_group()
    size.add_argument("--code-size-limit", type=int, metavar="BYTES", help=f"most bytes of a contract ({CODE_LIMIT})")
    size.add_argument("--disable-code-size-limit", action="store_true", help="let contracts be of any size")
    group.add_argument(
        "--base-fee", "--block-base-fee-per-gas", type=int, default=GWEI, help="base fee of genesis in wei (1000000000)"
    )
    group.add_argument(
        "--disable-min-priority-fee", "--no-priority-fee", action="store_true", help="suggest tips below 1 gwei too"
    )
    group.add_argument(
        "--hardfork",
        type=_fork,
        default=DEFAULT,
        metavar="NAME",
        help=f"rules from genesis on: {', '.join(_FORKS)} (latest: {DEFAULT.name.lower()})",
    )
    group.add_argument(
        "--engine",
        choices=("compiled", "pyevm"),
        default="compiled",
        help="how code runs: what runs often as compiled Python, or all of it in py-evm's interpreter (compiled)",
    )
    group.add_argument(
        "--no-state-root", action="store_true", help="leave state roots zero: load tests are a little faster"
    )
    group.add_argument("--timestamp", type=int, help="timestamp of genesis; the clock runs on from it (now)")
    group.add_argument(
        "--slots-in-an-epoch", type=int, default=32, metavar="BLOCKS", help="`safe` is so far below the head (32)"
    )
    group.add_argument(
        "--disable-default-create2-deployer", "--no-create2", action="store_true", help="leave the CREATE2 deployer out"
    )
    group.add_argument("--init", metavar="FILE", help="begin with the genesis.json of geth, and with nothing else")
    group.add_argument(
        "--import", dest="import_file", metavar="FILE", help="add the RLP blocks of a file, as geth exports them"
    )


def _add_mining(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("mining")
    group.add_argument(
        "-b", "--block-time", "--blockTime", type=_above_zero, metavar="SECONDS", help="a block every so many seconds"
    )
    group.add_argument("--no-mining", "--no-mine", action="store_true", help="blocks on order only (evm_mine)")
    group.add_argument("--mixed-mining", action="store_true", help="blocks every --block-time and with each submission")
    group.add_argument(
        "--clock",
        choices=("machine", "manual"),
        default="machine",
        help="manual: time moves by devnet_clock only (machine)",
    )
    group.add_argument("--order", choices=("fees", "fifo"), default="fees", help="which transactions go first (fees)")
    group.add_argument("--max-transactions", type=int, metavar="COUNT", help="most transactions a block has")


def _add_pool(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("pool")
    group.add_argument(
        "--profile", choices=sorted(PROFILES), default=GETH.name, help="whose pool rules and error texts (geth)"
    )
    for name, what in POOL_FLAGS.items():
        group.add_argument(f"--txpool.{name}", dest=name, type=int, metavar="NUMBER", help=f"{what}, as geth's flag")


def _node_count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MAX_NODES:
        raise argparse.ArgumentTypeError(f"must be from 1 to {MAX_NODES}")
    return number


def _add_faults(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("faults")
    group.add_argument(
        "--plan", type=Path, metavar="FILE", help="fault rules and orders at set moments (docs/devnet.md)"
    )
    group.add_argument(
        "--seed", type=int, metavar="NUMBER", help="what faults are drawn from; genesis and block times are fixed too"
    )
    group.add_argument("--nodes", type=_node_count, metavar="COUNT", help="answer as so many nodes (devnet_nodes)")


def _add_state(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("state")
    group.add_argument("--load-state", metavar="FILE", help="begin with the chain a state file holds")
    group.add_argument("--dump-state", metavar="FILE", help="write the chain to a state file at the end")
    group.add_argument("--state", metavar="FILE", help="both, beginning afresh where the file is missing")
    group.add_argument(
        "-s", "--state-interval", type=_above_zero, metavar="SECONDS", help="write it every so many seconds as well"
    )


def _add_refused(made: argparse.ArgumentParser) -> None:
    for name, why in _REFUSED.items():
        made.add_argument(name, nargs="?", action=_refusing(f"{name} is not supported: {why}"), help=argparse.SUPPRESS)
    for name, kind in _WITHOUT_EFFECT:
        if kind in {"store_true", "count"}:
            made.add_argument(name, action=kind, help=argparse.SUPPRESS)
        else:
            made.add_argument(name, nargs="?" if kind == "optional" else None, help=argparse.SUPPRESS)


def _refusing(sentence: str) -> type[argparse.Action]:
    class Refusing(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
            parser.error(sentence)

    return Refusing


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, or an end of the program with one sentence."""
    made = parser()
    options = made.parse_args(argv)
    if options.block_time is not None and options.no_mining:
        made.error("--block-time and --no-mining exclude each other")
    if options.mixed_mining and options.block_time is None:
        made.error("--mixed-mining needs --block-time")
    if options.state is not None and (options.load_state is not None or options.dump_state is not None):
        made.error("--state stands for --load-state and --dump-state: leave them out")
    if options.state_interval is not None and options.state is None and options.dump_state is None:
        made.error("--state-interval needs --state or --dump-state")
    for name in _IN_GENESIS if options.init is not None else ():
        if getattr(options, name) != made.get_default(name):
            made.error(f"--init brings this with it: leave --{name.replace('_', '-')} out")
    if options.init is not None and (options.code_size_limit is not None or options.disable_code_size_limit):
        made.error("--init brings mainnet's limit on the size of code: leave --code-size-limit and its opposite out")
    if options.import_file is not None and (options.state is not None or options.load_state is not None):
        made.error("--import and a state file to load exclude each other")
    if options.import_file is not None and options.no_state_root:
        made.error("--import checks state roots: leave --no-state-root out")
    return options


def settings_of(options: argparse.Namespace) -> Settings:
    """What the node is to start with. Raises StartError where a mnemonic, path or genesis file is none."""
    settings = Settings(
        chain_id=options.chain_id,
        accounts=options.accounts,
        wallet=_wallet(options),
        balance=options.balance * ETHER,
        gas_limit=options.gas_limit,
        base_fee=options.base_fee,
        timestamp=SEEDED_GENESIS if options.timestamp is None and options.seed is not None else options.timestamp,
        automine=not options.no_mining and (options.block_time is None or options.mixed_mining),
        interval=options.block_time or 0.0,
        manual_clock=options.clock == "manual",
        schedule=Schedule.always(replace(options.hardfork, code_limit=_code_limit(options))),
        limits_gas=not options.disable_block_gas_limit,
        state_root=not options.no_state_root,
        compiles=options.engine == "compiled",
        profile=profile_with(options.profile, {name: getattr(options, name) for name in POOL_FLAGS}),
        client_version=options.client_version,
        least_tip=0 if options.disable_min_priority_fee else GWEI,
        slots_in_an_epoch=options.slots_in_an_epoch,
        order=options.order,
        max_transactions=options.max_transactions,
        create2_deployer=not options.disable_default_create2_deployer,
    )
    return settings if options.init is None else settings.beginning_as(read_genesis(options.init))


def _code_limit(options: argparse.Namespace) -> int:
    if options.disable_code_size_limit:
        return UNLIMITED
    return CODE_LIMIT if options.code_size_limit is None else int(options.code_size_limit)


def _wallet(options: argparse.Namespace) -> Wallet:
    mnemonic = options.mnemonic or MNEMONIC
    if options.mnemonic_random is not None:
        mnemonic = random_mnemonic(options.mnemonic_random)
    elif options.mnemonic_seed_unsafe is not None:
        mnemonic = seeded_mnemonic(options.mnemonic_seed_unsafe)
    path = options.derivation_path
    return Wallet(mnemonic, path if path.endswith("/") else f"{path}/")


def hosts_of(options: argparse.Namespace) -> list[str]:
    """The addresses to listen on: those named, else ANVIL_IP_ADDR of the environment, else 127.0.0.1."""
    named: list[str] = options.host or [os.environ.get("ANVIL_IP_ADDR") or "127.0.0.1"]
    return [host for item in named for host in item.split(",")]
