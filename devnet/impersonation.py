"""Who may send without a key, as anvil's and hardhat's impersonation has it."""

from dataclasses import dataclass, field


@dataclass
class Impersonation:
    """Accounts eth_sendTransaction takes at their word: the listed ones, or with `everyone` any."""

    addresses: set[bytes] = field(default_factory=set)
    everyone: bool = False

    def covers(self, address: bytes) -> bool:
        """Whether an account may send without a signature."""
        return self.everyone or address in self.addresses
