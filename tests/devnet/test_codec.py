"""The pure parts against independent ones: the trie against py-trie, RLP against pyrlp, decoding against eth-account."""

import random

import pytest
import rlp
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st
from trie import HexaryTrie

from devnet.accounts import address_of, development_accounts
from devnet.codec import rlp_coding
from devnet.codec.transaction import decode
from devnet.codec.trie import Trie, ordered_root
from devnet.errors import DecodeError
from devnet.evm.world import World
from devnet.txpool.lane import Lane, Pooled
from tests.devnet.wallet import ALICE, BOB, GWEI

items = st.recursive(st.binary(max_size=70), lambda inner: st.lists(inner, max_size=6), max_leaves=20)


@given(items)
def test_rlp_agrees_with_pyrlp(item: object) -> None:
    encoded = rlp.encode(item)
    assert rlp_coding.encode(item) == encoded  # type: ignore[arg-type]  # hypothesis types what it draws as object
    assert rlp_coding.decode(encoded) == item


@given(st.binary(min_size=1, max_size=40))
def test_rlp_refuses_what_pyrlp_refuses(raw: bytes) -> None:
    try:
        expected = rlp.decode(raw)
    except rlp.DecodingError:
        with pytest.raises(DecodeError):
            rlp_coding.decode(raw)
    else:
        assert rlp_coding.decode(raw) == expected


def test_the_trie_agrees_with_py_trie() -> None:
    chance = random.Random(7)
    ours, theirs, keys = Trie(), HexaryTrie({}, prune=True), [keccak(b"first")]
    for step in range(600):
        if chance.random() < 0.4:
            key = chance.choice(keys)
        else:
            key = keccak(chance.randbytes(8)) if chance.random() < 0.5 else keys[-1][:31] + chance.randbytes(1)
        value = b"" if chance.random() < 0.3 else chance.randbytes(chance.choice([1, 5, 40]))
        ours.put(key, value)
        if value:
            keys.append(key)
            theirs[key] = value
        elif key in theirs:
            del theirs[key]
        if step % 20 == 0:
            assert ours.root() == theirs.root_hash
    for key in dict.fromkeys(keys):
        ours.put(key, b"")
    assert ours.root() == keccak(b"\x80")


@pytest.mark.parametrize("count", [0, 1, 2, 17, 127, 128, 129, 300])
def test_a_lists_root_agrees_with_py_trie(count: int) -> None:
    values = [b"value %d" % index for index in range(count)]
    theirs = HexaryTrie({})
    for index, value in enumerate(values):
        theirs[rlp.encode(index)] = value
    assert ordered_root(values) == theirs.root_hash


def test_decoding_finds_the_signer_of_every_type() -> None:
    legacy = ALICE.sign(3, gasPrice=2 * GWEI)
    listed = BOB.sign(4, gasPrice=GWEI, accessList=[{"address": BOB.address, "storageKeys": ["0x" + "01" * 32]}])
    dynamic = BOB.sign(5, data="0xabcd", to=None)
    for kind, (wallet, signed) in enumerate([(ALICE, legacy), (BOB, listed), (BOB, dynamic)]):
        tx = decode(bytes.fromhex(signed.raw[2:]))
        assert (tx.type, tx.chain_id, tx.nonce) == (kind, 31337, 3 + kind)
        assert "0x" + tx.sender.hex() == wallet.address
        assert "0x" + tx.hash.hex() == signed.hash


def test_the_built_in_keys_are_the_mnemonics() -> None:
    from eth_account.hdaccount import key_from_seed, seed_from_mnemonic

    from devnet.accounts import DERIVATION_PATH, MNEMONIC

    seed = seed_from_mnemonic(MNEMONIC, "")
    for index, account in enumerate(development_accounts(10)):
        assert account.key == key_from_seed(seed, f"{DERIVATION_PATH}{index}")
        assert account.address == address_of(account.key)


@given(st.lists(st.integers(min_value=0, max_value=12), max_size=20), st.integers(min_value=0, max_value=5))
def test_a_lanes_end_is_the_first_missing_nonce(nonces: list[int], start: int) -> None:
    lane = Lane(start)
    for arrival, nonce in enumerate(nonces):
        if nonce >= start:
            lane.put(Pooled(TRANSACTIONS[nonce], arrival))
    end = start
    while end in nonces:
        end += 1
    assert lane.end == end
    assert lane.cost == sum(TRANSACTIONS[nonce].cost for nonce in range(start, end))


TRANSACTIONS = [decode(bytes.fromhex(ALICE.sign(nonce, value=nonce + 1).raw[2:])) for nonce in range(13)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)), max_size=30), st.data())
def test_the_world_goes_back_exactly(writes: list[tuple[int, int, int]], data: st.DataObject) -> None:
    world = World()
    states = []
    for block, (account, slot, value) in enumerate(writes):
        address = bytes([account]) * 20
        world.begin_transaction()
        world.write(world.balances, address, value)
        mark = world.snapshot()
        world.set_slot(address, slot, value + 1)
        if value % 2:
            world.revert(mark)
        world.seal(block)
        states.append(_picture(world))
    if not states:
        return
    target = data.draw(st.integers(0, len(states) - 1))
    with world.rewound(target):
        assert _picture(world) == states[target]
    assert _picture(world) == states[-1]
    for account in range(4):
        address = bytes([account]) * 20
        assert (world.balances.at(address, target) or 0) == states[target][0].get(address, 0)
    while world.layers[-1].block > target:
        world.unseal()
    assert _picture(world) == states[target]


def _picture(world: World) -> tuple[dict[bytes, int], dict[tuple[bytes, int], int]]:
    balances = {key: value for key, value in world.balances.items() if value}
    slots = {
        (address, slot): value for address, column in world.storages.items() for slot, value in column.items() if value
    }
    return balances, slots
