"""Where the demo plays: a folder with an embedded PostgreSQL, a devnet, a token, a wallet and a configuration."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chain.errors import ChainError
from chain.keccak import keccak
from chain.rpc import Rpc
from chain.types import checksum
from executor import config, embedded, migration, registration
from executor.database import Database, normalise
from executor.demo import processes
from executor.demo.processes import Process
from executor.demo.telling import Teller
from executor.errors import NotFine

SERVICE = "demo"
LEASE_SECONDS = 3
RENT_ETHER = "0.01"
BONUS_TOKENS = 25
LANDLORD = checksum(keccak(b"landlord")[12:])
CREW = checksum(keccak(b"crew")[12:])
_HERE = Path(__file__).parent
_DEVNET = ("-m", "devnet", "--port", "0", "--block-time", "1", "--silent", "--die-with-parent")
CHAIN_ID = 31337
# The devnet's second account. Like all of them it is public: whatever its key holds is lost.
WALLET = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
_KEY = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
_CONFIG = """\
[service]
name = "{service}"

[database]
url = "{database}"

[worker]
lease = "{lease}s"
listen = ""

[chains.devnet]
id = {chain_id}
endpoints = ["{endpoint}"]
final = {{ depth = 1 }}

[accounts.treasury]
chain = "devnet"
address = "{wallet}"
signer = {{ kind = "keyfile", path = "treasury.key" }}

[accounts.treasury.policy]
max_fee_per_gas = "100 gwei"
max_value = "1 ether"

[strategies.rent]
plan = "strategies.rent:plan"
account = "treasury"
every = "5s"
misfire = "all"
overlap = "allow"
params = {{ to = "{landlord}", amount = "{rent} ether" }}

[strategies.bonus]
plan = "strategies.bonus:plan"
account = "treasury"
every = "10s"
misfire = "all"
overlap = "allow"
params = {{ token = "{token}", to = "{crew}", amount = {bonus} }}
"""


@dataclass
class Scene:
    """What the demo stands on. `cast` holds every process but the database's."""

    folder: Path
    database: Database
    rpc: Rpc
    endpoint: str
    token: str
    devnet: Process
    cast: list[Process] = field(default_factory=list)

    @property
    def config_path(self) -> Path:
        """The configuration that all workers share."""
        return self.folder / "fenced.toml"

    @property
    def url(self) -> str:
        """The database's address."""
        return self.database.conninfo()

    def worker(self, name: str, crash: str) -> Process:
        """Start a worker whose crash point ("sign.stored:kill") fires once after `arm`."""
        marker = self._marker(name)
        marker.touch()
        command = ["-m", "executor", "run", "--config", str(self.config_path), "--name", name]
        environment = {"FENCED_CRASH": f"{crash}:{marker}"} if crash else {}
        process = processes.start(name, command, self.folder, environment)
        self.cast.append(process)
        return process

    def arm(self, name: str) -> None:
        """Let the worker's crash point fire when it is reached next."""
        self._marker(name).unlink()

    def watch(self, *may_end: Process) -> None:
        """Raises NotFine when a process ended that should not have."""
        for process in [self.devnet, *self.cast]:
            if process.ended and process not in may_end:
                raise NotFine(f"{process.name} ended by itself ({process.last_words()}).")

    def _marker(self, name: str) -> Path:
        return self.folder / f"{name}.fired"


def make_folder() -> Path:
    """A new temporary folder; everything the demo writes lies in it."""
    folder = Path(tempfile.mkdtemp(prefix="fenced-demo-"))
    folder.chmod(0o711 if os.geteuid() == 0 else 0o700)  # root's database runs as another user, who must pass
    return folder


@contextmanager
def opened(folder: Path, teller: Teller) -> Iterator[Scene]:
    """Build the scene in `folder`; on the way out every process ends.

    Raises:
        ExecutorError: the database, the devnet or the token did not come up.
    """
    with ExitStack() as stack:
        devnet = processes.start("devnet", _DEVNET, folder, {}, tie=False)
        stack.callback(processes.stop, [devnet], 2)
        server = embedded.start(folder / "database", child=True)
        stack.callback(_remove_outside, folder, server)
        stack.enter_context(server)
        migration.upgrade(server.url())
        scene = _furnish(teller, folder, server.url(), devnet)
        stack.callback(scene.rpc.close)
        stack.callback(scene.database.close)
        stack.callback(processes.stop, scene.cast, 0)
        yield scene


def _furnish(teller: Teller, folder: Path, url: str, devnet: Process) -> Scene:
    def watch() -> None:
        if devnet.ended:
            raise NotFine(f"the devnet did not start ({devnet.last_words()}).")

    endpoint = teller.wait("the devnet to listen", lambda: _address(devnet), 30, watch)
    rpc = Rpc(endpoint)
    token = _deploy(teller, rpc)
    values = {"service": SERVICE, "lease": LEASE_SECONDS, "chain_id": CHAIN_ID, "wallet": WALLET, "token": token}
    values |= {"landlord": LANDLORD, "crew": CREW, "rent": RENT_ETHER, "bonus": BONUS_TOKENS}
    values |= {"endpoint": endpoint, "database": url.replace("postgresql+psycopg://", "postgresql://", 1)}
    (folder / "fenced.toml").write_text(_CONFIG.format_map(values))
    (folder / "strategies").mkdir()
    for source in (_HERE / "strategies").glob("*.py"):
        shutil.copyfile(source, folder / "strategies" / source.name)
    (folder / "treasury.key").touch(0o600)
    (folder / "treasury.key").write_text(_KEY)
    database = Database(normalise(url), "fenced demo", pool_size=2)
    registration.claim(database, SERVICE)
    registration.apply(database, config.load(folder / "fenced.toml"))
    return Scene(folder, database, rpc, endpoint, token, devnet)


def _address(devnet: Process) -> str | None:
    for line in devnet.log.read_text().splitlines(keepends=True):
        if line.startswith("Listening on ") and line.endswith("\n"):
            return "http://" + line.removeprefix("Listening on ").strip()
    return None


def _deploy(teller: Teller, rpc: Rpc) -> str:
    """Put the token on the chain, all of it in the wallet's hands; its address."""
    holder, supply = bytes.fromhex(WALLET[2:]).rjust(32, b"\0"), (10**24).to_bytes(32)
    code = (_HERE / "token.hex").read_text().strip() + (holder + supply).hex()
    try:
        deployer = rpc.call("eth_accounts")[0]
        sent = rpc.call("eth_sendTransaction", [{"from": deployer, "data": code, "gas": hex(2_000_000)}])
        receipt = teller.wait("the token's block", lambda: rpc.call("eth_getTransactionReceipt", [sent]), 20, _nothing)
    except ChainError as error:
        raise NotFine(f"the devnet did not take the token ({error}).") from None
    if receipt["status"] != "0x1":
        raise NotFine("the token's deployment reverted.")
    return checksum(bytes.fromhex(receipt["contractAddress"][2:]))


def _nothing() -> None:
    """There is nothing to watch."""


def _remove_outside(folder: Path, server: embedded.Server) -> None:
    """Remove the parts of the database that do not fit below the folder (an unreachable path, a long one)."""
    for place in (server.place.home, server.place.socket_dir):
        if not place.is_relative_to(folder):
            shutil.rmtree(place, ignore_errors=True)
