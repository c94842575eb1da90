"""Reconcile halts on the grounds of P15 and on no others, and closes as foreign only what P5 allows."""

import pytest
from eth_account import Account as EthAccount

from devnet.testing import Devnet
from executor.stages import reconcile
from tests.stages.conftest import ADDRESS, KEY, Line


def foreign(line: Line, nonce: int, *, tip: int = 50 * 10**9, value: int = 5) -> str:
    """The key used elsewhere: a transaction that is none of ours."""
    return spend(line.devnet, nonce, tip=tip, value=value)


def spend(devnet: Devnet, nonce: int, *, tip: int = 50 * 10**9, value: int = 5) -> str:
    """A transaction of the account's key."""
    transaction = {
        "chainId": 31337,
        "nonce": nonce,
        "to": "0x" + "33" * 20,
        "value": value,
        "gas": 21_000,
        "maxFeePerGas": 90 * 10**9,
        "maxPriorityFeePerGas": tip,
        "type": 2,
    }
    transaction["to"] = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"
    raw = EthAccount.sign_transaction(transaction, KEY).raw_transaction
    return str(devnet.rpc("eth_sendRawTransaction", "0x" + bytes(raw).hex()))


def run(line: Line) -> str | None:
    return reconcile.run(line.turn, line.client, line.signer)


def test_agreement_is_silent_also_with_work_under_way(line: Line) -> None:
    line.execution("a", {})
    line.send()
    assert run(line) is None
    line.mine()
    line.settle()
    assert run(line) is None
    line.devnet.rpc("anvil_rollback", 1)
    assert run(line) is None, "a latest nonce that goes back is a reorg (P15)"
    line.mine()
    line.finish()
    assert run(line) is None


def test_an_account_may_begin_above_the_final_block(devnet: Devnet, request: pytest.FixtureRequest) -> None:
    spend(devnet, int(devnet.rpc("eth_getTransactionCount", ADDRESS, "latest"), 16))
    line = request.getfixturevalue("line")
    assert line.view().nonce_final < line.view().nonce_latest == line.account().first_nonce
    assert run(line) is None
    assert line.account().state == "open"


def test_the_key_used_elsewhere_halts(line: Line) -> None:
    foreign(line, line.view().nonce_latest)
    line.mine()
    why = run(line)
    assert why is not None
    assert "the key was used elsewhere or rows are lost" in why
    assert (line.account().state, line.account().reason) == ("halted", why)


def test_code_at_the_address_halts(line: Line) -> None:
    line.devnet.rpc("anvil_setCode", "0x" + line.turn.account.address.hex(), "0x6000")
    try:
        assert "code at the account's address" in str(run(line))
    finally:
        line.devnet.rpc("anvil_setCode", "0x" + line.turn.account.address.hex(), "0x")


def test_a_nonce_a_stranger_used_is_closed_with_evidence_and_parks_the_execution(line: Line) -> None:
    execution_id = line.execution("taken", {"value": 7})
    line.reserve()
    line.sign()
    hash_ = foreign(line, line.view().nonce_latest)
    line.mine()
    assert run(line) is None
    assert line.state(execution_id)[0] == "RUNNING", "not final yet (P5)"
    line.mine(2)
    assert run(line) is None
    assert line.state(execution_id)[0] == "PARKED"
    row = line.one("SELECT closed_as, '0x' || encode(foreign_hash, 'hex'), effect FROM nonce_reservation")
    assert tuple(row) == ("foreign", hash_, None)
    following = line.execution("following", {"value": 8})
    line.send()
    assert line.finish() == {following: "SUCCEEDED"}


def test_a_nonce_with_an_unsigned_draft_is_signed_before_it_is_judged(line: Line) -> None:
    """P5: what used it may be our own bytes of before a rewind; only signing them anew tells."""
    execution_id = line.execution("drafted", {"value": 7})
    line.reserve()
    foreign(line, line.view().nonce_latest)
    line.mine(3)
    assert run(line) is None
    assert line.one("SELECT state FROM nonce_reservation")[0] == "OPEN"
    line.sign()
    assert run(line) is None
    assert line.state(execution_id)[0] == "PARKED"


def test_our_own_intent_under_an_unknown_hash_halts_and_stays_open(line: Line) -> None:
    execution_id = line.execution(
        "ours", {"value": 5, "recipient": bytes.fromhex("90F79bf6EB2c4f870365E785982E1f101E93b906")}
    )
    line.reserve()
    line.sign()
    foreign(line, line.view().nonce_latest, value=5)
    line.mine(3)
    why = run(line)
    assert line.account().state == "halted"
    assert "our own intent under the unknown hash" in str(line.account().reason)
    assert why == line.account().reason
    assert line.state(execution_id)[0] == "RUNNING"
    assert line.one("SELECT state FROM nonce_reservation")[0] == "OPEN"


def test_bytes_that_only_the_journal_has_halt(line: Line) -> None:
    """P5: the rows lost the variant that was mined; it is no stranger's, and nothing in the rows would ever close it."""
    execution_id = line.execution("lost", {})
    line.send()
    (hash_,) = line.one("SELECT '0x' || encode(hash, 'hex') FROM attempt")
    with line.database.transaction() as tx:
        tx.exec_driver_sql("ALTER TABLE attempt DISABLE TRIGGER ALL")
        tx.exec_driver_sql("UPDATE attempt SET hash = sha256(hash), raw = sha256(raw)")
        tx.exec_driver_sql("ALTER TABLE attempt ENABLE TRIGGER ALL")
    line.mine()
    assert run(line) is None, "not final yet"
    line.mine(2)
    why = run(line)
    assert line.account().state == "halted"
    assert why == line.account().reason
    assert f"was used by {hash_}, which the signer's journal has and no row does" in str(line.account().reason)
    assert line.state(execution_id)[0] == "RUNNING"


def test_a_reorg_past_finality_is_noticed_by_the_witness(line: Line) -> None:
    line.execution("deep", {})
    line.send()
    line.finish()
    snapshot_depth = 4
    line.devnet.rpc("anvil_rollback", snapshot_depth)
    line.devnet.rpc("evm_increaseTime", 100)
    line.mine(8)
    why = run(line)
    assert why is not None
    assert "past finality" in why
    assert line.account().state == "halted"


def test_a_closing_does_not_bury_a_witness_that_a_reorg_past_finality_changed(line: Line) -> None:
    line.execution("first", {})
    line.send()
    line.finish()
    second = line.execution("second", {})
    line.send()
    lost = line.view().nonce_latest - 1
    line.devnet.rpc("anvil_rollback", 4)
    line.devnet.rpc("evm_increaseTime", 100)
    foreign(line, lost)
    line.mine(8)

    line.settle()

    assert line.state(second)[0] == "RUNNING"
    assert line.account().state == "halted"
    assert "past finality" in str(line.account().reason)


def test_a_journal_that_knows_more_than_the_rows_halts(line: Line) -> None:
    line.execution("lost", {})
    line.reserve()
    line.sign()
    with line.database.transaction() as tx:
        # What a database restored from a backup looks like: the journal's tail has no rows.
        tx.exec_driver_sql(
            "INSERT INTO signer.binding SELECT chain_id, address, nonce + 1, 'pay/id/gone', 0, digest, tx_type, 'intent' FROM signer.binding"
        )
    why = run(line)
    assert why is not None
    assert "the rows do not: restored or copied" in why
