"""G7 and G10 beside a real chain: what the rows say against what stands in its blocks."""

import pytest

from executor.audit import audit
from executor.errors import ConfigError, Unreachable
from tests.audit import histories
from tests.audit.planting import disarm
from tests.store import lifecycle
from tests.store.rows import Call, Lane, Rows, Sighting
from tests.support.devnet import Devnet

CALL = Call(value=7)
KEY = histories.KEYS[0]


@pytest.fixture
def on_chain(rows: Rows, chain: Devnet) -> Lane:
    """The first development account, from the nonce the node counts now."""
    address = histories.Account.from_key(KEY).address
    lane = rows.account(first_nonce=int(chain.rpc("eth_getTransactionCount", address, "latest"), 16))
    rows.strategy(lane)
    return lane


def _found(url: str, chain: Devnet) -> list[tuple[str, str]]:
    return [(v.promise, v.sentence) for v in audit(url, {31337: [chain.url]}).violations]


def test_what_the_chain_carried_out_is_clean(rows: Rows, on_chain: Lane, chain: Devnet, database_url: str) -> None:
    for value in (1, 2, 3):
        histories.settled_on(chain, rows, on_chain, Call(value=value), KEY)
    report = audit(database_url, {31337: [chain.url]})
    assert report.violations == []
    assert report.notices == []
    assert (report.counts["transactions_on_chain"], report.counts["receipts_compared"]) == (3, 3)
    assert not any("no endpoint" in line for line in report.not_checked)


def test_a_mined_and_an_unsent_nonce_are_clean(rows: Rows, on_chain: Lane, chain: Devnet, database_url: str) -> None:
    """What is not final yet may be ahead of the rows or behind them."""
    for sent in (True, False):
        execution_id = histories.planned(rows, on_chain, [CALL])
        (nonce,) = histories.reserved(rows, on_chain, execution_id)
        data = histories.sign(rows, on_chain, nonce, CALL)
        if sent:
            chain.rpc("eth_sendRawTransaction", "0x" + data.hex())
    assert _found(database_url, chain) == []


RECEIPTS = {
    "another block": ("its receipt row names", "UPDATE receipt SET block_number = block_number - 1"),
    "another block hash": ("its receipt row names", "UPDATE receipt SET block_hash = sha256('x')"),
    "another status": ("has status 1 on chain", "UPDATE receipt SET status = 0"),
    "a witness that is not canonical": ("is not canonical", "UPDATE nonce_reservation SET witness_hash = sha256('x')"),
    "a witness that is not deep enough": (
        "reaches only",
        "UPDATE nonce_reservation SET witness_rule = 'depth ' || witness_number",
    ),
}


@pytest.mark.parametrize("case", RECEIPTS)
def test_rows_that_say_more_than_the_chain(
    rows: Rows, on_chain: Lane, chain: Devnet, database_url: str, case: str
) -> None:
    words, statement = RECEIPTS[case]
    histories.settled_on(chain, rows, on_chain, CALL, KEY)
    disarm(rows)
    rows.run(statement)
    found = _found(database_url, chain)
    assert {promise for promise, _ in found} == {"G10"}, found
    assert any(words in sentence for _, sentence in found), found


def test_another_attempt_was_mined_than_the_one_that_closed_the_nonce(
    rows: Rows, on_chain: Lane, chain: Devnet, database_url: str
) -> None:
    execution_id = histories.planned(rows, on_chain, [CALL])
    (nonce,) = histories.reserved(rows, on_chain, execution_id)
    first = histories.sign(rows, on_chain, nonce, CALL)
    histories.sign(rows, on_chain, nonce, CALL, seq=1, kind="BUMP")
    chain.rpc("eth_sendRawTransaction", "0x" + first.hex())
    block = chain.rpc("eth_getBlockByNumber", "latest", False)
    seen = Sighting(number=int(block["number"], 16), hash=bytes.fromhex(block["hash"][2:]))
    lifecycle.mine(rows, on_chain, nonce, seen, seq=1)
    lifecycle.finalize(rows, on_chain, nonce, seen, seq=1)
    lifecycle.change(rows, on_chain, execution_id, "SUCCEEDED")
    found = _found(database_url, chain)
    assert {promise for promise, _ in found} == {"G10"}
    assert ["closed by something else" in s.lower() for _, s in found] == [True, False], found
    assert "stands in no canonical block" in found[1][1]


