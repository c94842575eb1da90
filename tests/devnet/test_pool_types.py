"""Blob and set-code transactions in the pool: what geth allows one sender of each, in geth's words."""

from typing import Any

import pytest
import rlp
from eth_account import Account

from devnet.errors import RpcError
from devnet.node import Node
from devnet.settings import Settings
from devnet.txpool.profiles import PROFILES, profile_with
from tests.devnet.blobs import sign as sign_blobs
from tests.devnet.wallet import ALICE, BOB, CAROL, GWEI, Signed, Wallet

TARGET = "0x" + "7a" * 20


@pytest.fixture
def node() -> Node:
    return Node(Settings(automine=False, accounts=3))


def address(wallet: Wallet) -> bytes:
    return bytes.fromhex(wallet.address[2:])


def send(node: Node, signed: Signed) -> bytes:
    return node.submit(bytes.fromhex(signed.raw[2:])).hash


def refusal(node: Node, signed: Signed) -> str:
    with pytest.raises(RpcError) as caught:
        send(node, signed)
    assert caught.value.code == -32000
    return caught.value.message


def delegating(sender: Wallet, nonce: int, *authorities: tuple[Wallet, int], **fields: Any) -> Signed:
    """A type 4 transaction with an authorization of each (authority, its nonce)."""
    authorizations = [
        Account.sign_authorization({"chainId": 31337, "address": TARGET, "nonce": at}, wallet.key)
        for wallet, at in authorities
    ]
    return sender.sign(nonce, **({"type": 4, "authorizationList": authorizations, "gas": 200_000} | fields))


def delegate(node: Node, wallet: Wallet) -> None:
    node.amend(node.world.codes, address(wallet), b"\xef\x01\x00" + bytes.fromhex(TARGET[2:]))


def test_a_blob_transaction_must_have_the_next_nonce(node: Node) -> None:
    assert refusal(node, sign_blobs(ALICE, 2)) == "nonce too high: tx nonce 2, gapped nonce 0"
    send(node, sign_blobs(ALICE, 0))
    send(node, sign_blobs(ALICE, 1))
    assert refusal(node, sign_blobs(ALICE, 3)) == "nonce too high: tx nonce 3, gapped nonce 2"
    assert node.pool.counts() == (2, 0)


def test_a_sender_has_blob_transactions_or_others_but_not_both(node: Node) -> None:
    send(node, sign_blobs(ALICE, 0))
    send(node, BOB.sign(0))
    assert refusal(node, ALICE.sign(1)) == "address already reserved"
    assert refusal(node, ALICE.sign(0, maxFeePerGas=99 * GWEI, maxPriorityFeePerGas=9 * GWEI)) == (
        "address already reserved"
    )
    assert refusal(node, sign_blobs(BOB, 0)) == "address already reserved"
    assert refusal(node, sign_blobs(BOB, 1)) == "nonce too high: tx nonce 1, gapped nonce 0"
    node.miner.mine()
    send(node, ALICE.sign(1))
    send(node, sign_blobs(BOB, 1))


@pytest.mark.parametrize(
    ("cap", "tip", "blob_cap", "complaint"),
    [
        (10, 2, 2, "gas fee cap 10000000000 <= 10000000000 queued"),
        (20, 1, 2, "gas tip cap 1000000000 <= 1000000000 queued"),
        (20, 2, 1, "blob gas fee cap 1000000000 <= 1000000000 queued"),
        (19, 2, 2, "gas fee cap 19000000000 < 10000000000 queued + 100% replacement penalty"),
        (20, 1.5, 2, "gas tip cap 1500000000 < 1000000000 queued + 100% replacement penalty"),
        (20, 2, 1.5, "blob gas fee cap 1500000000 < 1000000000 queued + 100% replacement penalty"),
        (20, 2, 2, None),
    ],
)
def test_a_blob_transaction_is_replaced_at_twice_all_three_fees(
    node: Node, cap: float, tip: float, blob_cap: float, complaint: str | None
) -> None:
    send(node, sign_blobs(ALICE, 0, maxFeePerBlobGas=GWEI))
    fees = {"maxFeePerGas": cap, "maxPriorityFeePerGas": tip, "maxFeePerBlobGas": blob_cap}
    signed = sign_blobs(ALICE, 0, value=2, **{name: int(price * GWEI) for name, price in fees.items()})
    if complaint is None:
        assert send(node, signed) in node.pool.by_hash
    else:
        assert refusal(node, signed) == f"replacement transaction underpriced: new tx {complaint}"


