"""The forks of Ethereum mainnet in order, what each of them changed for us, and when a chain passes from one to the next.

A rule asks the fork it runs under by a named flag (`fork.has_base_fee`), never by its name. Who reads what:
`gas` the prices of a transaction's bytes, `transition` refund and fee rules, `pyevm` picks the opcode table by `name`,
`miner` fills the header fields that `Header` then encodes because they are not None, `blob_gas` the blob schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

CODE_LIMIT: Final = 24_576


@dataclass(frozen=True, slots=True)
class BlobSchedule:
    """Blobs a block aims at and may hold, and how slowly their base fee follows (EIP-7840)."""

    target: int
    max: int
    base_fee_update_fraction: int


@dataclass(frozen=True)
class Fork:
    """One set of consensus rules. Forks compare by `rank`, their place in history; `name` is spelled as anvil spells it.

    `key` is the name of its activation in the `config` of a geth genesis.json (`…Block` or `…Time`); Paris has
    `terminalTotalDifficulty` there, which works differently (see Schedule). `code_limit` is in bytes (EIP-170).
    """

    name: str
    rank: int
    key: str
    blobs: BlobSchedule | None = field(default=None, compare=False)
    code_limit: int = field(default=CODE_LIMIT, compare=False)

    def __lt__(self, other: "Fork") -> bool:
        return self.rank < other.rank

    def __le__(self, other: "Fork") -> bool:
        return self.rank <= other.rank

    def __gt__(self, other: "Fork") -> bool:
        return self.rank > other.rank

    def __ge__(self, other: "Fork") -> bool:
        return self.rank >= other.rank

    def _since(self, name: str) -> bool:
        return self.rank >= BY_NAME[name].rank

    # -- gas of a transaction's own bytes, and refunds --

    @cached_property
    def creation_gas(self) -> int:
        """What a creation pays on top of a transaction (EIP-2)."""
        return 32_000 if self._since("homestead") else 0

    @cached_property
    def nonzero_byte_gas(self) -> int:
        """Gas of a byte of data that is not zero; a zero byte is 4 (EIP-2028)."""
        return 16 if self._since("istanbul") else 68

    @cached_property
    def limits_initcode(self) -> bool:
        """Init code pays by the word and is limited in size (EIP-3860)."""
        return self._since("shanghai")

    @cached_property
    def max_initcode(self) -> int:
        """The most bytes of init code where it is limited (EIP-3860)."""
        return 2 * self.code_limit

    @cached_property
    def has_data_floor(self) -> bool:
        """A transaction pays a floor price for its data (EIP-7623)."""
        return self._since("prague")

    @cached_property
    def refund_quotient(self) -> int:
        """At most this part of the gas used is given back (EIP-3529)."""
        return 5 if self._since("london") else 2

    @cached_property
    def selfdestruct_refund(self) -> int:
        """Gas given back for each contract destroyed; none since EIP-3529."""
        return 0 if self._since("london") else 24_000

    @cached_property
    def transaction_gas_cap(self) -> int | None:
        """The most gas one transaction may ask for (EIP-7825)."""
        return 1 << 24 if self._since("osaka") else None

    # -- transactions and accounts --

    @cached_property
    def transaction_types(self) -> frozenset[int]:
        """Types of transaction a block may hold."""
        since = ((0, "frontier"), (1, "berlin"), (2, "london"), (3, "cancun"), (4, "prague"))
        return frozenset(kind for kind, name in since if self._since(name))

    @cached_property
    def has_replay_protection(self) -> bool:
        """Legacy signatures may name the chain (EIP-155)."""
        return self._since("spuriousdragon")

    @cached_property
    def clears_empty_accounts(self) -> bool:
        """A touched account without balance, nonce and code is no account (EIP-161)."""
        return self._since("spuriousdragon")

    @cached_property
    def cell_proofs(self) -> bool:
        """Blobs travel with proofs of their cells, not with one proof each (EIP-7594)."""
        return self._since("osaka")

    @cached_property
    def transaction_blob_cap(self) -> int | None:
        """The most blobs one transaction may carry (EIP-7594); None where only the block's maximum counts."""
        return 6 if self._since("osaka") else None

    # -- receipts, headers, blocks --

    @cached_property
    def receipts_have_status(self) -> bool:
        """Receipts say whether a transaction succeeded; before, they held the state root after it (EIP-658)."""
        return self._since("byzantium")

    @cached_property
    def has_base_fee(self) -> bool:
        """Blocks have a base fee, which is burnt (EIP-1559)."""
        return self._since("london")

    @cached_property
    def is_proof_of_stake(self) -> bool:
        """No difficulty, no block reward; PREVRANDAO for DIFFICULTY (EIP-3675, EIP-4399)."""
        return self._since("paris")

    @cached_property
    def has_withdrawals(self) -> bool:
        """Blocks carry withdrawals (EIP-4895)."""
        return self._since("shanghai")

    @cached_property
    def has_beacon_root(self) -> bool:
        """The header names the parent beacon block, and a system contract remembers it (EIP-4788)."""
        return self._since("cancun")

    @cached_property
    def has_requests(self) -> bool:
        """Blocks carry requests to the consensus layer (EIP-7685), and a contract remembers block hashes (EIP-2935)."""
        return self._since("prague")

    @cached_property
    def reserves_blob_price(self) -> bool:
        """The blob base fee keeps a floor that follows the cost of execution (EIP-7918)."""
        return self._since("osaka")

    @cached_property
    def block_size_limit(self) -> int | None:
        """The most bytes the RLP of a block may have (EIP-7934)."""
        return 10 * 1024 * 1024 - 2 * 1024 * 1024 if self._since("osaka") else None

    @cached_property
    def precompiles(self) -> frozenset[bytes]:
        """The addresses that are built into the EVM."""
        since = (
            ("frontier", range(1, 5)),
            ("byzantium", range(5, 9)),
            ("istanbul", range(9, 10)),
            ("cancun", range(10, 11)),
            ("prague", range(11, 18)),
            ("osaka", range(0x100, 0x101)),
        )
        return frozenset(
            number.to_bytes(20, "big") for name, numbers in since if self._since(name) for number in numbers
        )


