"""Block 0 and the world in it: funded development accounts, or exactly what a genesis file says."""

from collections.abc import Iterable

from devnet.accounts import Account
from devnet.clock import Clock
from devnet.evm import system_contracts
from devnet.evm.world import World
from devnet.genesis import Genesis
from devnet.miner import Miner
from devnet.settings import Settings

# The deterministic deployment proxy that every development chain carries (EIP-1014 deployments by tools).
CREATE2_DEPLOYER = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
CREATE2_DEPLOYER_CODE = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0"
    "3601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3"
)


def make_first_block(settings: Settings, accounts: Iterable[Account], world: World, clock: Clock, miner: Miner) -> None:
    """Begin the chain of an empty world. Its time is the machine's unless set."""
    if settings.timestamp is not None:
        clock.start_at(settings.timestamp)
    if settings.genesis is not None:
        _make_as_told(settings.genesis, world, miner)
        return
    for account in accounts:
        world.write(world.balances, account.address, settings.balance)
    if settings.create2_deployer:
        world.write(world.codes, CREATE2_DEPLOYER, CREATE2_DEPLOYER_CODE)
    timestamp = clock.now()
    system_contracts.deploy(world, settings.schedule.at(0, timestamp))
    miner.genesis(timestamp, settings.base_fee)
    miner.next_base_fee = settings.base_fee  # the first block has it too, as on anvil


def _make_as_told(genesis: Genesis, world: World, miner: Miner) -> None:
    """No account is added to it."""
    genesis.allocate(world)
    miner.deposit_contract = genesis.deposit_contract
    miner.genesis_of(genesis)
