"""Whole histories with real signatures: what a worker would have written, and what the chain says about it."""

from collections.abc import Sequence

from eth_account import Account
from eth_hash.auto import keccak

from chain.types import checksum
from tests.store import lifecycle
from tests.store.rows import PAYEE, Call, Lane, Rows, Sighting
from tests.support.devnet import Devnet

KEYS = (
    bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"),
    bytes.fromhex("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
    bytes.fromhex("5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"),
)
GWEI = 10**9
FEES = (30_000, 20 * GWEI, GWEI)
BUMPED = (30_000, 30 * GWEI, 2 * GWEI)
SALARY = Call(value=10**15, once="invoice/8812")
FAILING_CODE = bytes.fromhex("60006000fd")


def raw(
    nonce: int, call: Call, *, fees: tuple[int, int, int] = FEES, chain_id: int = 31337, key: bytes = KEYS[0]
) -> bytes:
    """Signed bytes of a type 2 transaction, made by eth_account."""
    gas, cap, tip = fees
    transaction = {
        "type": 2,
        "chainId": chain_id,
        "nonce": nonce,
        "to": checksum(call.recipient) if call.recipient else "",
        "value": call.value,
        "data": call.data,
        "gas": gas,
        "maxFeePerGas": cap,
        "maxPriorityFeePerGas": tip,
        "accessList": [
            {"address": checksum(address), "storageKeys": ["0x" + one.hex() for one in keys]}
            for address, keys in call.access_list
        ],
    }
    return bytes(Account.sign_transaction(transaction, key).raw_transaction)


def itself(lane: Lane) -> Call:
    """What a cancel does."""
    return Call(recipient=lane.address, value=0)


def planned(
    rows: Rows, lane: Lane, calls: Sequence[Call] = (SALARY,), *, strategy: str = "payroll", key: str | None = None
) -> str:
    """A PLANNED execution."""
    execution_id = rows.pending(lane, strategy, key=key)
    rows.plan(lane, execution_id, calls)
    return execution_id


def reserved(rows: Rows, lane: Lane, execution_id: str) -> list[int]:
    """Its nonces, each with a draft at FEES."""
    with rows.held(lane):
        steps = rows.value("SELECT steps FROM execution WHERE execution_id = %s", execution_id)
        nonces = [rows.reserve_step(lane, execution_id, step) for step in range(steps)]
        for nonce in nonces:
            rows.draft(lane, nonce, fees=FEES)
        rows.run("UPDATE execution SET state = 'RUNNING' WHERE execution_id = %s", execution_id)
    return nonces


def sign(
    rows: Rows, lane: Lane, nonce: int, call: Call, *, key: bytes = KEYS[0], seq: int = 0, kind: str = "SEND"
) -> bytes:
    """Sign one attempt and hand it over: DRAFT → SENT. The bytes."""
    fees = FEES if kind == "SEND" else BUMPED
    if kind != "SEND":
        with rows.held(lane):
            rows.draft(lane, nonce, seq, kind, fees)
    data = raw(nonce, itself(lane) if kind == "CANCEL" else call, fees=fees, key=key, chain_id=lane.chain_id)
    lifecycle.sign(rows, lane, nonce, data, seq)
    lifecycle.send(rows, lane, nonce, seq)
    with rows.held(lane):
        rows.run(
            "INSERT INTO broadcast (account_id, nonce, seq, endpoint, verdict, token) VALUES (%s, %s, %s, 'node', 'accepted', %s)",
            lane.account_id,
            nonce,
            seq,
            lane.token,
        )
    journal(rows, lane, nonce, kind, fees, data)
    return data


def journal(rows: Rows, lane: Lane, nonce: int, kind: str, fees: tuple[int, int, int], data: bytes) -> None:
    """What the signer notes about a signature."""
    identity = (lane.chain_id, lane.address)
    rows.run(
        "INSERT INTO signer.account VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        *identity,
        lane.token,
        lane.lease_id,
    )
    rows.run(
        "INSERT INTO signer.binding SELECT %s, %s, nonce, execution_id, step, intent_digest, transaction_type, 'intent'"
        " FROM nonce_reservation WHERE (account_id, nonce) = (%s, %s) ON CONFLICT DO NOTHING",
        *identity,
        lane.account_id,
        nonce,
    )
    if kind == "CANCEL":
        rows.run(
            "UPDATE signer.binding SET state = 'cancel' WHERE (chain_id, address, nonce) = (%s, %s, %s)",
            *identity,
            nonce,
        )
    gas, cap, tip = fees
    rows.run(
        "INSERT INTO signer.signature (chain_id, address, nonce, sighash, kind, max_fee_wei, tip_wei, gas, token)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        *identity,
        nonce,
        keccak(b"sighash" + data),
        kind,
        cap,
        tip,
        gas,
        lane.token,
    )
    rows.run(
        "UPDATE signer.signature SET raw = %s, hash = %s WHERE (chain_id, address, nonce, sighash) = (%s, %s, %s, %s)",
        data,
        keccak(data),
        *identity,
        nonce,
        keccak(b"sighash" + data),
    )


def paid(
    rows: Rows,
    lane: Lane,
    calls: Sequence[Call] = (SALARY,),
    *,
    key: str | None = None,
    status: int = 1,
    strategy: str = "payroll",
) -> str:
    """An execution that ended, in rows only."""
    execution_id = planned(rows, lane, calls, key=key, strategy=strategy)
    for nonce, call in zip(reserved(rows, lane, execution_id), calls, strict=True):
        sign(rows, lane, nonce, call)
        lifecycle.mine(rows, lane, nonce, Sighting(status=status))
        lifecycle.finalize(rows, lane, nonce)
    lifecycle.change(rows, lane, execution_id, "SUCCEEDED" if status else "REVERTED")
    return execution_id


def everything(rows: Rows, lane: Lane) -> None:
    """One execution of each kind, legally; the account and strategy of `lane`."""
    paid(rows, lane)
    paid(rows, lane, [Call(value=2), Call(value=3, data=b"\x01\x02", access_list=((PAYEE, (b"\x07" * 32,)),))], key="a")
    paid(rows, lane, [Call(value=4)], status=0)
    again = planned(rows, lane, [SALARY])
    with rows.held(lane):
        rows.run(
            "INSERT INTO already_paid (execution_id, step, account_id, once, paid_execution_id, paid_step, paid_hash, token)"
            " SELECT %s, 0, r.account_id, r.once, r.execution_id, r.step, a.hash, %s FROM nonce_reservation r"
            " JOIN attempt a USING (account_id, nonce) WHERE r.once = %s",
            again,
            lane.token,
            SALARY.once,
        )
        rows.run("UPDATE execution SET state = 'RUNNING' WHERE execution_id = %s", again)
    lifecycle.change(rows, lane, again, "SUCCEEDED")
    bumped = planned(rows, lane, [Call(value=5)])
    (nonce,) = reserved(rows, lane, bumped)
    sign(rows, lane, nonce, Call(value=5))
    sign(rows, lane, nonce, Call(value=5), seq=1, kind="BUMP")
    lifecycle.mine(rows, lane, nonce, seq=1)
    lifecycle.finalize(rows, lane, nonce, seq=1)
    lifecycle.change(rows, lane, bumped, "SUCCEEDED")
    stopped = planned(rows, lane, [Call(value=6)])
    (nonce,) = reserved(rows, lane, stopped)
    sign(rows, lane, nonce, Call(value=6))
    sign(rows, lane, nonce, Call(value=6), seq=1, kind="CANCEL")
    lifecycle.mine(rows, lane, nonce, seq=1)
    lifecycle.finalize(rows, lane, nonce, seq=1)
    lifecycle.change(rows, lane, stopped, "CANCELLED")
    parked = planned(rows, lane, [Call(value=7)])
    (nonce,) = reserved(rows, lane, parked)
    lifecycle.close_foreign(rows, lane, nonce)
    lifecycle.change(rows, lane, parked, "PARKED")
    for state in ("SKIPPED", "FAILED", "CANCELLED"):
        lifecycle.change(rows, lane, rows.pending(lane), state)
    for call in (Call(value=8), Call(value=9)):
        (nonce,) = reserved(rows, lane, planned(rows, lane, [call]))
        sign(rows, lane, nonce, call)
    planned(rows, lane, [Call(value=10)])
    rows.pending(lane)


def orders(rows: Rows, lane: Lane) -> None:
    """After `everything`: two steps one after the other (nonces 9 and 10), a refused call whose cancel is out (11), and the
    reissue of the cancelled one.
    """
    execution_id = rows.pending(lane)
    rows.plan(lane, execution_id, [Call(value=11), Call(value=12)], order="final")
    for step, value in enumerate((11, 12)):
        with rows.held(lane):
            nonce = rows.reserve_step(lane, execution_id, step)
            rows.draft(lane, nonce, fees=FEES)
            rows.run(
                "UPDATE execution SET state = 'RUNNING' WHERE execution_id = %s AND state = 'PLANNED'", execution_id
            )
        sign(rows, lane, nonce, Call(value=value))
        lifecycle.mine(rows, lane, nonce)
        lifecycle.finalize(rows, lane, nonce)
    lifecycle.change(rows, lane, execution_id, "SUCCEEDED")
    (nonce,) = reserved(rows, lane, planned(rows, lane, [Call(value=13)]))
    with rows.held(lane):
        rows.run(
            "UPDATE attempt SET status = 'REFUSED', reason = 'policy' WHERE (account_id, nonce) = (%s, %s)",
            lane.account_id,
            nonce,
        )
    sign(rows, lane, nonce, Call(value=13), seq=1, kind="CANCEL")
    reissued = rows.value(
        "INSERT INTO execution (execution_id, strategy, slot, reissue_no, account_id, revision, payload_digest, state, due_at)"
        " SELECT execution_id || '/reissue/1', strategy, slot, 1, account_id, revision, payload_digest, 'PENDING', due_at FROM execution"
        " JOIN nonce_reservation USING (execution_id, account_id) WHERE (account_id, nonce) = (%s, 5) RETURNING execution_id",
        lane.account_id,
    )
    rows.plan(lane, reissued, [Call(value=6)])


def operated(rows: Rows) -> Lane:
    """A second account: a payment (nonce 40), a halt, an execution parked by the reopening, a strategy paused and resumed."""
    lane = rows.account("savings", address=bytes.fromhex("70997970c51812dc3a010c7d01b50e0d17dc79c8"), first_nonce=40)
    rows.strategy(lane, "saving")
    execution_id = planned(rows, lane, [Call(recipient=b"\x09" * 20, value=20)], strategy="saving")
    (nonce,) = reserved(rows, lane, execution_id)
    sign(rows, lane, nonce, Call(recipient=b"\x09" * 20, value=20), key=KEYS[1])
    lifecycle.mine(rows, lane, nonce)
    lifecycle.finalize(rows, lane, nonce)
    lifecycle.change(rows, lane, execution_id, "SUCCEEDED")
    rows.run("UPDATE account SET state = 'halted', reason = 'restored' WHERE account_id = %s", lane.account_id)
    lane = rows.take_over(lane)
    parked = rows.pending(lane, "saving")
    asked = "INSERT INTO request (kind, account_id, strategy, why, who) VALUES (%s, %s, %s, 'looked', 'ann') RETURNING request_id"
    answer = "UPDATE request SET answered_at = clock_timestamp(), granted = true, answer = 'done' WHERE request_id = %s"
    reopening = rows.value(asked, "reopen", lane.account_id, None)
    lifecycle.change(rows, lane, parked, "PARKED")
    with rows.held(lane):
        rows.run("UPDATE account SET state = 'open', reason = NULL WHERE account_id = %s", lane.account_id)
        rows.run(answer, reopening)
    rows.run("UPDATE strategy SET paused_at = now(), paused_why = 'x' WHERE name = 'saving'")
    rows.run("UPDATE strategy SET paused_at = NULL, paused_why = NULL WHERE name = 'saving'")
    rows.run(answer, rows.value(asked, "resume", lane.account_id, "saving"))
    return lane


def mine_on(node: Devnet, rows: Rows, lane: Lane, nonce: int, data: bytes, seq: int = 0) -> Sighting:
    """Send bytes to a real node and record the receipt it gives."""
    receipt = node.rpc("eth_getTransactionReceipt", node.rpc("eth_sendRawTransaction", "0x" + data.hex()))
    seen = Sighting(
        number=int(receipt["blockNumber"], 16),
        hash=bytes.fromhex(receipt["blockHash"][2:]),
        status=int(receipt["status"], 16),
        gas_used=int(receipt["gasUsed"], 16),
        price=int(receipt["effectiveGasPrice"], 16),
    )
    lifecycle.mine(rows, lane, nonce, seen, seq)
    return seen


def settled_on(node: Devnet, rows: Rows, lane: Lane, call: Call, key: bytes) -> int:
    """An execution that a real chain carried out. Its nonce."""
    execution_id = planned(rows, lane, [call])
    (nonce,) = reserved(rows, lane, execution_id)
    seen = mine_on(node, rows, lane, nonce, sign(rows, lane, nonce, call, key=key))
    lifecycle.finalize(rows, lane, nonce, seen)
    lifecycle.change(rows, lane, execution_id, "SUCCEEDED" if seen.status else "REVERTED")
    return nonce
