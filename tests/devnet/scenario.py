"""The same signed bytes for every node, and what must come out of them to the last hash."""

from typing import Any

from devnet.evm.transition import created_address
from tests.devnet.bytecode import BOOM, COUNTER, FACTORY, HALT, TOGGLE, TOKEN, TRANSFER, deploying
from tests.devnet.wallet import ALICE, BOB, CAROL, GWEI, SOMEONE, Signed, words
from tests.support.devnet import NodeProcess

BLOCK_FIELDS = ("number", "baseFeePerGas", "gasUsed", "gasLimit", "transactionsRoot", "receiptsRoot", "logsBloom")
RECEIPT_FIELDS = (
    "type",
    "status",
    "gasUsed",
    "cumulativeGasUsed",
    "effectiveGasPrice",
    "contractAddress",
    "from",
    "to",
    "logsBloom",
    "transactionHash",
    "transactionIndex",
)
LOG_FIELDS = ("address", "topics", "data", "logIndex", "transactionIndex", "removed")


def deployed(nonce: int) -> str:
    """Where ALICE's creation with this nonce lands."""
    return "0x" + created_address(bytes.fromhex(ALICE.address[2:]), nonce).hex()


def blocks() -> list[list[Signed]]:
    """Transactions by block. Tips fall within a block, so that every node orders them alike."""
    legacy: dict[str, Any] = {"gasPrice": 3 * GWEI}
    codes = (COUNTER, TOKEN, BOOM, HALT, TOGGLE, FACTORY)
    counter, token, boom, halt, toggle, factory = (deployed(nonce) for nonce in range(6))
    slot = "0x" + bytes(32).hex()
    listed = [{"address": counter, "storageKeys": [slot]}, {"address": token, "storageKeys": []}]
    return [
        [ALICE.create(nonce, deploying(code)) for nonce, code in enumerate(codes)],
        [
            ALICE.sign(6, **legacy),
            ALICE.call(7, counter, accessList=listed, **legacy),
            ALICE.call(8, counter),
            ALICE.call(9, token, TRANSFER + words([BOB.address, 7])),
            ALICE.call(10, token, TRANSFER + words([BOB.address, 100_000])),
            ALICE.call(11, boom),
            ALICE.call(12, halt, gas=60_000),
            ALICE.call(13, toggle),
            ALICE.call(14, factory, value=5),
            ALICE.sign(15, data="0x" + "ff00" * 500, gas=100_000),
        ],
        [
            BOB.sign(0, maxPriorityFeePerGas=2 * GWEI, to=CAROL.address, value=10**18),
            ALICE.call(16, toggle),
            ALICE.call(17, token, TRANSFER + words([SOMEONE, 1])),
            ALICE.create(18, b"\xfe", gas=100_000),
            ALICE.create(19, deploying(b"\xef\x00"), gas=100_000),
            ALICE.call(20, "0x" + "00" * 19 + "02", b"abc"),
            ALICE.call(21, factory, gas=70_000),
        ],
        [],
    ]


def estimates(node: NodeProcess) -> list[str]:
    """What a first call of each contract is estimated to cost, once they are deployed."""
    counter, token, _, _, toggle, factory = (deployed(nonce) for nonce in range(6))
    calls: list[dict[str, str]] = [
        {"to": BOB.address, "value": "0x1"},
        {"to": counter},
        {"to": token, "data": "0x" + (TRANSFER + words([BOB.address, 1])).hex()},
        {"to": toggle},
        {"to": factory},
        {"data": "0x" + deploying(COUNTER).hex()},
        {"to": SOMEONE, "data": "0x" + "ff" * 200},
    ]
    return [node.rpc("eth_estimateGas", {"from": ALICE.address} | call) for call in calls]


def accounts(node: NodeProcess) -> dict[str, list[str]]:
    """Balance, nonce, code size and first two slots of everything the scenario touches."""
    touched = [wallet.address for wallet in (ALICE, BOB, CAROL)] + [SOMEONE, "0x" + "00" * 20]
    touched += [deployed(nonce) for nonce in (*range(6), 18, 19)]
    return {
        address: [
            node.rpc("eth_getBalance", address, "latest"),
            node.rpc("eth_getTransactionCount", address, "latest"),
            hex(len(node.rpc("eth_getCode", address, "latest")) // 2 - 1),
            *(node.rpc("eth_getStorageAt", address, slot, "latest") for slot in ("0x0", "0x1")),
        ]
        for address in touched
    }


def play(node: NodeProcess) -> list[dict[str, Any]]:
    """Send and mine block by block; the fields that must agree between nodes."""
    played = []
    for transactions in blocks():
        for signed in transactions:
            assert node.rpc("eth_sendRawTransaction", signed.raw) == signed.hash
        node.rpc("evm_mine")
        block = node.rpc("eth_getBlockByNumber", "latest", False)
        assert block["transactions"] == [signed.hash for signed in transactions]
        receipts = [node.rpc("eth_getTransactionReceipt", signed.hash) for signed in transactions]
        played.append(
            {field: block[field] for field in BLOCK_FIELDS}
            | {
                "receipts": [
                    {field: receipt[field] for field in RECEIPT_FIELDS}
                    | {"logs": [{field: log[field] for field in LOG_FIELDS} for log in receipt["logs"]]}
                    for receipt in receipts
                ],
                "estimates": [] if played else estimates(node),
                "accounts": accounts(node),
            }
        )
    return played
