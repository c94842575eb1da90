"""Random histories of sends, blocks, drops, reorgs and snapshots: the pool's books stay right and nothing is lost unseen."""

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from devnet.errors import RpcError
from devnet.node import Node
from devnet.settings import Settings
from devnet.txpool.profiles import ANVIL, GETH, NITRO, Profile, profile_with
from tests.devnet.wallet import ALICE, BOB, GWEI, Wallet

WALLETS = (ALICE, BOB)
NONCES, LEVELS = 5, 3
CROWDED = profile_with("geth", {"accountslots": 1, "globalslots": 3, "accountqueue": 2, "globalqueue": 2})
PROFILES = (GETH, CROWDED, ANVIL, NITRO)
GONE = {"replaced", "overtaken", "dropped", "reverted", "orphaned"}


def _signed(wallet: Wallet, nonce: int, level: int) -> bytes:
    fees = {"maxFeePerGas": 2 * GWEI * 2**level, "maxPriorityFeePerGas": GWEI * 2**level}
    return bytes.fromhex(wallet.sign(nonce, value=level, **fees).raw[2:])


RAW = {
    (who, nonce, level): _signed(wallet, nonce, level)
    for who, wallet in enumerate(WALLETS)
    for nonce in range(NONCES)
    for level in range(LEVELS)
}
SENDERS = [bytes.fromhex(wallet.address[2:]) for wallet in WALLETS]

send = st.tuples(st.just("send"), st.integers(0, 1), st.integers(0, NONCES - 1), st.integers(0, LEVELS - 1))
other = st.tuples(
    st.sampled_from(["mine", "mine", "dear", "rollback", "drop", "snapshot", "revert", "nonce"]),
    st.integers(0, 1),
    st.integers(0, 3),
    st.just(0),
)
Act = tuple[str, int, int, int]


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(PROFILES), st.lists(st.one_of(send, send, other), max_size=40))
@example(ANVIL, [("send", 0, 0, 0), ("mine", 0, 0, 0), ("rollback", 0, 1, 0)])
def test_books_stay_right_and_nothing_is_lost(profile: Profile, acts: Sequence[Act]) -> None:
    node = Node(Settings(automine=False, accounts=2, timestamp=1_700_000_000, profile=profile))
    accepted: set[bytes] = set()
    for act in acts:
        _perform(node, act, accepted)
        _check_books(node)
        _check_whereabouts(node, accepted)


def _perform(node: Node, act: Act, accepted: set[bytes]) -> None:
    kind, who, number, level = act
    if kind == "send":
        before = node.pool.next_nonce(SENDERS[who])
        try:
            tx = node.submit(RAW[who, number, level])
        except RpcError:
            assert node.pool.next_nonce(SENDERS[who]) == before
            return
        accepted.add(tx.hash)
        assert node.pool.next_nonce(SENDERS[who]) >= before or node.profile is CROWDED
    elif kind == "mine":
        node.miner.mine()
    elif kind == "dear":
        node.miner.next_base_fee = 5 * GWEI
        node.miner.mine()
    elif kind == "rollback":
        node.rollback(min(number, node.chain.head.number))
    elif kind == "drop":
        waiting = node.pool.contents()
        if waiting:
            assert node.pool.drop(waiting[number % len(waiting)].tx.hash)
    elif kind == "snapshot":
        node.snapshot()
    elif kind == "revert":
        node.revert(number)
    elif kind == "nonce":
        node.amend(node.world.nonces, SENDERS[who], node.world.nonce(SENDERS[who]) + number)
        node.pool.resync(SENDERS[who])


def _check_books(node: Node) -> None:
    pool, world = node.pool, node.world
    entries = [entry for lane in pool.lanes.values() for entry in lane.entries.values()]
    assert {entry.tx.hash for entry in entries} == set(pool.by_hash)
    assert len(entries) == len(pool.by_hash)
    for sender, lane in pool.lanes.items():
        assert lane.entries
        assert lane.start == world.nonce(sender)
        assert min(lane.entries) >= lane.start
        run = range(lane.start, lane.end)
        assert all(nonce in lane.entries for nonce in run)
        assert lane.end not in lane.entries
        assert lane.cost == sum(lane.entries[nonce].tx.cost for nonce in run)
    pending = sum(lane.end - lane.start for lane in pool.lanes.values())
    assert pool.counts() == (pending, len(entries) - pending)
    assert not world.journal
    assert not set(pool.by_hash) & set(node.chain.included)


def _check_whereabouts(node: Node, accepted: set[bytes]) -> None:
    """Every accepted transaction waits, is mined, or the ledger says how it left."""
    for tx_hash in accepted:
        events = node.ledger.events.get(tx_hash, [])
        if tx_hash in node.chain.included:
            assert events[-1].kind == "mined"
        elif tx_hash not in node.pool.by_hash:
            forgets = () if node.profile.requeues_orphans else ("lost",)
            assert events[-1].kind in {*GONE, *forgets} or events[-1].kind.startswith("evicted: ")
