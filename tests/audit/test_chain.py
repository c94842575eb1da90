"""G7 and G10 beside a real chain: what the rows say against what stands in its blocks."""

from collections.abc import Callable

import pytest

from executor.audit import audit
from executor.errors import ConfigError, Unreachable
from tests.audit import histories
from tests.audit.planting import disarm, names
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


def _settled(rows: Rows, lane: Lane, chain: Devnet) -> None:
    histories.settled_on(chain, rows, lane, CALL, KEY)


def _after(statement: str) -> Callable[[Rows, Lane, Devnet], None]:
    """What the chain carried out, and then rows that say something else."""

    def break_it(rows: Rows, lane: Lane, chain: Devnet) -> None:
        _settled(rows, lane, chain)
        disarm(rows)
        assert rows.run(statement) > 0

    return break_it


def _end(rows: Rows, lane: Lane, chain: Devnet, execution_id: str, nonce: int, seq: int) -> None:
    """Record as final, at the newest block, what that block need not hold."""
    block = chain.rpc("eth_getBlockByNumber", "latest", False)
    seen = Sighting(number=int(block["number"], 16), hash=bytes.fromhex(block["hash"][2:]))
    lifecycle.mine(rows, lane, nonce, seen, seq)
    lifecycle.finalize(rows, lane, nonce, seen, seq)
    lifecycle.change(rows, lane, execution_id, "SUCCEEDED")


def _other_attempt(rows: Rows, lane: Lane, chain: Devnet) -> None:
    execution_id = histories.planned(rows, lane, [CALL])
    (nonce,) = histories.reserved(rows, lane, execution_id)
    first = histories.sign(rows, lane, nonce, CALL)
    histories.sign(rows, lane, nonce, CALL, seq=1, kind="BUMP")
    chain.rpc("eth_sendRawTransaction", "0x" + first.hex())
    _end(rows, lane, chain, execution_id, nonce, 1)


def _never_sent(rows: Rows, lane: Lane, chain: Devnet) -> None:
    execution_id = histories.planned(rows, lane, [CALL])
    (nonce,) = histories.reserved(rows, lane, execution_id)
    histories.sign(rows, lane, nonce, CALL)
    _end(rows, lane, chain, execution_id, nonce, 0)


def _used_elsewhere(rows: Rows, lane: Lane, chain: Devnet) -> None:
    count = int(chain.rpc("eth_getTransactionCount", "0x" + lane.address.hex(), "latest"), 16)
    chain.rpc("eth_sendRawTransaction", "0x" + histories.raw(count, Call(value=99)).hex())


def _used_at_reservation(rows: Rows, lane: Lane, chain: Devnet) -> None:
    histories.reserved(rows, lane, histories.planned(rows, lane, [CALL]))
    _used_elsewhere(rows, lane, chain)


ON_CHAIN: dict[str, tuple[Callable[[Rows, Lane, Devnet], None], set[str], str]] = {
    "used-above": (_used_elsewhere, set(), "account account_id=1"),
    "used-outside": (_used_at_reservation, set(), "account account_id=1"),
    "closed-uncounted": (_never_sent, {"not-on-chain"}, "account account_id=1"),
    "not-on-chain": (_never_sent, {"closed-uncounted"}, "attempt account_id=1 seq=0"),
    "mined-beside": (_other_attempt, {"not-on-chain"}, "attempt account_id=1 seq=0"),
    "other-genesis": (_after("UPDATE account SET genesis_hash = sha256('x')"), set(), "account account_id=1"),
    "other-block": (_after("UPDATE receipt SET block_hash = sha256('x')"), set(), "attempt account_id=1 seq=0"),
    "other-status": (
        _after("UPDATE receipt SET status = 0"),
        {"effect-denied", "other-end"},
        "attempt account_id=1 seq=0",
    ),
    "witness-gone": (
        _after("UPDATE nonce_reservation SET witness_hash = sha256('x')"),
        set(),
        "nonce_reservation account_id=1",
    ),
    "witness-shallow": (
        _after("UPDATE nonce_reservation SET witness_rule = 'depth ' || witness_number"),
        set(),
        "nonce_reservation account_id=1",
    ),
}
"""How each kind is planted beside a chain, what cannot but be found with it, and a row that must be named."""


@pytest.mark.parametrize("kind", ON_CHAIN)
def test_rows_that_say_something_else_than_the_chain(
    rows: Rows, on_chain: Lane, chain: Devnet, database_url: str, kind: str
) -> None:
    break_it, also, row = ON_CHAIN[kind]
    break_it(rows, on_chain, chain)
    found = audit(database_url, {31337: [chain.url]}).violations
    assert {violation.kind for violation in found} == {kind, *also}, found
    assert names([violation for violation in found if violation.kind == kind], row), found


def test_a_receipt_of_another_height_is_another_block(
    rows: Rows, on_chain: Lane, chain: Devnet, database_url: str
) -> None:
    _after("UPDATE receipt SET block_number = block_number - 1")(rows, on_chain, chain)
    assert [v.kind for v in audit(database_url, {31337: [chain.url]}).violations] == ["other-block"]


def test_a_success_that_a_reorg_took_back(rows: Rows, on_chain: Lane, chain: Devnet, database_url: str) -> None:
    snapshot = chain.rpc("evm_snapshot")
    histories.settled_on(chain, rows, on_chain, CALL, KEY)
    assert _found(database_url, chain) == []
    chain.rpc("evm_revert", snapshot)
    chain.rpc("evm_mine")
    found = _found(database_url, chain)
    assert {promise for promise, _ in found} == {"G10"}
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
