"""What a devnet starts with."""

import sys
from dataclasses import dataclass, field, replace

from devnet.accounts import Wallet
from devnet.evm.forks import DEFAULT_SCHEDULE, Schedule
from devnet.genesis import Genesis
from devnet.orders import Order
from devnet.txpool.profiles import ETHER, GETH, Profile

GWEI = 10**9
# Tools refuse nodes whose name they do not know.
CLIENT_VERSION = f"anvil/v1.7.1 fenced-devnet/0.1.0/python{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a devnet starts with. `balance` and `base_fee` in wei, `timestamp` in seconds (None: now).

    With `limits_gas` blocks hold no more gas than their limit. `least_tip` is the lowest tip it suggests, in wei per gas; `safe` is `slots_in_an_epoch` blocks below the head.
    """

    chain_id: int = 31337
    accounts: int = 10
    wallet: Wallet = field(default_factory=Wallet)
    balance: int = 10_000 * ETHER
    gas_limit: int = 30_000_000
    base_fee: int = GWEI
    timestamp: int | None = None
    automine: bool = True
    interval: float = 0.0
    manual_clock: bool = False
    profile: Profile = GETH
    schedule: Schedule = DEFAULT_SCHEDULE
    state_root: bool = True
    compiles: bool = True
    client_version: str = CLIENT_VERSION
    least_tip: int = GWEI
    limits_gas: bool = True
    slots_in_an_epoch: int = 32
    order: Order = "fees"
    max_transactions: int | None = None
    create2_deployer: bool = True
    genesis: Genesis | None = None

    def beginning_as(self, genesis: Genesis) -> "Settings":
        """These settings for a chain with that genesis: its chain id, gas limit and forks, its accounts and no others."""
        return replace(
            self,
            genesis=genesis,
            chain_id=genesis.chain_id,
            gas_limit=genesis.gas_limit,
            schedule=genesis.schedule,
        )
