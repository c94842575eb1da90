"""What every subject is put through: the same signed bytes, the same questions."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.devnet.bytecode import assemble
from tests.devnet.differential.probe import CODE, call
from tests.devnet.differential.subjects import CHAIN_ID, DELEGATING, MIDDLE, POOR, RICH, Subject, authorize, sign
from tests.devnet.wallet import ETHER, GWEI, SOMEONE, Signed, words
from tests.support.geth import GAS_LIMIT

Json = Any
PROBE = "0x3a220f351252089d385b29beca14e27f204c296a"  # created by geth's developer account, nonce 0
STORES_42 = assemble("42 0 SSTORE 0 0 RETURN")
RETURNS_BYTE = assemble("0x60 0 MSTORE8 1 0 RETURN")
_RECEIPT = ("status", "gasUsed", "cumulativeGasUsed", "type", "logsBloom", "contractAddress", "effectiveGasPrice", "to")
_BLOCK = (
    "baseFeePerGas",
    "gasUsed",
    "gasLimit",
    "transactionsRoot",
    "receiptsRoot",
    "miner",
    "blobGasUsed",
)


def transactions() -> Iterator[tuple[str, Signed]]:
    """What is mined, one in a block, by geth's developer account from nonce 0 on."""
    nonce = iter(range(1000))

    def own(label: str, **fields: Json) -> tuple[str, Signed]:
        return label, sign(RICH, next(nonce), **fields)

    def ask(label: str, data: bytes, gas: int = 500_000, **fields: Json) -> tuple[str, Signed]:
        return own(label, **({"to": PROBE, "value": 0, "data": "0x" + data.hex(), "gas": gas} | fields))

    access = [{"address": "0x" + "aa" * 20, "storageKeys": ["0x" + "00" * 32, "0x" + "11" * 32]}]
    yield own("create the probe", to=None, value=0, data="0x" + CODE.hex(), gas=2_000_000)
    yield own("transfer, type 2")
    yield own("transfer, legacy", gasPrice=5 * GWEI)
    yield own("transfer, type 1 with an access list", gasPrice=5 * GWEI, accessList=access, gas=60_000)
    yield own("transfer, type 2 with an access list", accessList=access, gas=60_000)
    yield own("transfer with data: floor gas", data="0x" + "ff00" * 200, gas=60_000)
    yield own("transfer to itself", to=RICH.address)
    yield own("transfer of nothing", value=0)
    yield own("tip above what the cap leaves", maxFeePerGas=GWEI, maxPriorityFeePerGas=GWEI)
    yield own("transfer to a precompile with data", to="0x" + "00" * 19 + "02", data="0x1234", gas=50_000)
    yield own("fund the poor", to=POOR.address, value=ETHER // 100)
    yield own("fund the middle", to=MIDDLE.address, value=100 * ETHER)
    yield own("fund the delegating", to=DELEGATING.address, value=ETHER)
    yield own("create nothing", to=None, value=0, data="0x", gas=60_000)
    yield own("create that reverts", to=None, value=0, data="0x" + assemble("0 0 REVERT").hex(), gas=90_000)
    yield own("create with value", to=None, value=7, data="0x" + STORES_42.hex(), gas=90_000)
    yield own("create with too little gas to keep the code", to=None, value=0, data="0x6110006000f3", gas=100_000)
    yield own("create code that begins with 0xef", to=None, value=0, data="0x60ef60005360016000f3", gas=100_000)
    yield ask("store", call("store(uint256,uint256,uint256)", 0, 3, 1))
    yield ask("store the same again", call("store(uint256,uint256,uint256)", 0, 3, 1))
    yield ask("clear: refund", call("store(uint256,uint256,uint256)", 0, 3, 0))
    yield ask("store, then revert", call("storeThenRevert(uint256)", 9))
    yield ask("revert with a reason", call("reason(string)", "no luck"))
    yield ask("revert bare", call("bare()"))
    yield ask("revert custom", call("custom(uint256)", 5))
    yield ask("divide by zero", call("divide(uint256)", 0))
    yield ask("invalid opcode", call("invalid()"), gas=60_000)
    yield ask("out of gas", call("loop()"), gas=60_000)
    yield ask("logs", call("log(uint256,string)", 2, "differential"))
    yield ask("create from code", call("create(bytes,uint256)", STORES_42, 0))
    yield ask("create from code, reverting", call("create(bytes,uint256)", assemble("0 0 REVERT"), 0))
    yield ask("create2", call("create2(bytes,bytes32)", RETURNS_BYTE, bytes(32)))
    yield ask("create2 again: collision", call("create2(bytes,bytes32)", RETURNS_BYTE, bytes(32)))
    yield ask("give the probe ether", b"", value=1000)
    yield ask("send on", call("send(address,uint256)", SOMEONE, 10), value=5)
    yield ask("send on more than there is", call("send(address,uint256)", SOMEONE, ETHER))
    yield ask("transient storage", call("transientStore(uint256)", 3))
    yield ask("forty calls deep", call("dive(uint256)", 40), gas=1_000_000)
    yield ask("a caught revert", call("caught(uint256)", 3))
    for number, name, data in (
        (2, "sha256", b"abc"),
        (3, "ripemd160", b"abc"),
        (4, "identity", b"abc"),
        (5, "modexp", words([1, 1, 1]) + bytes((3, 5, 7))),
        (
            5,
            "modexp of 1,000 bytes",
            words([1000, 32, 32]) + bytes(range(1, 201)) * 5 + bytes(31) + b"\x09" + b"\xff" * 32,
        ),
        (9, "blake2f of bad length", b"abc"),
        (0x100, "p256verify of nothing", b""),
    ):
        at = "0x" + number.to_bytes(20, "big").hex()
        yield ask(f"precompile {name}", call("precompile(address,bytes)", at, data), gas=900_000)
    yield own("count leading zeros", to=None, value=0, data="0x60011e5f5260205ff3", gas=100_000)
    yield ask("destroy", call("destroy(address)", SOMEONE))
    yield ask("the destroyed still answers", call("store(uint256,uint256,uint256)", 3, 1, 1))
    for label, target, authorizing in (
        ("set code", PROBE, 0),
        ("set code with a used nonce: left out", SOMEONE, 0),
        ("unset code", "0x" + "00" * 20, 1),
    ):
        if label == "unset code":
            yield ask(
                "call an account with set code", call("store(uint256,uint256,uint256)", 0, 1, 5), to=DELEGATING.address
            )
        authorization = authorize(DELEGATING, target, authorizing)
        yield own(label, to=SOMEONE, gas=100_000, authorizationList=[authorization])
    yield own("all gas a transaction may have", gas=min(2**24, GAS_LIMIT))


def tell_execution(subject: Subject) -> None:
    """Mine everything; note receipts, blocks and shapes; then ask."""
    shapes: dict[str, Json] = {}
    for label, signed in transactions():
        receipt = subject.mined(label, signed)
        if receipt is None:
            continue
        block = subject.node.rpc("eth_getBlockByHash", receipt["blockHash"], True)
        subject.seen[label] = {
            **{name: receipt.get(name) for name in _RECEIPT},
            "logs": [[log["address"], log["topics"], log["data"]] for log in receipt["logs"]],
            "block": {name: block.get(name) for name in _BLOCK},
        }
        kind = int(receipt["type"], 16)
        shapes[f"receipt, type {kind}"] = sorted(receipt)
        shapes[f"transaction, type {kind}"] = sorted(block["transactions"][0])
        shapes["block"] = sorted(block)
        shapes["log"] = sorted(receipt["logs"][0]) if receipt["logs"] else shapes.get("log")
    for name, fields in shapes.items():
        subject.seen[f"fields of a {name}"] = fields
    for label, request in calls():
        subject.ask(f"eth_call: {label}", "eth_call", request, "latest")
        subject.ask(f"eth_estimateGas: {label}", "eth_estimateGas", request, "latest")
        subject.see(f"eth_createAccessList: {label}", _access_list(subject, request))
    _tell_history(subject)


def _access_list(subject: Subject, request: Json) -> Callable[[], Json]:
    def ask() -> Json:
        found = subject.node.rpc("eth_createAccessList", request, "latest")
        return {
            "gasUsed": found["gasUsed"],
            "error": found.get("error"),
            "list": sorted([entry["address"].lower(), sorted(entry["storageKeys"])] for entry in found["accessList"]),
        }

    return ask


def calls() -> Iterator[tuple[str, Json]]:
    """What is asked of the state that came of it."""

    def probe(label: str, data: bytes, **fields: Json) -> tuple[str, Json]:
        return label, {"from": RICH.address, "to": PROBE, "data": "0x" + data.hex()} | fields

    yield "a transfer", {"from": RICH.address, "to": SOMEONE, "value": "0x1"}
    yield "more than there is", {"from": POOR.address, "to": SOMEONE, "value": hex(ETHER)}
    yield probe("a getter", call("slots(uint256)", 7))
    yield probe("a write", call("store(uint256,uint256,uint256)", 20, 4, 1))
    yield probe("a reason", call("reason(string)", "no luck"))
    yield probe("a bare revert", call("bare()"))
    yield probe("a custom error", call("custom(uint256)", 5))
    yield probe("a panic", call("divide(uint256)", 0))
    yield probe("an invalid opcode", call("invalid()"))
    yield probe("too little gas", call("store(uint256,uint256,uint256)", 20, 4, 1), gas="0x7530")
    yield probe("less gas than intrinsic", b"", gas="0x5000")
    yield probe("no such function", bytes.fromhex("deadbeef"))
    yield probe("depth", call("dive(uint256)", 20))
    yield "a creation", {"from": RICH.address, "data": "0x" + CODE.hex()}
    yield "nobody", {"to": SOMEONE, "data": "0x1234"}


def _tell_history(subject: Subject) -> None:
    ask, node = subject.ask, subject.node
    ask("balance of the poor at block 5", "eth_getBalance", POOR.address, "0x5")
    ask("balance of the poor now", "eth_getBalance", POOR.address, "latest")
    ask("nonce at block 10", "eth_getTransactionCount", RICH.address, "0xa")
    ask("code of the probe", "eth_getCode", PROBE, "latest")
    ask("a slot now", "eth_getStorageAt", PROBE, "0x0", "latest")
    ask("a future block", "eth_getBlockByNumber", "0xffff", False)
    ask("a balance in the future", "eth_getBalance", RICH.address, "0xffff")
    ask("an unknown transaction", "eth_getTransactionByHash", "0x" + "12" * 32)
    ask("an unknown receipt", "eth_getTransactionReceipt", "0x" + "12" * 32)
    ask("logs of an unknown block", "eth_getLogs", {"blockHash": "0x" + "12" * 32})
    ask("logs of an inverted range", "eth_getLogs", {"fromBlock": "0x5", "toBlock": "0x2"})
    subject.see("all logs", lambda: [log["data"] for log in node.rpc("eth_getLogs", {"fromBlock": "0x0"})])
    ask("fee history of 3", "eth_feeHistory", "0x3", "0x14", [0, 50, 100])
    ask("fee history, percentiles falling", "eth_feeHistory", "0x1", "latest", [50, 10])
    ask("fee history, percentile above 100", "eth_feeHistory", "0x1", "latest", [101])
    ask("fee history of none", "eth_feeHistory", "0x0", "latest", [])
    ask("an unknown method", "eth_nothing")
    ask("too few parameters", "eth_getBalance")
    ask("no address", "eth_getBalance", "0x12", "latest")
    ask("garbage", "eth_sendRawTransaction", "0x1234")
    ask("an empty transaction", "eth_sendRawTransaction", "0x")
    ask("a filter that is none", "eth_getFilterChanges", "0x1234")
    for tracer in ("callTracer", "prestateTracer", "4byteTracer"):
        for label in ("a caught revert", "create from code", "send on", "revert with a reason"):
            signed = dict(transactions())[label]
            ask(f"{tracer}: {label}", "debug_traceTransaction", signed.hash, {"tracer": tracer})
    signed = dict(transactions())["store"]
    ask("struct logs: store", "debug_traceTransaction", signed.hash, {})


def tell_pool(subject: Subject) -> None:
    """Offer what a pool must judge, with no block made meanwhile."""
    send = subject.send
    nonce = int(subject.node.rpc("eth_getTransactionCount", RICH.address, "latest"), 16)
    waiting = sign(RICH, nonce)
    send("first", waiting)
    send("the same bytes again", waiting)
    send("nonce too low", sign(RICH, 0))
    send("bytes that are mined", dict(transactions())["transfer, type 2"])
    bump = {"maxFeePerGas": 22 * GWEI, "maxPriorityFeePerGas": GWEI * 11 // 10}
    send(
        "replacement, 9 % more",
        sign(RICH, nonce, maxFeePerGas=20 * GWEI * 109 // 100, maxPriorityFeePerGas=GWEI * 109 // 100),
    )
    send("replacement, cap only", sign(RICH, nonce, maxFeePerGas=22 * GWEI))
    send("replacement, tip only", sign(RICH, nonce, maxPriorityFeePerGas=2 * GWEI))
    send("replacement, 10 % more on both", sign(RICH, nonce, **bump))
    send("a gap", sign(RICH, nonce + 5))
    send("replacement in the gap, 9 %", sign(RICH, nonce + 5, maxFeePerGas=20 * GWEI * 109 // 100))
    send("poor sender", sign(POOR, 0, value=ETHER))
    send("poor sender, second in line", sign(POOR, 0, value=ETHER // 1000))
    send("poor sender, together too much", sign(POOR, 1, value=ETHER // 100 - ETHER // 1000))
    send("tip above the cap", sign(MIDDLE, 0, maxFeePerGas=GWEI, maxPriorityFeePerGas=2 * GWEI))
    send("no tip", sign(MIDDLE, 0, maxPriorityFeePerGas=0))
    send("cap below the base fee", sign(MIDDLE, 0, maxFeePerGas=1000, maxPriorityFeePerGas=1))
    send("gas below 21,000", sign(MIDDLE, 1, gas=20_999))
    send("gas below intrinsic", sign(MIDDLE, 1, gas=21_000, data="0x" + "ff" * 100))
    send("gas below the floor", sign(MIDDLE, 1, gas=24_000, data="0x" + "ff" * 100))
    send("gas above the block", sign(MIDDLE, 1, gas=GAS_LIMIT + 1))
    send("gas above 2^24", sign(MIDDLE, 1, gas=2**24 + 1))
    send("fee above one ether", sign(MIDDLE, 1, gas=200_000, maxFeePerGas=6000 * GWEI))
    send("another chain, typed", MIDDLE.sign(1, chainId=CHAIN_ID + 1))
    send("another chain, legacy", MIDDLE.sign(1, chainId=CHAIN_ID + 1, gasPrice=5 * GWEI))
    send("200 KB of data", sign(MIDDLE, 1, gas=9_000_000, data="0x" + "00" * 200_000))
    send("init code of 49,153 bytes", sign(MIDDLE, 1, to=None, value=0, gas=9_000_000, data="0x" + "00" * 49_153))
    send("the highest nonce", sign(MIDDLE, 2**64 - 1))
    subject.until(lambda: _waiting(subject, nonce))  # geth sorts its pool beside answering
    subject.ask("pool status", "txpool_status")
    subject.see("pool contents", lambda: _nonces(subject.node.rpc("txpool_content")))
    subject.ask("contents of one sender", "txpool_inspect")
    for wallet, name in ((RICH, "rich"), (POOR, "poor"), (MIDDLE, "middle")):
        subject.ask(f"pending nonce of the {name}", "eth_getTransactionCount", wallet.address, "pending")
    subject.see("fields of a waiting transaction", lambda: sorted(_waiting(subject, nonce)))


def _nonces(content: Json) -> Json:
    return {
        part: {sender.lower(): sorted(map(int, by_nonce)) for sender, by_nonce in content[part].items() if by_nonce}
        for part in ("pending", "queued")
    }


def _waiting(subject: Subject, nonce: int) -> Json:
    content = subject.node.rpc("txpool_content")["pending"]
    entries = {sender.lower(): by_nonce for sender, by_nonce in content.items()}
    return entries.get(RICH.address, {}).get(str(nonce))
