"""Set-code transactions: accounts that let another's code serve their calls (EIP-7702). Gas is counted by hand from the EIP."""

from dataclasses import replace
from typing import Any

import pytest
from eth_account import Account
from eth_utils import to_checksum_address

from devnet.codec.transaction import decode
from tests.devnet.bytecode import COUNTER, assemble, deploying
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, CAROL, ETHER, GWEI, SOMEONE, Signed, Wallet
from tests.support.devnet import Devnet, NodeProcess, RpcFailure

NEWCOMER = Wallet("0x" + "4e" * 32)  # holds nothing at genesis
ZERO = "0x" + "00" * 20
CALLER = assemble("PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 CALLDATALOAD GAS CALL STOP")  # calls the address it is given
REVERTING = assemble("PUSH0 PUSH0 REVERT")


def authorization(wallet: Wallet, nonce: int, code_of: str, chain_id: int = 31337) -> dict[str, Any]:
    """A signed tuple as eth-account's transactions take it."""
    body = {"chainId": chain_id, "address": to_checksum_address(code_of), "nonce": nonce}
    made = Account.sign_authorization(body, wallet.key)
    return body | {"yParity": made.y_parity, "r": made.r, "s": made.s}


def set_code(sender: Wallet, nonce: int, *authorizations: dict[str, Any], **fields: Any) -> Signed:
    """A type 4 transaction to SOMEONE, who has no code, unless told otherwise."""
    defaults = {"value": 0, "gas": 200_000, "type": 4, "authorizationList": list(authorizations)}
    return sender.sign(nonce, **(defaults | fields))


def mined(node: NodeProcess, *transactions: Signed) -> list[dict[str, Any]]:
    """Send and mine; the receipts."""
    for signed in transactions:
        assert node.rpc("eth_sendRawTransaction", signed.raw) == signed.hash
    node.rpc("evm_mine")
    return [node.rpc("eth_getTransactionReceipt", signed.hash) for signed in transactions]


def code(node: NodeProcess, wallet: Wallet) -> str:
    return str(node.rpc("eth_getCode", wallet.address, "latest"))


def designation(target: str) -> str:
    return "0xef0100" + target[2:]


