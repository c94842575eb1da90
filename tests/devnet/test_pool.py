"""The pool judges and words its verdicts as geth does, and loses nothing it accepted."""

import pytest

from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI, SOMEONE, Signed, Wallet
from tests.support.devnet import Devnet, RpcFailure

POOR = Wallet("0x" + "11" * 32)


def send(devnet: Devnet, signed: Signed) -> str:
    return str(devnet.rpc("eth_sendRawTransaction", signed.raw))


def refusal(devnet: Devnet, signed: Signed) -> str:
    with pytest.raises(RpcFailure) as caught:
        send(devnet, signed)
    assert caught.value.code == -32000
    assert caught.value.data is None
    return caught.value.message


def pending(devnet: Devnet, wallet: Wallet = ALICE) -> int:
    return int(devnet.rpc("eth_getTransactionCount", wallet.address, "pending"), 16)


def test_the_same_bytes_again_are_known_while_they_wait(devnet: Devnet) -> None:
    signed = ALICE.sign(0)
    assert send(devnet, signed) == signed.hash
    assert refusal(devnet, signed) == "already known"
    devnet.rpc("evm_mine")
    assert refusal(devnet, signed) == "nonce too low: next nonce 1, tx nonce 0"


def test_another_transaction_on_a_used_nonce_is_too_low(devnet: Devnet) -> None:
    send(devnet, ALICE.sign(0))
    devnet.rpc("evm_mine")
    assert refusal(devnet, ALICE.sign(0, value=2)) == "nonce too low: next nonce 1, tx nonce 0"


@pytest.mark.parametrize(
    ("cap", "tip", "accepted"),
    [
        (1000, 100, False),
        (1099, 110, False),
        (1100, 109, False),
        (5000, 100, False),
        (1000, 1000, False),
        (1100, 110, True),
    ],
)
def test_a_replacement_pays_a_tenth_more_on_both_fees(devnet: Devnet, cap: int, tip: int, accepted: bool) -> None:
    unit = GWEI // 100
    old = ALICE.sign(0, maxFeePerGas=1000 * unit, maxPriorityFeePerGas=100 * unit)
    new = ALICE.sign(0, maxFeePerGas=cap * unit, maxPriorityFeePerGas=tip * unit, value=2)
    send(devnet, old)
    if accepted:
        assert send(devnet, new) == new.hash
    else:
        assert refusal(devnet, new) == "replacement transaction underpriced"
    kept, gone = (new, old) if accepted else (old, new)
    assert devnet.rpc("eth_getTransactionByHash", kept.hash)["nonce"] == "0x0"
    assert devnet.rpc("eth_getTransactionByHash", gone.hash) is None
    assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", kept.hash)["status"] == "0x1"
    assert devnet.rpc("eth_getTransactionReceipt", gone.hash) is None


def test_a_legacy_transaction_is_replaced_by_its_gas_price(devnet: Devnet) -> None:
    send(devnet, ALICE.sign(0, gasPrice=10 * GWEI))
    assert refusal(devnet, ALICE.sign(0, gasPrice=11 * GWEI - 1)) == "replacement transaction underpriced"
    send(devnet, ALICE.sign(0, gasPrice=11 * GWEI))


def test_a_gap_waits_queued_until_it_is_filled(devnet: Devnet) -> None:
    signed = [ALICE.sign(nonce) for nonce in range(4)]
    for nonce in (3, 1, 2):
        send(devnet, signed[nonce])
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x3"}
    assert pending(devnet) == 0
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getBlockByNumber", "latest", False)["transactions"] == []
    send(devnet, signed[0])
    assert devnet.rpc("txpool_status") == {"pending": "0x4", "queued": "0x0"}
    assert pending(devnet) == 4
    devnet.rpc("evm_mine")
    block = devnet.rpc("eth_getBlockByNumber", "latest", False)
    assert block["transactions"] == [item.hash for item in signed]


def test_a_queued_transaction_can_be_replaced(devnet: Devnet) -> None:
    send(devnet, ALICE.sign(1))
    assert refusal(devnet, ALICE.sign(1, value=2)) == "replacement transaction underpriced"
    send(devnet, ALICE.sign(1, value=2, maxFeePerGas=20 * GWEI, maxPriorityFeePerGas=2 * GWEI))
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x1"}


