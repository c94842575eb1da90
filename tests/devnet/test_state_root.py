"""The state root of every block is that of an independent trie over the same accounts, also after going back."""

import rlp
from eth_hash.auto import keccak
from trie import HexaryTrie

from devnet.evm.world import World
from devnet.node import Node
from devnet.settings import Settings
from tests.devnet.scenario import blocks


def independent_root(world: World) -> bytes:
    accounts = HexaryTrie({})
    for address in {*world.balances, *world.nonces, *world.codes}:
        balance, nonce, code = world.balance(address), world.nonce(address), world.code(address)
        if not (balance or nonce or code):
            continue
        storage = HexaryTrie({})
        for slot, value in world.storages.get(address, {}).items():
            if value:
                storage[keccak(slot.to_bytes(32, "big"))] = rlp.encode(value)
        accounts[keccak(address)] = rlp.encode([nonce, balance, storage.root_hash, keccak(code)])
    return bytes(accounts.root_hash)


def test_roots_are_those_of_an_independent_trie() -> None:
    node = Node(Settings(automine=False, timestamp=1_700_000_000))
    seen = [node.chain.head.header.state_root]
    assert seen[0] == independent_root(node.world)
    for transactions in blocks():
        for signed in transactions:
            node.submit(bytes.fromhex(signed.raw[2:]))
        node.miner.mine()
        seen.append(node.chain.head.header.state_root)
        assert seen[-1] == independent_root(node.world)
    assert len(set(seen)) == len(seen)  # an empty block leaves its parent's hash in the state (EIP-2935)
    node.rollback(2)
    node.amend(node.world.balances, b"\x99" * 20, 5)
    node.miner.mine(use_pool=False)
    assert node.chain.head.header.state_root == independent_root(node.world)
    node.amend(node.world.balances, b"\x99" * 20, 0)
    node.miner.mine(use_pool=False)
    assert node.chain.head.header.state_root == independent_root(node.world)
    node.miner.mine()
    assert len(node.chain.head.receipts) == len(blocks()[2])
    assert node.chain.head.header.state_root == independent_root(node.world)