def test_the_authority_gets_a_designation_and_a_nonce_and_the_sender_pays_for_it(either: NodeProcess) -> None:
    counter = deployed(0)
    new, known = authorization(NEWCOMER, 0, counter), authorization(BOB, 0, counter)
    [_, first, second] = mined(
        either, ALICE.create(0, deploying(COUNTER)), set_code(ALICE, 1, new), set_code(ALICE, 2, known)
    )
    assert first["type"] == "0x4"
    if either.kind == "devnet":  # anvil's database knows every account, so that it gives the refund here too
        assert first["gasUsed"] == hex(21_000 + 25_000)
    # An account that exists gives 12,500 back, of which a fifth of the gas used counts.
    assert second["gasUsed"] == hex(46_000 - 46_000 // 5)
    for wallet in (NEWCOMER, BOB):
        assert code(either, wallet) == designation(counter)
        assert either.rpc("eth_getTransactionCount", wallet.address, "latest") == "0x1"
    [listed] = either.rpc("eth_getTransactionByHash", first["transactionHash"])["authorizationList"]
    assert listed["address"] == counter
    assert (listed["chainId"], listed["nonce"]) == (hex(31337), "0x0")
    assert listed["r"] == hex(new["r"])


def test_calls_run_the_other_code_on_the_authoritys_storage_and_nobody_elses(either: NodeProcess) -> None:
    counter, caller = deployed(0), deployed(1)
    mined(either, ALICE.create(0, deploying(COUNTER)), ALICE.create(1, deploying(CALLER)))
    target = bytes(12) + bytes.fromhex(NEWCOMER.address[2:])
    [_, direct, through, plain] = mined(
        either,
        set_code(ALICE, 2, authorization(NEWCOMER, 0, counter)),
        ALICE.call(3, NEWCOMER.address),
        ALICE.call(4, caller, target),
        ALICE.call(5, caller, bytes(12) + bytes.fromhex(counter[2:])),
    )
    assert either.rpc("eth_getStorageAt", NEWCOMER.address, "0x0", "latest") == "0x" + (2).to_bytes(32, "big").hex()
    assert either.rpc("eth_getStorageAt", counter, "0x0", "latest") == "0x" + (1).to_bytes(32, "big").hex()
    assert [log["address"] for log in direct["logs"] + through["logs"]] == [NEWCOMER.address] * 2
    # The designation costs a call the cold target on top (2600), the slot was written before (2900 for 20000), and the
    # zeros in the two call data differ by none: both addresses have no zero byte beyond the padding.
    zeros = target.count(0) - (bytes(12) + bytes.fromhex(counter[2:])).count(0)
    assert int(through["gasUsed"], 16) - int(plain["gasUsed"], 16) == 2_600 - (20_000 - 2_900) - 12 * zeros


def test_tuples_that_do_not_hold_are_paid_for_and_passed_over(either: NodeProcess) -> None:
    counter = deployed(0)
    high_s = authorization(BOB, 0, counter)
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    high_s |= {"s": order - high_s["s"], "yParity": 1 - high_s["yParity"]}
    wrong = [
        authorization(BOB, 0, counter, chain_id=1),
        authorization(BOB, 1, counter),
        authorization(ALICE, 1, counter),  # its own transaction has counted to 2 by then
        high_s,
    ]
    [_, receipt] = mined(either, ALICE.create(0, deploying(COUNTER)), set_code(ALICE, 1, *wrong))
    assert receipt["status"] == "0x1"
    assert receipt["gasUsed"] == hex(21_000 + 4 * 25_000)
    assert code(either, BOB) == code(either, ALICE) == "0x"
    assert either.rpc("eth_getTransactionCount", BOB.address, "latest") == "0x0"


def test_a_designation_is_followed_once_replaced_and_taken_away(either: NodeProcess) -> None:
    counter = deployed(0)
    anywhere = authorization(BOB, 0, counter, chain_id=0)
    mined(
        either,
        ALICE.create(0, deploying(COUNTER)),
        set_code(ALICE, 1, anywhere, authorization(CAROL, 0, BOB.address)),
    )
    assert code(either, CAROL) == designation(BOB.address)
    [chained] = mined(either, ALICE.call(2, CAROL.address, gas=50_000))
    assert (chained["status"], chained["gasUsed"]) == ("0x0", hex(50_000))  # 0xef is no opcode
    mined(either, set_code(ALICE, 3, authorization(BOB, 1, ZERO), authorization(CAROL, 1, counter)))
    assert code(either, BOB) == "0x"
    assert code(either, CAROL) == designation(counter)
    [receipt] = mined(either, ALICE.call(4, CAROL.address))
    assert receipt["status"] == "0x1"


def test_what_is_authorized_stays_where_the_call_reverts(either: NodeProcess) -> None:
    [_, receipt] = mined(
        either,
        ALICE.create(0, deploying(REVERTING)),
        set_code(ALICE, 1, authorization(NEWCOMER, 0, deployed(0)), to=NEWCOMER.address),
    )
    assert receipt["status"] == "0x0"
    assert code(either, NEWCOMER) == designation(deployed(0))


def test_an_account_may_delegate_itself_and_still_sends(either: NodeProcess) -> None:
    counter = deployed(0)
    [_, itself] = mined(
        either,
        ALICE.create(0, deploying(COUNTER)),
        set_code(ALICE, 1, authorization(ALICE, 2, counter), to=ALICE.address),
    )
    assert itself["status"] == "0x1"
    assert either.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x3"
    [after] = mined(either, ALICE.sign(3, to=BOB.address, value=ETHER, gas=21_000))
    assert after["status"] == "0x1"
    assert either.rpc("eth_getStorageAt", ALICE.address, "0x0", "latest") == "0x" + (1).to_bytes(32, "big").hex()


def test_a_nonce_moved_by_an_authorization_overtakes_and_promotes_in_the_pool(devnet: Devnet) -> None:
    counter = deployed(0)
    overtaken, promoted = BOB.sign(0), BOB.sign(1, value=5)
    devnet.rpc("eth_sendRawTransaction", promoted.raw)
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x1"}
    mined(devnet, ALICE.create(0, deploying(COUNTER)), set_code(ALICE, 1, authorization(BOB, 0, counter)))
    assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
    with pytest.raises(RpcFailure, match="nonce too low: next nonce 1, tx nonce 0"):
        devnet.rpc("eth_sendRawTransaction", overtaken.raw)
    devnet.rpc("evm_mine")
    assert devnet.rpc("eth_getTransactionReceipt", promoted.hash)["status"] == "0x1"


def test_an_estimate_counts_the_authorizations(devnet: Devnet) -> None:
    item = authorization(NEWCOMER, 0, SOMEONE)
    request = {
        "from": ALICE.address,
        "to": SOMEONE,
        "authorizationList": [
            {name: value if isinstance(value, str) else hex(value) for name, value in item.items()},
        ],
    }
    estimated = int(devnet.rpc("eth_estimateGas", request), 16)
    assert 46_000 <= estimated <= 46_000 * 1.015


def test_without_authorizations_or_recipient_it_is_refused(devnet: Devnet) -> None:
    tx = decode(bytes.fromhex(set_code(ALICE, 0, authorization(BOB, 0, SOMEONE)).raw[2:]))
    assert [item.authority for item in tx.authorizations] == [bytes.fromhex(BOB.address[2:])]
    assert replace(tx.authorizations[0], nonce=2**64 - 1).authority is None
    assert tx.cost == 200_000 * 10 * GWEI
    for raw, text in [
        ("0x04c0", "rlp: too few elements for types.SetCodeTx"),
        (
            "0x04" + "d5" + "82053980018405f5e100825208808080c0c0800101",
            "rlp: input string too short for common.Address, decoding into (types.SetCodeTx).To",
        ),
    ]:
        with pytest.raises(RpcFailure) as problem:
            devnet.rpc("eth_sendRawTransaction", raw)
        assert problem.value.message == text
