"""Each client's rules and words as data: what it refuses and how, and what our classifier makes of every text."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from chain.submission import Verdict, classify
from devnet.errors import Rejected, RpcError
from devnet.node import Node
from devnet.settings import Settings
from devnet.txpool.profiles import PROFILES, Profile, profile_named
from devnet.txpool.texts import GETH
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI, Wallet
from tests.support.devnet import Devnet, RpcFailure, start_devnet

FEES = {"maxFeePerGas": 40 * GWEI, "maxPriorityFeePerGas": 30 * GWEI}
COST = 21_000 * 40 * GWEI + 1
POOR = Wallet("0x" + "11" * 32)
NEXT = 3


def raw(wallet: Wallet, nonce: int, **fields: object) -> bytes:
    fees = {} if "gasPrice" in fields else FEES
    return bytes.fromhex(wallet.sign(nonce, **(fees | fields)).raw[2:])


def number(wallet: Wallet) -> bytes:
    return bytes.fromhex(wallet.address[2:])


def same_bytes(node: Node) -> bytes:
    node.submit(raw(ALICE, NEXT))
    return raw(ALICE, NEXT)


def replacing(**fields: object) -> Callable[[Node], bytes]:
    def make(node: Node) -> bytes:
        node.submit(raw(ALICE, NEXT))
        return raw(ALICE, NEXT, value=2, **fields)

    return make


def second_beyond_funds(node: Node) -> bytes:
    node.amend(node.world.balances, number(BOB), COST + 5)
    node.submit(raw(BOB, 0))
    return raw(BOB, 1)


def above_the_blocks_gas(node: Node) -> bytes:
    node.pool.rules.gas_limit = 100_000
    return raw(ALICE, NEXT, gas=100_001)


def from_a_contract(node: Node) -> bytes:
    node.amend(node.world.codes, number(BOB), b"\x00")
    return raw(BOB, 0)


Case = Callable[[Node], bytes]
CASES: dict[str, Case] = {
    "same bytes": same_bytes,
    "used nonce": lambda _: raw(ALICE, NEXT - 1),
    "same price": replacing(),
    "a wei more": replacing(maxFeePerGas=FEES["maxFeePerGas"] + 1),
    "a tenth more": replacing(maxFeePerGas=44 * GWEI, maxPriorityFeePerGas=33 * GWEI),
    "poor": lambda _: raw(POOR, 0),
    "second beyond funds": second_beyond_funds,
    "gas": lambda _: raw(ALICE, NEXT, gas=20_999),
    "gas for data": lambda _: raw(ALICE, NEXT, data="0x" + "ff" * 100),
    "block's gas": above_the_blocks_gas,
    "gas cap": lambda _: raw(ALICE, NEXT, gas=2**24 + 1),
    "tip above cap": lambda _: raw(ALICE, NEXT, maxPriorityFeePerGas=41 * GWEI),
    "other chain": lambda _: raw(ALICE, NEXT, chainId=1),
    "other chain, legacy": lambda _: raw(ALICE, NEXT, chainId=1, gasPrice=40 * GWEI),
    "no chain": lambda _: raw(ALICE, NEXT, chainId=None, gasPrice=40 * GWEI),
    "garbage": lambda _: b"\x02\xc0",
    "nothing": lambda _: b"",
    "above one ether": lambda _: raw(ALICE, NEXT, maxFeePerGas=50_000 * GWEI),
    "128 KiB": lambda _: raw(ALICE, NEXT, data="0x" + "00" * 131_072, gas=2_000_000),
    "initcode": lambda _: raw(ALICE, NEXT, to=None, data="0x" + "00" * 49_153, gas=2_000_000),
    "below the base fee": lambda _: raw(ALICE, NEXT, maxFeePerGas=GWEI // 2, maxPriorityFeePerGas=GWEI // 2),
    "no tip": lambda _: raw(ALICE, NEXT, maxPriorityFeePerGas=0),
    "gap": lambda _: raw(ALICE, NEXT + 4),
    "far gap": lambda _: raw(ALICE, NEXT + 201),
    "contract": from_a_contract,
}

Word = tuple[int, str] | None
FUNDS = "insufficient funds for gas * price + value"
POOR_GETH = f"{FUNDS}: balance 0, tx cost {COST}, overshot {COST}"
ALICE_TEXT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
POOR_TEXT = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"
BOB_TEXT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
ANVIL_FUNDS = (-32003, "Insufficient funds for gas * price + value")
BESU_FUNDS = (-32004, "Upfront cost exceeds account balance")

WORDS: dict[str, dict[str, Word]] = {
    "geth": {
        "same bytes": (-32000, "already known"),
        "used nonce": (-32000, "nonce too low: next nonce 3, tx nonce 2"),
        "same price": (-32000, "replacement transaction underpriced"),
        "a wei more": (-32000, "replacement transaction underpriced"),
        "a tenth more": None,
        "poor": (-32000, POOR_GETH),
        "second beyond funds": (
            -32000,
            f"{FUNDS}: balance {COST + 5}, queued cost {COST}, tx cost {COST}, overshot {COST - 5}",
        ),
        "gas": (-32000, "intrinsic gas too low: gas 20999, minimum needed 21000"),
        "gas for data": (-32000, "intrinsic gas too low: gas 21000, minimum needed 22600"),
        "block's gas": (-32000, "exceeds block gas limit"),
        "gas cap": (-32000, "transaction gas limit too high (cap: 16777216, tx: 16777217)"),
        "tip above cap": (-32000, "max priority fee per gas higher than max fee per gas"),
        "other chain": (-32000, "invalid sender: invalid chain id for signer: have 1 want 31337"),
        "other chain, legacy": (-32000, "invalid sender: invalid chain id for signer: have 1 want 31337"),
        "no chain": (-32000, "only replay-protected (EIP-155) transactions allowed over RPC"),
        "garbage": (-32000, "rlp: too few elements for types.DynamicFeeTx"),
        "nothing": (-32000, "typed transaction too short"),
        "above one ether": (-32000, "tx fee (1.05 ether) exceeds the configured cap (1.00 ether)"),
        "128 KiB": (-32000, "oversized data: transaction size 131191, limit 131072"),
        "initcode": (-32000, "max initcode size exceeded: code size 49153 limit 49152"),
        "below the base fee": None,
        "no tip": (-32000, "transaction gas price below minimum: gas tip cap 0, minimum needed 1"),
        "gap": None,
        "far gap": None,
        "contract": (-32000, f"sender not an eoa: address {BOB_TEXT}, len(code): 1"),
    },
    "anvil": {
        "same bytes": (-32003, "transaction already imported"),
        "used nonce": (-32003, "nonce too low"),
        "same price": (-32003, "replacement transaction underpriced"),
        "a wei more": None,
        "a tenth more": None,
        "poor": ANVIL_FUNDS,
        "second beyond funds": None,
        "gas": (-32000, "intrinsic gas too low"),
        "gas for data": (-32000, "intrinsic gas too low"),
        "block's gas": (-32000, "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit"),
        "gas cap": None,
        "tip above cap": (-32003, "max priority fee per gas higher than max fee per gas"),
        "other chain": (-32003, "invalid chain id for signer"),
        "other chain, legacy": (-32003, "invalid chain id for signer"),
        "no chain": None,
        "garbage": (-32602, "Failed to decode transaction"),
        "nothing": (-32602, "Empty transaction data"),
        "above one ether": None,
        "128 KiB": None,
        "initcode": (-32003, "max initcode size exceeded"),
        "below the base fee": (-32003, "max fee per gas less than block base fee"),
        "no tip": None,
        "gap": None,
        "far gap": None,
        "contract": None,
    },
    "besu": {
        "same bytes": (-32000, "Known transaction"),
        "used nonce": (-32001, "Nonce too low"),
        "same price": (-32000, "Replacement transaction underpriced"),
        "a wei more": (-32000, "Replacement transaction underpriced"),
        "a tenth more": None,
        "poor": BESU_FUNDS,
        "second beyond funds": None,
        "gas": (-32003, "Intrinsic gas exceeds gas limit"),
        "gas for data": (-32003, "Intrinsic gas exceeds gas limit"),
        "block's gas": (-32005, "Transaction gas limit exceeds block gas limit"),
        "tip above cap": (-32000, "Max priority fee per gas exceeds max fee per gas"),
        "other chain": (-32000, "Wrong chainId"),
        "no chain": None,
        "garbage": (-32602, "Invalid transaction params (missing or incorrect)"),
        "above one ether": (-32000, "Transaction fee cap exceeded"),
        "below the base fee": None,
        "no tip": None,
        "gap": None,
        "far gap": (-32000, "Transaction nonce is too distant from current sender nonce"),
    },
    "nethermind": {
        "same bytes": (-32000, "already known"),
        "used nonce": (-32000, "nonce too low, Current nonce: 3, nonce of rejected tx: 2"),
        "same price": (-32000, "replacement transaction underpriced"),
        "poor": (-32000, f"{FUNDS}, Account balance: 0, cumulative cost: {COST}"),
        "second beyond funds": (-32000, f"{FUNDS}, Account balance: {COST + 5}, cumulative cost: {2 * COST}"),
        "gas": (-32000, "transaction invalid, intrinsic gas too low"),
        "block's gas": (-32000, "gas limit reached, Gas limit: 100000, gas limit of rejected tx: 100001"),
        "other chain": (-32000, "transaction invalid, InvalidTxChainId: Expected 31337, got 1."),
        "garbage": (-32010, "Invalid RLP."),
        "above one ether": None,
        "below the base fee": None,
        "gap": None,
    },
    "nethermind-old": {
        "same bytes": (-32010, "AlreadyKnown"),
        "used nonce": (-32010, "OldNonce, Current nonce: 3, nonce of rejected tx: 2"),
        "same price": (-32010, "ReplacementNotAllowed"),
        "poor": (-32010, f"InsufficientFunds, Account balance: 0, cumulative cost: {COST}"),
        "other chain": (-32010, "Invalid, InvalidTxChainId: Expected 31337, got 1."),
        "contract": (-32010, "SenderIsContract"),
    },
    "erigon": {
        "same bytes": (-32000, "ALREADY_EXISTS: already known"),
        "used nonce": (-32000, "INTERNAL_ERROR: nonce too low"),
        "same price": (-32000, "INTERNAL_ERROR: could not replace existing tx"),
        "poor": (-32000, "INTERNAL_ERROR: insufficient funds"),
        "second beyond funds": None,
        "gas": (-32000, "INTERNAL_ERROR: IntrinsicGas"),
        "block's gas": (-32000, "INTERNAL_ERROR: gas limit is too high"),
        "other chain": (-32000, "invalid chain id, expected: 31337 got: 1"),
        "no chain": (-32000, "only replay-protected (EIP-155) transactions allowed over RPC"),
        "below the base fee": None,
        "gap": None,
    },
    "reth": {
        "same bytes": (-32000, "already known"),
        "used nonce": (-32000, "nonce too low: next nonce 3, tx nonce 2"),
        "same price": (-32000, "replacement transaction underpriced"),
        "poor": (-32003, f"{FUNDS}: have 0 want {COST}"),
        "second beyond funds": None,
        "gas": (-32000, "intrinsic gas too low"),
        "block's gas": (-32000, "exceeds block gas limit"),
        "gas cap": (-32003, "gas limit too high"),
        "tip above cap": (-32003, "max priority fee per gas higher than max fee per gas"),
        "other chain": (-32000, "invalid chain ID"),
        "no chain": None,
        "garbage": (-32602, "failed to decode signed transaction"),
        "nothing": (-32602, "empty transaction data"),
        "above one ether": (
            -32000,
            f"tx fee ({21_000 * 50_000 * GWEI} wei) exceeds the configured cap ({ETHER} wei)",
        ),
        "128 KiB": (-32000, "oversized data: transaction size 131191, limit 131072"),
        "below the base fee": None,
        "no tip": None,
        "gap": None,
        "contract": (-32003, "sender is not an EOA"),
    },
    "nitro": {
        "same bytes": (-32000, f"nonce too low: address {ALICE_TEXT}, tx: 3 state: 4"),
        "used nonce": (-32000, f"nonce too low: address {ALICE_TEXT}, tx: 2 state: 3"),
        "a tenth more": (-32000, f"nonce too low: address {ALICE_TEXT}, tx: 3 state: 4"),
        "poor": (-32000, f"{FUNDS}: address {POOR_TEXT} have 0 want {COST}"),
        "gas": (-32000, "intrinsic gas too low: have 20999, want 21000"),
        "below the base fee": (
            -32000,
            f"max fee per gas less than block base fee: address {ALICE_TEXT}, maxFeePerGas: 500000000, baseFee: {GWEI}",
        ),
        "no tip": None,
        "gap": (-32000, f"nonce too high: address {ALICE_TEXT}, tx: 7 state: 3"),
    },
    "bor": {
        "same bytes": (-32000, "already known"),
        "below the base fee": (
            -32000,
            "transaction gas price below minimum: gas tip cap 500000000, minimum needed 25000000000",
        ),
        "no tip": (-32000, "transaction gas price below minimum: gas tip cap 0, minimum needed 25000000000"),
        "gap": None,
    },
}


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, words in WORDS.items() for case in words])
def test_each_client_refuses_in_its_own_words(name: str, case: str) -> None:
    node = Node(Settings(automine=False, accounts=2, profile=PROFILES[name]))
    node.amend(node.world.nonces, number(ALICE), NEXT)
    submission = CASES[case](node)
    expected = WORDS[name][case]
    if expected is None:
        assert node.submit(submission).hash in node.pool.by_hash
    else:
        with pytest.raises(RpcError) as caught:
            node.submit(submission)
        assert (caught.value.code, caught.value.message) == expected
        assert node.ledger.submissions[-1].verdict == "rejected"


def test_every_client_is_tried() -> None:
    assert set(WORDS) == set(PROFILES)
    assert set(WORDS["geth"]) == set(CASES)


# Facts for any template; names of one fact in several templates have the same type.
FACTS: dict[str, object] = {
    **dict.fromkeys(("nonce", "next", "gap", "gas", "needed", "size", "limit", "have", "want", "used"), 7),
    **dict.fromkeys(("fee", "cap", "tip", "base_fee", "balance", "cost", "queued", "bump", "total", "overshot"), 10**9),
    **dict.fromkeys(("count", "block_gas"), 6),
    "fee_ether": 2.1,
    "cap_ether": 1.0,
    "sender": ALICE_TEXT,
    "type": 3,
    "fork": "Cancun",
    "new": 1,
    "what": "gas fee cap",
    "relation": "<= 2 queued",
    "text": "rlp: value size exceeds available input length",
}

MEANT: dict[str, Verdict] = {
    reason: verdict
    for verdict, reasons in {
        Verdict.ALREADY_KNOWN: "already_known",
        Verdict.NONCE_TOO_LOW: "nonce_too_low",
        Verdict.REPLACEMENT_UNDERPRICED: "replacement_underpriced blob_replacement_underpriced",
        Verdict.UNDERPRICED: "tip_too_low price_too_low fee_below_base blob_fee_too_low underpriced",
        Verdict.INSUFFICIENT_FUNDS: "insufficient_funds insufficient_funds_queued insufficient_funds_bumped",
        Verdict.REJECTED: """
            undecodable empty fee_cap unprotected type_not_supported oversized initcode tx_gas_cap block_gas_limit
            tip_above_fee_cap wrong_chain invalid_signature nonce_max intrinsic_gas floor_gas sender_not_eoa
            no_authorizations blob_sidecar_missing blob_sidecar_invalid blob_count unknown_account
            contract_creation_without_data
        """,
        # It may do later, or this node may have it by then: not definite.
        Verdict.AMBIGUOUS: """
            nonce_too_high nonce_too_far account_limit delegated_in_flight delegated_gap authority_reserved reserved
            pool_full future_replaces_pending
        """,
    }.items()
    for reason in reasons.split()
}
MEANT_BY: dict[tuple[str, str], Verdict] = {
    ("nitro", "already_known"): Verdict.NONCE_TOO_LOW,  # it has no pool: the bytes were executed
    ("nitro", "replacement_underpriced"): Verdict.NONCE_TOO_LOW,
    ("reth", "underpriced"): Verdict.AMBIGUOUS,
    ("erigon", "underpriced"): Verdict.AMBIGUOUS,
    ("besu", "initcode"): Verdict.AMBIGUOUS,
    ("nethermind", "pool_full"): Verdict.UNDERPRICED,
    ("nethermind-old", "pool_full"): Verdict.UNDERPRICED,
}

# Beginnings of texts the classifier does not read: refusals of blob and set-code transactions, which the product does not
# send. They count as ambiguous, which errs to the safe side.
UNREAD = (
    "total blob gas too high",
    "no items in authorization list",
    "blob sidecar not found",
    "too many blobs in transaction",
    "unknown account",
    "contract creation without any data",
    "no signer available",
    "set code tx must have at least one authorization",
    "missing sidecar in blob transaction",
    "transaction blob limit exceeded",
    "internal_error: eip-7702 transactions",
    "invalid: fork supporting",
    "invalid: max number of blobs",
)


def said(profile: Profile, reason: str) -> RpcError:
    return profile.error(Rejected(reason, **FACTS))


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_classifier_understands_every_text_of_a_client(name: str) -> None:
    profile = PROFILES[name]
    misread = {}
    for reason in profile.texts:
        error = said(profile, reason)
        verdict = classify(error.code, error.message)
        expected = MEANT_BY.get((name, reason), MEANT[reason])
        unread = error.message.lower().startswith(UNREAD)
        if verdict is not (Verdict.AMBIGUOUS if unread else expected):
            misread[error.message] = (verdict, expected)
    assert misread == {}


def test_every_client_has_a_text_for_every_reason() -> None:
    source = Path(__file__).parents[2] / "devnet"
    raised = {
        reason for file in source.rglob("*.py") for reason in re.findall(r'Rejected\(\s*"(\w+)"', file.read_text())
    }
    assert raised <= set(GETH)
    assert set(MEANT) == set(GETH)
    for profile in PROFILES.values():
        assert set(profile.texts) == set(GETH)
        for reason in profile.texts:
            assert said(profile, reason).message


def test_an_unknown_client_is_answered_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="there is no profile parity: choose one of anvil, besu, bor, erigon, geth, "):
        profile_named("parity")


def test_the_client_can_be_changed_at_run_time(devnet: Devnet) -> None:
    signed = ALICE.sign(0)
    devnet.rpc("eth_sendRawTransaction", signed.raw)
    try:
        for name in ("besu", "anvil", "reth"):
            assert devnet.rpc("devnet_setProfile", name) == name
            with pytest.raises(RpcFailure) as caught:
                devnet.rpc("eth_sendRawTransaction", signed.raw)
            assert (caught.value.code, caught.value.message) == (
                PROFILES[name].texts["already_known"][0],
                PROFILES[name].texts["already_known"][1],
            )
        with pytest.raises(RpcFailure, match="there is no profile parity: choose one of anvil, besu") as caught:
            devnet.rpc("devnet_setProfile", "parity")
        assert caught.value.code == -32602
    finally:
        devnet.rpc("devnet_setProfile", "geth")


def test_the_client_can_be_chosen_at_the_start() -> None:
    with start_devnet("--silent", "--no-mining", "--profile", "bor", "--txpool.pricebump", "50") as devnet:
        with pytest.raises(RpcFailure, match="gas tip cap 1000000000, minimum needed 25000000000"):
            devnet.rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
        assert int(devnet.rpc("eth_maxPriorityFeePerGas"), 16) == 25 * GWEI
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(0, **FEES).raw)
        dearer = {"maxFeePerGas": 59 * GWEI, "maxPriorityFeePerGas": 45 * GWEI}
        with pytest.raises(RpcFailure, match="replacement transaction underpriced"):
            devnet.rpc("eth_sendRawTransaction", ALICE.sign(0, **dearer).raw)
        devnet.rpc("eth_sendRawTransaction", ALICE.sign(0, **(dearer | {"maxFeePerGas": 60 * GWEI})).raw)


def test_as_anvil_dropping_takes_the_later_ones_along_and_orphans_vanish() -> None:
    node = Node(Settings(automine=False, accounts=2, profile=PROFILES["anvil"]))
    txs = [node.submit(raw(ALICE, nonce)) for nonce in range(4)]
    assert node.pool.drop(txs[1].hash)
    assert [entry.tx.nonce for entry in node.pool.contents()] == [0]
    assert [node.ledger.events[tx.hash][-1].kind for tx in txs[1:]] == ["dropped"] * 3
    node.miner.mine()
    node.rollback(1)
    assert node.pool.contents() == []
    assert [event.kind for event in node.ledger.events[txs[0].hash]] == ["mined", "orphaned", "lost"]


def test_as_nitro_only_the_next_nonce_is_taken() -> None:
    node = Node(Settings(automine=True, accounts=2, profile=PROFILES["nitro"]))
    for nonce in range(3):
        assert node.submit(raw(ALICE, nonce)).hash in node.chain.included
    with pytest.raises(RpcError, match=r"nonce too high: address 0xf39F.*, tx: 4 state: 3"):
        node.submit(raw(ALICE, 4))


@pytest.mark.parametrize("case", ["gas cap", "contract"])
def test_as_anvil_what_is_taken_is_mined(case: str) -> None:
    node = Node(Settings(accounts=2, profile=PROFILES["anvil"]))
    node.amend(node.world.nonces, number(ALICE), NEXT)
    assert node.submit(CASES[case](node)).hash in node.chain.included
