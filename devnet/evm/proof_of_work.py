"""What blocks before the merge had: a difficulty that follows the parent's, uncles, and a reward for their makers."""

from collections.abc import Sequence
from typing import Final

from devnet.codec.blocks import EMPTY_UNCLES, Header
from devnet.evm.forks import BY_NAME, Fork
from devnet.evm.world import World

MINIMUM_DIFFICULTY: Final = 131_072
MAX_UNCLES: Final = 2
MAX_UNCLE_AGE: Final = 7  # an uncle is a child of one of the last seven ancestors, the parent itself left out
_BOUND_DIVISOR: Final = 2048
_BOMB_PERIOD: Final = 100_000
_REWARDS: Final = (("constantinople", 2), ("byzantium", 3), ("frontier", 5))  # ether: EIP-1234, EIP-649
_BOMB_DELAYS: Final = (
    ("grayglacier", 11_400_000),  # EIP-5133
    ("arrowglacier", 10_700_000),  # EIP-4345
    ("london", 9_700_000),  # EIP-3554
    ("muirglacier", 9_000_000),  # EIP-2384
    ("constantinople", 5_000_000),  # EIP-1234
    ("byzantium", 3_000_000),  # EIP-649
)


def difficulty(fork: Fork, parent: Header, timestamp: int) -> int:
    """The difficulty a block under `fork` has that follows `parent` at `timestamp` (seconds); 0 since the merge."""
    if fork.is_proof_of_stake:
        return 0
    step = parent.difficulty // _BOUND_DIVISOR
    passed = timestamp - parent.timestamp
    if fork >= BY_NAME["byzantium"]:  # EIP-100
        change = max((1 if parent.uncles_hash == EMPTY_UNCLES else 2) - passed // 9, -99)
    elif fork >= BY_NAME["homestead"]:  # EIP-2
        change = max(1 - passed // 10, -99)
    else:
        change = 1 if passed < 13 else -1
    value = max(parent.difficulty + step * change, MINIMUM_DIFFICULTY)
    delay = next((delay for name, delay in _BOMB_DELAYS if fork >= BY_NAME[name]), 0)
    period = max(parent.number + 1 - delay, 0) // _BOMB_PERIOD
    return value + 2 ** (period - 2) if period > 1 else value


def pay_rewards(world: World, fork: Fork, number: int, coinbase: bytes, uncles: Sequence[Header] = ()) -> None:
    """Pay the makers of a block of this height and of its uncles; nothing since the merge (yellow paper, 11.3)."""
    if fork.is_proof_of_stake:
        return
    reward = next(ether for name, ether in _REWARDS if fork >= BY_NAME[name]) * 10**18
    for uncle in uncles:
        _add(world, uncle.coinbase, reward * (uncle.number + 8 - number) // 8)
    _add(world, coinbase, reward + reward // 32 * len(uncles))


def _add(world: World, address: bytes, amount: int) -> None:
    world.write(world.balances, address, world.balance(address) + amount)