_CANCUN_BLOBS: Final = BlobSchedule(3, 6, 3_338_477)
_PRAGUE_BLOBS: Final = BlobSchedule(6, 9, 5_007_716)
_HISTORY: Final[Sequence[tuple[str, str, BlobSchedule | None]]] = (
    ("Frontier", "", None),
    ("Homestead", "homesteadBlock", None),
    ("Tangerine", "eip150Block", None),
    ("SpuriousDragon", "eip158Block", None),
    ("Byzantium", "byzantiumBlock", None),
    ("Constantinople", "constantinopleBlock", None),
    ("Petersburg", "petersburgBlock", None),
    ("Istanbul", "istanbulBlock", None),
    ("MuirGlacier", "muirGlacierBlock", None),
    ("Berlin", "berlinBlock", None),
    ("London", "londonBlock", None),
    ("ArrowGlacier", "arrowGlacierBlock", None),
    ("GrayGlacier", "grayGlacierBlock", None),
    ("Paris", "terminalTotalDifficulty", None),
    ("Shanghai", "shanghaiTime", None),
    ("Cancun", "cancunTime", _CANCUN_BLOBS),
    ("Prague", "pragueTime", _PRAGUE_BLOBS),
    ("Osaka", "osakaTime", _PRAGUE_BLOBS),
    ("Bpo1", "bpo1Time", BlobSchedule(10, 15, 8_346_193)),
    ("Bpo2", "bpo2Time", BlobSchedule(14, 21, 11_684_671)),
)

FORKS: Final[Sequence[Fork]] = tuple(Fork(name, rank, key, blobs) for rank, (name, key, blobs) in enumerate(_HISTORY))
"""Every fork, oldest first. The DAO fork changed accounts, not rules, and is left out."""

BY_NAME: Final[Mapping[str, Fork]] = {fork.name.lower(): fork for fork in FORKS}
"""Forks by the name in lower case, as anvil's --hardfork takes it."""

PARIS: Final = BY_NAME["paris"]
DEFAULT: Final = BY_NAME["bpo2"]
"""What mainnet runs since January 2026."""


@dataclass(frozen=True)
class Schedule:
    """When a chain passes from fork to fork: by height up to Gray Glacier, by total difficulty at Paris, then by time.

    `blocks` and `times` hold (height or seconds since 1970, fork), oldest first. A fork that a chain gives its own blob
    schedule is a `dataclasses.replace` of the one in FORKS. `terminal_total_difficulty` None: never merged.
    """

    blocks: tuple[tuple[int, Fork], ...]
    times: tuple[tuple[int, Fork], ...] = ()
    terminal_total_difficulty: int | None = 0

    @classmethod
    def always(cls, fork: Fork) -> "Schedule":
        """One fork from genesis on, as a devnet has it."""
        if fork > PARIS:
            return cls(blocks=(), times=((0, fork),))
        return cls(blocks=((0, fork),), terminal_total_difficulty=0 if fork == PARIS else None)

    @cached_property
    def _only(self) -> Fork | None:
        """The fork where there is one for all blocks: asked for twice a block, it is worth the shortcut."""
        starts = self.blocks + self.times
        if len(starts) != 1 or starts[0][0] != 0:
            return None
        fork = starts[0][1]
        merged = self.terminal_total_difficulty == 0
        return fork if merged == (fork >= PARIS) and self.terminal_total_difficulty in {0, None} else None

    def at(self, number: int, timestamp: int, parent_difficulty: int | None = None) -> Fork:
        """The rules of the block of this height and time.

        `parent_difficulty` is the total difficulty of the chain up to its parent (for genesis: its own), which decides on
        Paris; None says that the chain merged before, which is so for every block made here.
        """
        if self._only is not None:
            return self._only
        terminal = self.terminal_total_difficulty
        merged = terminal is not None and (parent_difficulty is None or parent_difficulty >= terminal)
        found = FORKS[0]
        for start, fork in self.blocks:
            if start <= number:
                found = fork
        if not merged:
            return found
        found = max(found, PARIS)
        for start, fork in self.times:
            if start <= timestamp:
                found = fork
        return found


DEFAULT_SCHEDULE: Final = Schedule.always(DEFAULT)
"""The default fork from genesis on."""
