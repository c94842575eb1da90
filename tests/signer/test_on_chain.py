"""From a request through journal, key and client to a block: on our devnet, and on anvil where it is installed."""

from collections.abc import Iterator

import pytest

from chain.client import ChainClient
from chain.fees import Fees, bump, cancel_fees, quote
from chain.submission import Verdict
from chain.types import Depth, Tag
from signer.policy import Policy
from signer.request import Kind, Signed
from signer.service import Signer
from tests.signer.conftest import CHAIN_ID, GWEI, LocalKey, World
from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import NodeProcess, start_devnet

FUNDED = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
NODES = ["devnet", pytest.param("anvil", marks=pytest.mark.anvil)]


@pytest.fixture(params=NODES)
def node(request) -> Iterator[NodeProcess]:
    if request.param == "anvil":
        binary, why = anvil_binary()
        if binary is None:
            pytest.skip(why)
        made: NodeProcess = start_anvil("--no-mining")
    else:
        made = start_devnet("--no-mining")
    with made:
        yield made


@pytest.fixture
def funded(world: World) -> World:
    key = LocalKey(FUNDED)
    account = (CHAIN_ID, key.address)
    return World(world.engine, key, Signer(world.engine, {account: key}, {account: Policy()}), Policy())


def test_batches_are_signed_sent_mined_and_final(node: NodeProcess, funded: World) -> None:
    chain = ChainClient("dev", CHAIN_ID, [node.url], Depth(2))
    genesis = chain.check_identity()
    view = chain.view(funded.address)
    assert (view.head.number, view.nonce_latest, view.nonce_pending, view.nonce_final) == (0, 0, 0, 0)
    assert view.final is not None
    assert view.final.hash == genesis
    assert view.balance_wei == 10_000 * 10**18
    fees = quote(view.head.base_fee_wei, view.tip_wei)
    offered = {"max_fee_wei": fees.max_fee_wei, "tip_wei": fees.tip_wei}
    requests = [funded.request(nonce=n, execution=f"e/{n}", **offered) for n in range(120)]
    raws = [answer.raw for answer in funded.signer.sign(funded.fence(), requests)]
    hashes = [answer.hash for answer in funded.signer.sign(funded.fence(), requests)]
    posts = chain.posts
    (answers,) = chain.send(raws).values()
    assert {answer.verdict for answer in answers} == {Verdict.ACCEPTED}
    assert chain.posts == posts + 2
    (again,) = chain.send(raws).values()
    assert {answer.verdict for answer in again} == {Verdict.ALREADY_KNOWN}
    assert chain.view(funded.address).nonce_pending == 120
    assert chain.receipts(hashes) == [None] * 120
    for _ in range(4):
        node.rpc("evm_mine")
    receipts = chain.receipts(hashes)
    assert all(receipt is not None and receipt.status == 1 and receipt.gas_used == 21_000 for receipt in receipts)
    blocks = {receipt.block for receipt in receipts if receipt is not None}
    assert chain.canonical_hashes([block.number for block in blocks]) == {b.number: b.hash for b in blocks}
    assert chain.canonical_hashes([99]) == {99: None}
    (late,) = chain.send(raws[:1]).values()
    assert late[0].verdict is Verdict.NONCE_TOO_LOW
    view = chain.view(funded.address)
    assert view.final is not None
    assert (view.final.number, view.nonce_latest) == (view.head.number - 2, 120)
    found = chain.transaction(hashes[0])
    assert found is not None
    assert int(found["nonce"], 16) == 0
    assert chain.transaction(bytes(32)) is None
    assert chain.code(funded.address) == b""
    chain.close()


def test_a_bump_and_a_cancel_replace_in_the_pool(node: NodeProcess, funded: World) -> None:
    chain = ChainClient("dev", CHAIN_ID, [node.url], Tag("finalized"))

    def send(kind: Kind, fees: Fees) -> tuple[Signed, Verdict]:
        request = funded.request(kind, max_fee_wei=fees.max_fee_wei, tip_wei=fees.tip_wei)
        (answer,) = funded.signer.sign(funded.fence(), [request])
        assert isinstance(answer, Signed)
        ((given,),) = chain.send([answer.raw]).values()
        return answer, given.verdict

    offer = quote(GWEI, GWEI)
    _, verdict = send(Kind.SEND, offer)
    assert verdict is Verdict.ACCEPTED
    raised = bump(offer, offer)
    assert raised is not None
    _, verdict = send(Kind.BUMP, raised)
    assert verdict is Verdict.ACCEPTED
    last = cancel_fees(raised, offer)
    assert last is not None
    cancel, verdict = send(Kind.CANCEL, last)
    assert verdict is Verdict.ACCEPTED
    node.rpc("evm_mine")
    (receipt,) = chain.receipts([cancel.hash])
    assert receipt is not None
    assert receipt.status == 1
    assert chain.view(funded.address).nonce_latest == 1
    chain.close()


def test_a_trial_run_tells_gas_or_a_revert(node: NodeProcess, funded: World) -> None:
    chain = ChainClient("dev", CHAIN_ID, [node.url], Depth(0))
    node.rpc("anvil_setCode", "0x" + "99" * 20, "0x60006000fd")
    me, plain, reverting = funded.address, b"\x11" * 20, b"\x99" * 20
    calls = [(me, plain, 1, b"", ()), (me, reverting, 0, b"", ()), (me, None, 0, b"\x00", ())]
    sent, reverted, created = chain.estimate(calls)
    assert sent.gas == 21_000
    assert (reverted.gas, reverted.reverted) == (None, True)
    assert created.gas is not None
    assert created.gas > 53_000
    chain.close()
