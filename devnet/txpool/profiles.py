"""How a given client's pool judges: its rules and its words, as data. geth is the default."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from devnet.errors import Rejected, RpcError
from devnet.txpool import texts

GWEI = 10**9
ETHER = 10**18
KIB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a pool holds; None is without limit. Transactions, but for `total`: slots of 32 KiB, as geth counts them.

    What is over a limit is evicted: over `total` the cheapest of all, over `executable` the last ones of the senders with
    most (down to `sender_executable` each), over `queued` those of the sender longest untouched, over `sender_queued` that
    sender's highest nonces; queued ones go after `lifetime` seconds. Only over `sender` is a newcomer refused.
    """

    total: int | None = None
    executable: int | None = None
    queued: int | None = None
    sender_executable: int | None = None
    sender_queued: int | None = None
    sender: int | None = None
    lifetime: float | None = None

    def per_sender(self, most: int) -> "Limits":
        """These limits with so many for each sender, by the means the client has: refusal, or eviction."""
        if self.sender_queued is None:
            return replace(self, sender=most)
        return replace(self, sender_executable=most, sender_queued=most)


@dataclass(frozen=True, slots=True)
class Profile:
    """Pool rules and texts of one client.

    `min_tip`, `min_price` (of the fee cap) and `fee_cap` (of gas times price) are wei, `max_size` and `max_blob_size`
    bytes (None: no limit), `price_bump` and `blob_price_bump` percent. `gaps` says what becomes of a nonce that is not
    the next, `max_gap` how far it may lie ahead. `needs_eoa` and `caps_gas` hold to EIP-3607 and EIP-7825. `texts` maps a reason of Rejected to an error code and a template.
    """

    name: str
    texts: texts.Texts
    price_bump: int = 10
    blob_price_bump: int = 100
    bumps_tip: bool = True
    replaces: bool = True
    min_tip: int = 0
    min_price: int = 0
    fee_cap: int | None = ETHER
    needs_replay_protection: bool = False
    needs_eoa: bool = True
    caps_gas: bool = True
    max_size: int | None = 128 * KIB
    max_blob_size: int | None = 1024 * KIB
    gaps: Literal["queue", "refuse"] = "queue"
    max_gap: int | None = None
    below_base_fee: Literal["wait", "refuse"] = "wait"
    counts_pooled: bool = False
    separates_blobs: bool = True
    restrains_delegated: bool = True
    requeues_orphans: bool = True
    drops_followers: bool = False
    types: frozenset[int] = frozenset(range(5))
    limits: Limits = Limits()

    def error(self, rejected: Rejected) -> RpcError:
        """The client's answer for a refusal."""
        code, template = self.texts[rejected.reason]
        return RpcError(code, template.format(**rejected.facts))

    def bumped(self, price: int, *, blob: bool = False) -> int:
        """The least price that replaces `price`, rounded down as geth does; at least one wei more."""
        bump = self.blob_price_bump if blob else self.price_bump
        return max(price * (100 + bump) // 100, price + 1)


GETH = Profile(
    name="geth",
    texts=texts.GETH,
    min_tip=1,
    needs_replay_protection=True,
    counts_pooled=True,
    limits=Limits(
        total=5120 + 1024,
        executable=5120,
        queued=1024,
        sender_executable=16,
        sender_queued=64,
        lifetime=3 * 3600,
    ),
)
ANVIL = Profile(
    name="anvil",
    texts=texts.ANVIL,
    price_bump=0,
    blob_price_bump=0,
    needs_eoa=False,
    caps_gas=False,
    bumps_tip=False,
    fee_cap=None,
    max_size=None,
    max_blob_size=None,
    below_base_fee="refuse",
    separates_blobs=False,
    restrains_delegated=False,
    requeues_orphans=False,
    drops_followers=True,
)
BESU = Profile(
    name="besu",
    texts=texts.BESU,
    min_price=1000,
    max_gap=200,
    separates_blobs=False,
    restrains_delegated=False,
)
NETHERMIND = Profile(
    name="nethermind",
    texts=texts.NETHERMIND,
    fee_cap=None,
    counts_pooled=True,
    limits=Limits(total=2048),
)
NETHERMIND_OLD = replace(NETHERMIND, name="nethermind-old", texts=texts.NETHERMIND_OLD)
ERIGON = Profile(
    name="erigon",
    texts=texts.ERIGON,
    min_price=1,
    needs_replay_protection=True,
    limits=Limits(total=10_000 + 30_000 + 30_000),
)
RETH = Profile(
    name="reth",
    texts=texts.RETH,
    min_price=7,  # the least base fee the protocol can reach
    limits=Limits(total=10_000 + 10_000 + 10_000),
)
NITRO = Profile(
    name="nitro",
    texts=texts.NITRO,
    replaces=False,
    needs_replay_protection=True,
    max_size=95_000,
    gaps="refuse",
    below_base_fee="refuse",
    restrains_delegated=False,
    types=frozenset({0, 1, 2, 4}),
)
BOR = replace(
    GETH,
    name="bor",
    texts=texts.BOR,
    min_tip=25 * GWEI,
    limits=replace(GETH.limits, total=2 * 131_072, executable=131_072, queued=131_072),
)

PROFILES: Mapping[str, Profile] = {
    profile.name: profile for profile in (GETH, ANVIL, BESU, NETHERMIND, NETHERMIND_OLD, ERIGON, RETH, NITRO, BOR)
}


def profile_named(name: str) -> Profile:
    """The profile of a client. Raises ValueError naming those there are."""
    profile = PROFILES.get(name)
    if profile is None:
        raise ValueError(f"there is no profile {name}: choose one of {', '.join(sorted(PROFILES))}")
    return profile


POOL_FLAGS: Mapping[str, str] = {
    "accountslots": "executable transactions left to a sender when the pool is trimmed",
    "globalslots": "executable transactions at most",
    "accountqueue": "queued transactions of a sender at most",
    "globalqueue": "queued transactions at most",
    "lifetime": "seconds queued transactions may wait",
    "pricelimit": "least tip, in wei",
    "pricebump": "percent a replacement must pay more",
}


def profile_with(name: str, flags: Mapping[str, int | None]) -> Profile:
    """A client's profile with the numbers that POOL_FLAGS were given. Raises ValueError for an unknown client."""
    profile = profile_named(name)
    given = {flag: number for flag, number in flags.items() if number is not None}
    limits = replace(
        profile.limits,
        sender_executable=given.get("accountslots", profile.limits.sender_executable),
        executable=given.get("globalslots", profile.limits.executable),
        sender_queued=given.get("accountqueue", profile.limits.sender_queued),
        queued=given.get("globalqueue", profile.limits.queued),
        lifetime=given.get("lifetime", profile.limits.lifetime),
    )
    if limits.executable is not None and limits.queued is not None:
        limits = replace(limits, total=limits.executable + limits.queued)
    return replace(
        profile,
        limits=limits,
        min_tip=given.get("pricelimit", profile.min_tip),
        price_bump=given.get("pricebump", profile.price_bump),
    )
