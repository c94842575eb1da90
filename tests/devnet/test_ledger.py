"""The ledger as an oracle: every raw transaction with its story, and what a sender must never have done."""

from collections.abc import Callable
from typing import Any

import pytest

from devnet.codec.keccak import keccak
from devnet.ledger import Event
from devnet.node import Node
from devnet.settings import Settings
from tests.devnet.sending import Connection, ask, call
from tests.devnet.wallet import ALICE, BOB, GWEI, Signed
from tests.support.devnet import Devnet, RpcFailure

SEND = "eth_sendRawTransaction"
BUMPED: dict[str, Any] = {"maxFeePerGas": 12 * GWEI, "maxPriorityFeePerGas": 2 * GWEI}


@pytest.fixture
def rows(devnet: Devnet) -> Callable[[], list[dict[str, Any]]]:
    """The submissions of this test."""
    since = len(devnet.rpc("devnet_submissions"))
    return lambda: list(devnet.rpc("devnet_submissions", {"since": since}))


@pytest.fixture
def judged(devnet: Devnet) -> Callable[..., dict[str, Any]]:
    """The verdict on this test's submissions."""
    since = len(devnet.rpc("devnet_submissions"))
    return lambda **terms: dict(devnet.rpc("devnet_invariants", {"since": since, **terms}))


def send(devnet: Devnet, signed: Signed, **headers: str) -> Any:
    return ask(devnet, call(SEND, signed.raw), **headers).json


def kinds(findings: list[dict[str, Any]]) -> list[str]:
    return [item["kind"] for item in findings]


def test_a_row_tells_how_a_transaction_came_and_what_became_of_it(
    devnet: Devnet, rows: Callable[[], list[Any]]
) -> None:
    first, second = ALICE.sign(0, value=77), ALICE.sign(0, value=77, **BUMPED)
    with Connection(devnet) as connection:
        connection.ask(call(SEND, first.raw), X_Fence="3")
        connection.ask(call(SEND, first.raw), X_Fence="3")
        connection.ask(call(SEND, second.raw))
    devnet.rpc("evm_mine")
    old = devnet.rpc("eth_getBlockByNumber", "latest", False)["hash"]
    devnet.rpc("anvil_rollback", 1)
    sent, again, bumped = rows()
    assert [row["resend"] for row in (sent, again, bumped)] == [0, 1, 0]
    assert [row["fence"] for row in (sent, again, bumped)] == [3, 3, None]
    assert sent["connection"] == bumped["connection"] is not None
    assert (sent["replacedBy"], sent["evicted"], sent["fault"], sent["author"]) == (second.hash, None, None, "client")
    assert (bumped["minedBlock"], bumped["reorgedFrom"]) == (None, [old])
    devnet.rpc("devnet_evict", {"hash": second.hash})
    assert rows()[2]["evicted"] == "evicted"


def test_a_sender_that_resends_and_bumps_is_in_order(devnet: Devnet, judged: Callable[..., dict[str, Any]]) -> None:
    for signed in (ALICE.sign(0), ALICE.sign(0), ALICE.sign(0, **BUMPED), ALICE.sign(1), ALICE.sign(0)):
        send(devnet, signed)
    verdict = judged()
    assert (verdict["ok"], verdict["violations"], verdict["resends"]) == (True, [], 2)
    assert kinds(verdict["notes"]) == ["replacement"]
    assert [row["hash"] for row in verdict["notes"][0]["evidence"]] == [
        ALICE.sign(0).hash,
        ALICE.sign(0, **BUMPED).hash,
    ]


def test_a_cancellation_is_noted_and_no_violation(devnet: Devnet, judged: Callable[..., dict[str, Any]]) -> None:
    send(devnet, ALICE.sign(0))
    send(devnet, ALICE.sign(0, to=ALICE.address, value=0, **BUMPED))
    assert (judged()["ok"], kinds(judged()["notes"])) == (True, ["cancellation"])


def test_two_intents_on_one_nonce_are_a_violation_with_both_as_evidence(
    devnet: Devnet, judged: Callable[..., dict[str, Any]]
) -> None:
    first, second = ALICE.sign(0), ALICE.sign(0, value=2)
    send(devnet, first)
    assert send(devnet, second)["error"]["message"] == "replacement transaction underpriced"
    verdict = judged()
    assert verdict["ok"] is False
    (violation,) = verdict["violations"]
    assert (violation["kind"], violation["sender"], violation["nonce"]) == ("nonce_reuse", ALICE.address, "0x0")
    assert [row["hash"] for row in violation["evidence"]] == [first.hash, second.hash]
    assert judged(sender=BOB.address)["ok"] is True


def test_after_a_clear_refusal_the_nonce_is_free(devnet: Devnet, judged: Callable[..., dict[str, Any]]) -> None:
    assert "error" in send(devnet, ALICE.sign(0, gas=20_000))
    send(devnet, ALICE.sign(0, value=2))
    assert judged()["ok"] is True


@pytest.mark.parametrize("kind", ["drop_before", "drop_after", "http", "lie_accept"])
def test_what_a_fault_swallowed_still_binds_its_sender(
    devnet: Devnet, judged: Callable[..., dict[str, Any]], kind: str
) -> None:
    devnet.rpc("devnet_fault", {"kind": kind, "times": 1, "match": {"method": SEND}})
    ask(devnet, call(SEND, ALICE.sign(0).raw))
    send(devnet, ALICE.sign(0, value=2))
    assert kinds(judged()["violations"]) == ["nonce_reuse"]


