"""Calls whose answers were recorded from real geth: contracts put in place by state overrides, under every tracer.

`python -m tests.devnet.geth_calls` asks a geth again and keeps its answers in golden/geth_1_17_calls.json. geth's chain
for developers gives every precompile one wei.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.devnet.bytecode import BOOM, COUNTER, FACTORY, HALT, TOGGLE, TOKEN, TRANSFER, assemble, deploying
from tests.devnet.wallet import BOB, words

Json = Any
RECORD = Path(__file__).parent / "golden" / "geth_1_17_calls.json"
GENESIS = Path(__file__).parent / "differential" / "genesis.json"
RICH, TARGET, FIRST, MINER = ("0x" + pair * 20 for pair in ("a1", "71", "b1", "c1"))
GAS = 10_000_000

# calls TARGET in every way there is, and gives back what the last one said
PROXY = assemble(
    f"PUSH0 PUSH0 PUSH0 PUSH0 5 {TARGET} 100000 CALL POP PUSH0 PUSH0 PUSH0 PUSH0 {TARGET} GAS DELEGATECALL POP "
    f"PUSH0 PUSH0 PUSH0 PUSH0 {TARGET} GAS STATICCALL POP PUSH0 PUSH0 PUSH0 PUSH0 7 {TARGET} 100000 CALLCODE "
    "RETURNDATASIZE PUSH0 PUSH0 RETURNDATACOPY RETURNDATASIZE PUSH0 RETURN"
)
CONTRACTS = {
    "boom": BOOM,
    "counter": COUNTER,
    "factory": FACTORY,
    "halt": HALT,
    "toggle": TOGGLE,
    "underflow": assemble("1 ADD"),
    "bad jump": assemble("7 JUMP"),
    "undefined": b"\x0c",
    "self-destruct": assemble(f"{FIRST} SELFDESTRUCT"),
    "clears what it set": assemble("PUSH0 1 SSTORE 5 1 SSTORE PUSH0 1 SSTORE 1 SLOAD 2 SLOAD STOP"),
    "memory without end": assemble("1 0xffffffffffffffffffff MSTORE"),
    "precompiles": assemble(
        "0xabcd PUSH0 MSTORE 32 32 32 PUSH0 2 GAS STATICCALL POP 32 32 32 PUSH0 3 2 GAS CALL POP STOP"
    ),
    "looks around": assemble(
        f"{FIRST} BALANCE {MINER} EXTCODESIZE {MINER} EXTCODEHASH PUSH0 PUSH0 PUSH0 {MINER} EXTCODECOPY SELFBALANCE "
        "PREVRANDAO BASEFEE GASPRICE ORIGIN 3 PUSH0 PUSH0 MCOPY 1 2 TSTORE 2 TLOAD STOP"
    ),
    # a creation that stays, a call of it, a creation in the same place twice
    "creates": assemble(
        "0x6133ff5f526002601ef3 PUSH0 MSTORE 10 22 1 CREATE DUP1 PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 SWAP5 GAS CALL POP "
        "7 10 22 PUSH0 CREATE2 POP 7 10 22 PUSH0 CREATE2 POP STOP"
    ),
}
CALLERS = {
    "proxy": PROXY,
    "spends what it has not": assemble(
        f"PUSH0 PUSH0 4 PUSH0 0xffffffffffffffffff {TARGET} 100000 CALL PUSH0 MSTORE 3 PUSH0 0xffffffffffffffffff CREATE "
        "POP STOP"
    ),
    "logs around a call": assemble(
        f"32 PUSH0 LOG0 PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 {TARGET} GAS CALL POP 1 2 32 PUSH0 LOG2 STOP"
    ),
    "gives too little gas": assemble(f"PUSH0 PUSH0 PUSH0 PUSH0 PUSH0 {TARGET} 3000 CALL STOP"),
}
TRACERS: dict[str, dict[str, Json]] = {
    "": {},
    "memory": {"enableMemory": True, "enableReturnData": True, "disableStack": True, "disableStorage": True},
    "limit": {"limit": 1},
    "call": {"tracer": "callTracer", "tracerConfig": {"withLog": True}},
    "top": {"tracer": "callTracer", "tracerConfig": {"withLog": True, "onlyTopCall": True}},
    "prestate": {"tracer": "prestateTracer"},
    "prestate with empty": {"tracer": "prestateTracer", "tracerConfig": {"includeEmpty": True, "disableCode": True}},
    "diff": {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True, "disableCode": True}},
    "selectors": {"tracer": "4byteTracer"},
    "noop": {"tracer": "noopTracer"},
    "flat": {"tracer": "flatCallTracer"},
    "parity": {"tracer": "flatCallTracer", "tracerConfig": {"convertParityErrors": True, "includePrecompiles": True}},
    "mux": {"tracer": "muxTracer", "tracerConfig": {"callTracer": {}, "4byteTracer": None}},
}
BLOCK = {
    "number": "0x10",
    "time": hex(1_800_000_000),
    "baseFeePerGas": hex(10**9),
    "feeRecipient": MINER,
    "gasLimit": hex(30_000_000),
    "prevRandao": "0x" + "12" * 32,
}


def calls() -> Iterator[tuple[str, dict[str, Json], dict[str, Json]]]:
    """Name, call and state overrides."""
    rich = {RICH: {"balance": hex(10**20)}}
    plain: dict[str, Json] = {"from": RICH, "to": TARGET, "gas": hex(GAS)}

    def holding(code: bytes) -> dict[str, Json]:
        return {"code": "0x" + code.hex(), "balance": hex(10**18)}

    for name, code in CONTRACTS.items():
        yield name, plain, rich | {TARGET: holding(code)}
    for name, code in CALLERS.items():
        for callee in ("counter", "boom", "toggle", "self-destruct"):
            accounts = rich | {FIRST: holding(code), TARGET: holding(CONTRACTS[callee])}
            yield f"{name}: {callee}", plain | {"to": FIRST}, accounts
    transfer = "0x" + (TRANSFER + words([BOB.address, 7])).hex()
    yield "token", plain | {"data": transfer}, rich | {TARGET: holding(TOKEN)}
    delegating = {TARGET: {"code": "0xef0100" + FIRST[2:]}, FIRST: holding(COUNTER)}
    yield "delegated", plain, rich | delegating
    fees = {"value": "0x5", "maxFeePerGas": hex(5 * 10**9), "maxPriorityFeePerGas": "0x7"}
    yield "pays", plain | fees, rich | {TARGET: holding(COUNTER)}
    yield "moves value", plain | {"value": "0x5"}, rich
    listed = [{"address": TARGET, "storageKeys": ["0x" + "00" * 32]}]
    yield "listed", plain | {"accessList": listed}, rich | {TARGET: holding(COUNTER)}
    for name, code, gas in (
        ("deploys", deploying(COUNTER), GAS),
        ("deploys what is reserved", deploying(b"\xef\0"), 200_000),
        ("deploys too much for its gas", deploying(b"\1" * 2000), 200_000),
        ("fails in its init code", b"\xfe", 200_000),
    ):
        yield name, {"from": RICH, "data": "0x" + code.hex(), "gas": hex(gas)}, rich
    bare: dict[str, Json] = {"to": TARGET, "gas": hex(GAS)}
    refused: list[tuple[str, dict[str, Json]]] = [
        ("no funds", plain | {"from": FIRST, "value": "0x1"}),
        ("little gas", bare | {"gas": "0x1"}),
        ("little gas for data", bare | {"gas": hex(21_100), "data": "0x" + "ff" * 100}),
        ("fee cap below the base fee", plain | {"maxFeePerGas": "0x1"}),
        ("tip above the cap", plain | {"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}),
        ("two kinds of price", plain | {"gasPrice": "0x1", "maxFeePerGas": "0x2"}),
        ("blobs, none", bare | {"blobVersionedHashes": []}),
        ("blobs, wrong version", bare | {"blobVersionedHashes": ["0x" + "00" * 32]}),
        ("blobs to nobody", {"blobVersionedHashes": ["0x01" + "00" * 31], "data": "0x00"}),
        ("authorizations, none", bare | {"authorizationList": []}),
    ]
    for name, call in refused:
        yield f"refused: {name}", call, rich


def requests() -> Iterator[tuple[str, str, list[Json]]]:
    """Name, method and parameters of everything that is asked."""
    for name, call, accounts in calls():
        for method in ("eth_call", "eth_estimateGas"):
            yield f"{name} | {method}", method, [call, "latest", accounts, BLOCK]
        if "maxFeePerGas" not in call:  # it would depend on the node's base fee
            yield f"{name} | eth_createAccessList", "eth_createAccessList", [call, "latest", accounts]
        for tracer, options in TRACERS.items():
            if tracer and name.startswith("refused"):
                continue
            more = {"stateOverrides": accounts, "blockOverrides": BLOCK}
            yield f"{name} | {tracer or 'struct'}", "debug_traceCall", [call, "latest", options | more]


def record() -> None:
    """Ask geth and keep what it says."""
    from tests.support.geth import start_geth

    with tempfile.TemporaryDirectory() as folder, start_geth(Path(folder), GENESIS, mines=False) as geth:
        answers = {}
        for name, method, params in requests():
            reply = geth.request({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            answers[name] = {part: reply[part] for part in ("result", "error") if part in reply}
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(answer, separators=(',', ':'))}" for name, answer in answers.items()
    )
    RECORD.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    sys.exit(record())
