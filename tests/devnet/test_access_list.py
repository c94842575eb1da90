"""eth_createAccessList: geth's recorded lists, and that a list costs what was said."""

import json
import re
from typing import Any

from tests.devnet.bytecode import COUNTER, TOKEN, TRANSFER, assemble, deploying
from tests.devnet.geth_calls import RECORD, requests
from tests.devnet.scenario import deployed
from tests.devnet.wallet import ALICE, BOB, SOMEONE, words
from tests.support.devnet import Devnet

RECORDED: dict[str, Any] = json.loads(RECORD.read_text())


def in_order(answer: Any) -> Any:
    """geth lists addresses and slots in no order; and the hash in its complaint is of a transaction with its own fees."""
    if "error" in answer:
        answer["error"]["message"] = re.sub("0x[0-9a-f]{64}", "HASH", answer["error"]["message"])
        return answer
    entries = answer["result"]["accessList"]
    for entry in entries:
        entry["storageKeys"].sort()
    entries.sort(key=lambda entry: entry["address"])
    return answer


def test_lists_are_geths(devnet: Devnet) -> None:
    asked = [request for request in requests() if request[1] == "eth_createAccessList"]
    assert len(asked) > 30
    devnet.rpc("anvil_setBalance", "0x" + "00" * 19 + "02", "0x1")
    for name, method, params in asked:
        reply = devnet.request({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        found = {part: reply[part] for part in ("result", "error") if part in reply}
        assert in_order(found) == in_order(RECORDED[name]), name


def test_a_transaction_with_the_list_uses_the_gas_foretold(devnet: Devnet) -> None:
    calls_token = assemble(
        f"0x{TRANSFER.hex()} 224 SHL PUSH0 MSTORE {SOMEONE} 4 MSTORE 3 36 MSTORE PUSH0 PUSH0 68 PUSH0 PUSH0 "
        f"{deployed(0)} GAS CALL {BOB.address} BALANCE STOP"
    )
    for nonce, code in enumerate((TOKEN, calls_token, COUNTER)):
        devnet.rpc("eth_sendRawTransaction", ALICE.create(nonce, deploying(code)).raw)
    devnet.rpc("evm_mine")
    for nonce, (to, data) in enumerate(
        ((deployed(1), b""), (deployed(0), TRANSFER + words([BOB.address, 1])), (deployed(2), b"")), 3
    ):
        call = {"from": ALICE.address, "to": to, "data": "0x" + data.hex()}
        made = devnet.rpc("eth_createAccessList", call, "latest")
        assert "error" not in made
        signed = ALICE.call(nonce, to, data, accessList=made["accessList"])
        devnet.rpc("eth_sendRawTransaction", signed.raw)
        devnet.rpc("evm_mine")
        receipt = devnet.rpc("eth_getTransactionReceipt", signed.hash)
        assert (receipt["status"], receipt["gasUsed"]) == ("0x1", made["gasUsed"])


def test_sender_recipient_and_precompiles_are_not_listed_but_the_recipients_slots_are(devnet: Devnet) -> None:
    looks = assemble(f"CALLER BALANCE ADDRESS BALANCE 2 BALANCE {SOMEONE} BALANCE 7 SLOAD STOP")
    overrides = {BOB.address: {"code": "0x" + looks.hex()}}
    made = devnet.rpc("eth_createAccessList", {"from": ALICE.address, "to": BOB.address}, "latest", overrides)
    assert made["accessList"] == [
        {"address": SOMEONE, "storageKeys": []},
        {"address": BOB.address, "storageKeys": ["0x" + (7).to_bytes(32, "big").hex()]},
    ]


def test_what_was_listed_stays_listed(devnet: Devnet) -> None:
    listed = [{"address": SOMEONE, "storageKeys": ["0x" + "00" * 32]}]
    made = devnet.rpc("eth_createAccessList", {"to": BOB.address, "accessList": listed}, "latest")
    assert made == {"accessList": listed, "gasUsed": hex(21_000 + 2_400 + 1_900)}