def test_a_sender_may_have_sixteen_blob_transactions(node: Node) -> None:
    for nonce in range(16):
        send(node, sign_blobs(ALICE, nonce))
    assert refusal(node, sign_blobs(ALICE, 16)) == "account limit exceeded: pooled 16 txs"


def test_a_delegated_account_may_have_one_transaction_at_a_time(node: Node) -> None:
    delegate(node, ALICE)
    assert refusal(node, ALICE.sign(1)) == "gapped-nonce tx from delegated accounts"
    send(node, ALICE.sign(0))
    assert refusal(node, ALICE.sign(1)) == "in-flight transaction limit reached for delegated accounts"
    send(node, ALICE.sign(0, maxFeePerGas=20 * GWEI, maxPriorityFeePerGas=2 * GWEI))
    node.miner.mine()
    send(node, ALICE.sign(1))


def test_an_account_about_to_be_delegated_may_have_one_transaction_too(node: Node) -> None:
    pending = send(node, delegating(BOB, 0, (ALICE, 0)))
    assert refusal(node, ALICE.sign(1)) == "gapped-nonce tx from delegated accounts"
    send(node, ALICE.sign(0))
    assert refusal(node, ALICE.sign(1)) == "in-flight transaction limit reached for delegated accounts"
    assert node.pool.drop(pending)
    send(node, ALICE.sign(1))


def test_an_authority_with_several_transactions_or_blobs_waiting_is_reserved(node: Node) -> None:
    send(node, ALICE.sign(0))
    send(node, delegating(CAROL, 0, (ALICE, 0)))
    send(node, BOB.sign(0))
    send(node, BOB.sign(5))
    assert refusal(node, delegating(CAROL, 1, (BOB, 0))) == "authority already reserved"
    other = Node(Settings(automine=False, accounts=3))
    send(other, sign_blobs(ALICE, 0))
    assert refusal(other, delegating(CAROL, 0, (ALICE, 0))) == "authority already reserved"


def test_a_set_code_transaction_names_an_authority_and_pays_for_each(node: Node) -> None:
    fields = list(rlp.decode(bytes.fromhex(delegating(ALICE, 0, (BOB, 0)).raw[4:])))
    fields[9] = []
    nobody = Signed("0x04" + rlp.encode(fields).hex(), "")
    assert refusal(node, nobody) == "set code tx must have at least one authorization tuple"
    assert refusal(node, delegating(ALICE, 0, (BOB, 0), (CAROL, 0), gas=70_999)) == (
        "intrinsic gas too low: gas 70999, minimum needed 71000"
    )


def test_a_nonce_used_up_by_an_authorization_lets_the_next_one_go_on() -> None:
    node = Node(Settings(automine=False, accounts=3, profile=PROFILES["besu"]))
    overtaken, waiting = send(node, BOB.sign(0)), send(node, BOB.sign(1, value=2))
    tip = {"maxPriorityFeePerGas": 9 * GWEI}
    send(node, delegating(ALICE, 0, (BOB, 0), **tip))
    node.miner.orders.limit = 1
    node.miner.mine()
    assert node.world.nonce(address(BOB)) == 1
    assert [event.kind for event in node.ledger.events[overtaken]] == ["overtaken"]
    assert node.pool.counts() == (1, 0)
    node.miner.mine()
    assert waiting in node.chain.included


def test_a_contract_sends_only_when_impersonated(node: Node) -> None:
    node.amend(node.world.codes, address(ALICE), b"\x00")
    sender = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert refusal(node, ALICE.sign(0)) == f"sender not an eoa: address {sender}, len(code): 1"
    delegate(node, ALICE)
    waiting = send(node, ALICE.sign(0))
    node.amend(node.world.codes, address(ALICE), b"\x00")
    node.miner.mine()
    assert waiting in node.pool.by_hash
    delegate(node, ALICE)
    node.miner.mine()
    assert waiting in node.chain.included


def test_blob_transactions_take_no_room_from_the_others_and_are_not_pushed_out_by_them() -> None:
    profile = profile_with("geth", {"globalslots": 1, "globalqueue": 1})
    node = Node(Settings(automine=False, accounts=3, profile=profile))
    blobs = send(node, sign_blobs(ALICE, 0))
    cheapest = send(node, BOB.sign(5))
    send(node, CAROL.sign(5, maxFeePerGas=11 * GWEI))
    assert node.pool.counts() == (1, 1)
    assert blobs in node.pool.by_hash
    assert node.ledger.events[cheapest][-1].kind == "evicted: queued"
    with pytest.raises(RpcError, match="address already reserved"):
        send(node, ALICE.sign(1, maxFeePerGas=99 * GWEI, maxPriorityFeePerGas=9 * GWEI))
    assert node.pool.counts() == (1, 1)