def test_funds_are_counted_over_everything_pending(devnet: Devnet) -> None:
    assert refusal(devnet, POOR.sign(0)) == (
        "insufficient funds for gas * price + value: balance 0, tx cost 210000000000001, overshot 210000000000001"
    )
    devnet.rpc("anvil_setBalance", POOR.address, hex(300_000 * GWEI))
    send(devnet, POOR.sign(0))
    assert refusal(devnet, POOR.sign(1)) == (
        "insufficient funds for gas * price + value: balance 300000000000000, queued cost 210000000000001, "
        "tx cost 210000000000001, overshot 120000000000002"
    )
    bumped = POOR.sign(0, maxFeePerGas=20 * GWEI, maxPriorityFeePerGas=2 * GWEI, value=0)
    assert refusal(devnet, bumped).startswith("insufficient funds for gas * price + value: balance 300000000000000, tx")


def test_gas_below_the_intrinsic_cost_is_refused(devnet: Devnet) -> None:
    assert refusal(devnet, ALICE.sign(0, gas=20_999)) == "intrinsic gas too low: gas 20999, minimum needed 21000"
    data = "0x" + "ff" * 100
    assert refusal(devnet, ALICE.sign(0, data=data)) == "intrinsic gas too low: gas 21000, minimum needed 22600"
    assert refusal(devnet, ALICE.sign(0, data=data, gas=22_600)) == (
        "insufficient gas for floor data gas cost: gas 22600, minimum needed 25000"
    )
    assert refusal(devnet, ALICE.sign(0, gas=2**24 + 1)) == (
        "transaction gas limit too high (cap: 16777216, tx: 16777217)"
    )
    devnet.rpc("evm_setBlockGasLimit", hex(1_000_000))
    try:
        assert refusal(devnet, ALICE.sign(0, gas=1_000_001)) == "exceeds block gas limit"
    finally:
        devnet.rpc("evm_setBlockGasLimit", hex(30_000_000))


def test_signatures_for_another_chain_are_refused(devnet: Devnet) -> None:
    text = "invalid sender: invalid chain id for signer: have 1 want 31337"
    assert refusal(devnet, ALICE.sign(0, chainId=1)) == text
    assert refusal(devnet, ALICE.sign(0, chainId=1, gasPrice=GWEI)) == text
    unprotected = ALICE.sign(0, chainId=None, gasPrice=GWEI)
    assert refusal(devnet, unprotected) == "only replay-protected (EIP-155) transactions allowed over RPC"


def test_fees_out_of_order_or_beyond_the_cap_are_refused(devnet: Devnet) -> None:
    above = ALICE.sign(0, maxFeePerGas=GWEI, maxPriorityFeePerGas=2 * GWEI)
    assert refusal(devnet, above) == "max priority fee per gas higher than max fee per gas"
    dear = ALICE.sign(0, maxFeePerGas=100_000 * GWEI)
    assert refusal(devnet, dear) == "tx fee (2.10 ether) exceeds the configured cap (1.00 ether)"
    free = ALICE.sign(0, maxPriorityFeePerGas=0)
    assert refusal(devnet, free) == "transaction gas price below minimum: gas tip cap 0, minimum needed 1"


def test_bytes_that_are_no_transaction_are_refused(devnet: Devnet) -> None:
    good = ALICE.sign(0).raw
    for raw, text in {
        "0x": "typed transaction too short",
        "0x80": "rlp: expected input list for types.LegacyTx",
        "0x02": "typed transaction too short",
        "0x05c0": "transaction type not supported",
        "0x02c0": "rlp: too few elements for types.DynamicFeeTx",
        good[:-2]: "rlp: value size exceeds available input length",
        good + "00": "rlp: input contains more than one value",
    }.items():
        assert refusal(devnet, Signed(raw, "")) == text