def test_a_refusal_nobody_heard_still_binds_its_sender(devnet: Devnet, judged: Callable[..., dict[str, Any]]) -> None:
    devnet.rpc("devnet_fault", {"kind": "drop_after", "times": 1, "match": {"method": SEND}})
    ask(devnet, call(SEND, ALICE.sign(0, gas=20_000).raw))
    send(devnet, ALICE.sign(0, value=2))
    assert kinds(judged()["violations"]) == ["nonce_reuse"]


def test_a_gap_names_the_missing_nonces(devnet: Devnet, judged: Callable[..., dict[str, Any]]) -> None:
    for nonce in (0, 3, 5):
        send(devnet, ALICE.sign(nonce))
    (violation,) = judged()["violations"]
    assert (violation["kind"], violation["nonce"]) == ("gap", "0x1")
    assert violation["text"] == "2 transactions wait behind missing nonces 1, 2, 4"
    assert [row["nonce"] for row in violation["evidence"]] == ["0x3", "0x5"]
    for nonce in (1, 2, 4):
        send(devnet, ALICE.sign(nonce))
    assert judged()["ok"] is True


def test_sending_with_a_lower_fence_than_seen_is_a_violation(
    devnet: Devnet, judged: Callable[..., dict[str, Any]]
) -> None:
    for nonce, fence in enumerate(("4", "5", "5", "4")):
        send(devnet, ALICE.sign(nonce), X_Fence=fence)
    send(devnet, BOB.sign(0), X_Fence="1")
    send(devnet, ALICE.sign(4))
    (violation,) = judged()["violations"]
    assert (violation["kind"], violation["nonce"]) == ("stale_fence", "0x3")
    assert [row["fence"] for row in violation["evidence"]] == [5, 4]


def signed_anew(signed: Signed) -> Signed:
    """The same payload with another good signature, as a signer makes one that draws its nonces (no RFC 6979)."""
    import rlp
    from eth_account import Account
    from eth_keys.backends.native.jacobian import fast_multiply
    from eth_keys.constants import SECPK1_G, SECPK1_N

    fields = rlp.decode(bytes.fromhex(signed.raw[4:]))
    digest = int.from_bytes(keccak(b"\x02" + rlp.encode(fields[:9])), "big")
    secret, k = int(ALICE.key, 16), 12345
    x, y = fast_multiply(SECPK1_G, k)
    r = x % SECPK1_N
    s = pow(k, -1, SECPK1_N) * (digest + r * secret) % SECPK1_N
    parity = y % 2
    if s > SECPK1_N // 2:
        s, parity = SECPK1_N - s, 1 - parity
    parts = [number.to_bytes((number.bit_length() + 7) // 8, "big") for number in (parity, r, s)]
    raw = "0x02" + rlp.encode([*fields[:9], *parts]).hex()
    assert Account.recover_transaction(raw).lower() == ALICE.address
    return Signed(raw, "")


def test_the_same_payload_in_other_bytes_is_a_violation(devnet: Devnet, judged: Callable[..., dict[str, Any]]) -> None:
    signed = ALICE.sign(0)
    send(devnet, signed)
    assert "error" in send(devnet, signed_anew(signed))
    verdict = judged()
    assert kinds(verdict["violations"]) == ["resend_differs"]
    assert verdict["violations"][0]["evidence"][0]["hash"] == signed.hash


def test_the_same_intent_on_two_nonces_is_a_suspect_when_asked(
    devnet: Devnet, judged: Callable[..., dict[str, Any]]
) -> None:
    for signed in (ALICE.sign(0), ALICE.sign(1), ALICE.sign(2, value=2)):
        send(devnet, signed)
    devnet.rpc("evm_mine")
    assert "suspects" not in judged()
    verdict = judged(intents=True)
    assert verdict["ok"] is True
    (suspect,) = verdict["suspects"]
    assert [row["nonce"] for row in suspect["evidence"]] == ["0x0", "0x1"]


def test_faults_evictions_reorgs_and_restarts_leave_nothing_unexplained(
    devnet: Devnet, judged: Callable[..., dict[str, Any]]
) -> None:
    for nonce in range(6):
        send(devnet, ALICE.sign(nonce))
        send(devnet, BOB.sign(nonce))
        if nonce % 2:
            devnet.rpc("evm_mine")
    devnet.rpc("devnet_reorg", {"depth": 2, "newDepth": 1, "keep": [ALICE.sign(2).hash], "requeue": False})
    devnet.rpc("anvil_rollback", 2)
    devnet.rpc("devnet_evict", {"sender": BOB.address})
    devnet.rpc("anvil_dropAllTransactions")
    assert kinds(judged()["violations"]) == []


def test_a_transaction_gone_without_a_reason_is_told() -> None:
    from devnet.invariants import judge

    node = Node(Settings(automine=False, timestamp=1_700_000_000))
    tx = node.submit(bytes.fromhex(ALICE.sign(0).raw[2:]))
    assert judge(node).violations == []
    node.pool.on_leave = lambda _tx, _kind, _by: None
    node.pool.drop(tx.hash)
    (finding,) = judge(node).violations
    assert (finding.kind, finding.nonce) == ("vanished", 0)
    node.ledger.note(tx.hash, Event("dropped", 0, bytes(32), seen=1))
    assert judge(node).violations == []


@pytest.mark.parametrize("method", ["devnet_submissions", "devnet_invariants"])
def test_unknown_terms_are_refused(devnet: Devnet, method: str) -> None:
    with pytest.raises(RpcFailure, match="has no field 'from': it takes") as caught:
        devnet.rpc(method, {"from": ALICE.address})
    assert caught.value.code == -32602