def test_a_success_that_never_was_on_chain(rows: Rows, on_chain: Lane, chain: Devnet, database_url: str) -> None:
    execution_id = histories.planned(rows, on_chain, [CALL])
    (nonce,) = histories.reserved(rows, on_chain, execution_id)
    histories.sign(rows, on_chain, nonce, CALL)
    block = chain.rpc("eth_getBlockByNumber", "latest", False)
    seen = Sighting(number=int(block["number"], 16), hash=bytes.fromhex(block["hash"][2:]))
    lifecycle.mine(rows, on_chain, nonce, seen)
    lifecycle.finalize(rows, on_chain, nonce, seen)
    lifecycle.change(rows, on_chain, execution_id, "SUCCEEDED")
    found = _found(database_url, chain)
    assert [promise for promise, _ in found] == ["G7", "G10"]
    assert "is CLOSED, the chain counts" in found[0][1]


def test_a_success_that_a_reorg_took_back(rows: Rows, on_chain: Lane, chain: Devnet, database_url: str) -> None:
    snapshot = chain.rpc("evm_snapshot")
    histories.settled_on(chain, rows, on_chain, CALL, KEY)
    assert _found(database_url, chain) == []
    chain.rpc("evm_revert", snapshot)
    chain.rpc("evm_mine")
    found = _found(database_url, chain)
    assert {promise for promise, _ in found} == {"G7", "G10"}
    assert any("no canonical block" in sentence for _, sentence in found)


@pytest.mark.parametrize("halted", [False, True])
@pytest.mark.parametrize("reserved", [False, True])
def test_a_key_used_elsewhere(
    rows: Rows, on_chain: Lane, chain: Devnet, database_url: str, halted: bool, reserved: bool
) -> None:
    """Above every reservation or at one: a violation while nobody has noticed, then a notice."""
    if reserved:
        histories.reserved(rows, on_chain, histories.planned(rows, on_chain, [CALL]))
    count = int(chain.rpc("eth_getTransactionCount", "0x" + on_chain.address.hex(), "latest"), 16)
    chain.rpc("eth_sendRawTransaction", "0x" + histories.raw(count, Call(value=99)).hex())
    if halted:
        rows.run("UPDATE account SET state = 'halted', reason = 'the key was used elsewhere'")
    report = audit(database_url, {31337: [chain.url]})
    assert [v.promise for v in report.violations] == ([] if halted else ["G7"])
    assert [("1 nonces were used outside" in notice) for notice in report.notices] == ([True] if halted else [])


def test_a_nonce_closed_as_foreign_is_accounted_for(
    rows: Rows, on_chain: Lane, chain: Devnet, database_url: str
) -> None:
    execution_id = histories.planned(rows, on_chain, [CALL])
    (nonce,) = histories.reserved(rows, on_chain, execution_id)
    chain.rpc("eth_sendRawTransaction", "0x" + histories.raw(nonce, Call(value=99)).hex())
    lifecycle.close_foreign(rows, on_chain, nonce)
    lifecycle.change(rows, on_chain, execution_id, "PARKED")
    disarm(rows)
    block = chain.rpc("eth_getBlockByNumber", "latest", False)
    rows.run(
        "UPDATE nonce_reservation SET witness_number = %s, witness_hash = %s",
        int(block["number"], 16),
        bytes.fromhex(block["hash"][2:]),
    )
    assert _found(database_url, chain) == []


def test_what_another_endpoint_has_is_found_there(rows: Rows, on_chain: Lane, chain: Devnet, database_url: str) -> None:
    histories.settled_on(chain, rows, on_chain, CALL, KEY)
    report = audit(database_url, {31337: ["http://127.0.0.1:9", chain.url]})
    assert report.violations == []


def test_a_chain_that_does_not_answer(rows: Rows, on_chain: Lane, database_url: str) -> None:
    with pytest.raises(Unreachable, match="no endpoint of chain 31337 answers") as caught:
        audit(database_url, {31337: ["http://127.0.0.1:9"]})
    assert caught.value.exit_code == 3


def test_an_endpoint_of_another_chain(rows: Rows, chain: Devnet, database_url: str) -> None:
    rows.account(chain_id=1)
    with pytest.raises(ConfigError, match="serves chain 31337, not 1"):
        audit(database_url, {1: [chain.url]})


def test_a_chain_that_is_not_given_is_said_so(rows: Rows, on_chain: Lane, database_url: str) -> None:
    assert any("no endpoint of chain 31337" in line for line in audit(database_url, {}).not_checked)
    assert any("no endpoint of chain 31337" in line for line in audit(database_url, None).not_checked)