def test_a_high_s_signature_is_refused(devnet: Devnet) -> None:
    from devnet.codec import rlp_coding
    from devnet.codec.signature import SECP256K1_ORDER

    raw = bytes.fromhex(ALICE.sign(0).raw[2:])
    fields = list(rlp_coding.decode(raw[1:]))
    parity, s = fields[-3], int.from_bytes(fields[-1], "big")
    fields[-3] = b"" if parity else b"\x01"
    fields[-1] = rlp_coding.integer(SECP256K1_ORDER - s)
    twin = Signed("0x02" + rlp_coding.encode(fields).hex(), "")
    assert refusal(devnet, twin) == "invalid sender: invalid transaction v, r, s values"


def test_a_fee_cap_below_the_base_fee_waits_until_the_base_fee_falls(devnet: Devnet) -> None:
    low = ALICE.sign(0, maxFeePerGas=GWEI // 2, maxPriorityFeePerGas=1)
    after = ALICE.sign(1)
    other = BOB.sign(0)
    for signed in (low, after, other):
        send(devnet, signed)
    assert pending(devnet) == 2
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getBlockByNumber", "latest", False)["transactions"] == [other.hash]
    devnet.rpc("anvil_setNextBlockBaseFeePerGas", hex(GWEI // 2))
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getBlockByNumber", "latest", False)["transactions"] == [low.hash, after.hash]
    assert devnet.rpc("eth_getTransactionReceipt", low.hash)["effectiveGasPrice"] == hex(GWEI // 2)


def test_a_transaction_that_cannot_be_paid_any_more_waits(devnet: Devnet) -> None:
    signed = ALICE.sign(0, value=5 * ETHER)
    send(devnet, signed)
    devnet.rpc("anvil_setBalance", ALICE.address, hex(ETHER))
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionByHash", signed.hash)["blockHash"] is None
    devnet.rpc("hardhat_setBalance", ALICE.address, hex(6 * ETHER))
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", signed.hash)["status"] == "0x1"


def test_higher_tips_come_first_and_equal_ones_by_arrival(devnet: Devnet) -> None:
    slow, fast = ALICE.sign(0), BOB.sign(0, maxPriorityFeePerGas=2 * GWEI)
    behind = BOB.sign(1)
    for signed in (slow, fast, behind):
        send(devnet, signed)
    devnet.rpc("evm_mine")
    block = devnet.rpc("eth_getBlockByNumber", "latest", False)
    assert block["transactions"] == [fast.hash, slow.hash, behind.hash]


def test_dropping_one_leaves_the_later_ones_queued(devnet: Devnet) -> None:
    signed = [ALICE.sign(nonce) for nonce in range(3)]
    for item in signed:
        send(devnet, item)
    assert devnet.rpc("anvil_dropTransaction", signed[1].hash) == signed[1].hash
    assert devnet.rpc("anvil_dropTransaction", signed[1].hash) is None
    assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x1"}
    assert devnet.rpc("eth_getTransactionByHash", signed[1].hash) is None
    send(devnet, signed[1])
    assert pending(devnet) == 3
    devnet.rpc("anvil_dropAllTransactions")
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}
    assert pending(devnet) == 0


def test_a_nonce_set_by_hand_overtakes_and_promotes(devnet: Devnet) -> None:
    for nonce in (0, 3):
        send(devnet, ALICE.sign(nonce))
    devnet.rpc("anvil_setNonce", ALICE.address, "0x3")
    assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
    assert pending(devnet) == 4


def test_the_pool_can_be_looked_into(devnet: Devnet) -> None:
    from eth_utils import to_checksum_address

    first, gapped = ALICE.sign(0), ALICE.sign(5)
    send(devnet, first)
    send(devnet, gapped)
    owner = to_checksum_address(ALICE.address)
    content = devnet.rpc("txpool_content")
    assert content["pending"][owner]["0"]["hash"] == first.hash
    assert content["pending"][owner]["0"]["gasPrice"] == hex(10 * GWEI)
    assert content["queued"][owner]["5"]["hash"] == gapped.hash
    line = f"{to_checksum_address(SOMEONE)}: 1 wei + 21000 gas × {10 * GWEI} wei"
    assert devnet.rpc("txpool_inspect")["pending"] == {owner: {"0": line}}
