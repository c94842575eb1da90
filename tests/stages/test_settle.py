"""Sign, broadcast, confirm, finalize: the same bytes until they are final, and nothing is believed early."""

from dataclasses import replace
from random import Random

from executor.stages import broadcast
from executor.store import attempts
from signer.policy import Policy
from signer.service import Signer
from tests.stages.conftest import Line

ETHER = 10**18


class Throw(Random):
    """Falls as it is told."""

    def __init__(self, throw: float) -> None:
        super().__init__(0)
        self._throw = throw

    def random(self) -> float:
        return self._throw


def statuses(line: Line) -> list[str]:
    return [row[0] for row in line.rows("SELECT status FROM attempt ORDER BY nonce, seq")]


def test_success_is_declared_at_the_depth_of_the_chain_and_not_before(line: Line) -> None:
    execution_id = line.execution("one", {})
    line.send()
    assert line.settle() == {}
    assert statuses(line) == ["SENT"]
    line.mine()
    assert line.settle() == {}
    assert statuses(line) == ["MINED"]
    line.mine()
    assert line.settle() == {}
    line.mine()
    assert line.settle() == {execution_id: "SUCCEEDED"}
    assert statuses(line) == ["FINAL"]
    row = line.one(
        "SELECT state, closed_as, effect, witness_rule, cardinality(witness_endpoints) FROM nonce_reservation"
    )
    assert tuple(row) == ("CLOSED", "attempt", True, "depth 2", 1)


def test_a_retry_hands_over_the_stored_bytes_again(line: Line) -> None:
    line.execution("again", {})
    line.send()
    (sent,) = line.devnet.rpc("devnet_submissions")[-1:]
    line.devnet.rpc("anvil_dropTransaction", sent["hash"])
    assert line.broadcast() == 0, "not due yet"
    line.turn.record(lambda held: held.tx.exec_driver_sql("UPDATE attempt SET resend_at = clock_timestamp()").rowcount)
    assert line.broadcast() == 1
    again = line.devnet.rpc("devnet_submissions")[-1]
    assert again["raw"] == sent["raw"] == "0x" + bytes(line.one("SELECT raw FROM attempt")[0]).hex()
    assert line.one("SELECT count, verdict FROM broadcast")[0] == 2
    line.finish()
    assert statuses(line) == ["FINAL"]


def test_bytes_come_again_a_little_early_and_never_in_step(line: Line) -> None:
    """[B55] A round that came exactly each second met a provider's refusal of each third post for ever."""
    line.execution("spread", {})
    line.reserve()
    line.sign()
    waits = []
    for throw in (0.0, 0.5, 0.999):
        line.turn.record(
            lambda held: held.tx.exec_driver_sql("UPDATE attempt SET resend_at = clock_timestamp()").rowcount
        )
        assert broadcast.run(replace(line.turn, dice=Throw(throw)), line.client, False) == 1
        (waited,) = line.one(
            "SELECT extract(epoch FROM resend_at - (SELECT max(last_at) FROM broadcast))::float8 FROM attempt"
        )
        waits.append(round(waited))
    assert waits == [12, 10, 8]


def test_what_is_due_brings_along_what_no_node_has_taken_below_it(line: Line) -> None:
    """[B14] Two groups of refused bytes with waits of their own: a node got the upper one first, with a gap below it."""
    for i in range(4):
        line.execution(f"gap-{i}", {})
    line.send()
    hashes = [sent["hash"] for sent in line.devnet.rpc("devnet_submissions")[-4:]]
    line.devnet.rpc("anvil_dropAllTransactions")

    first = line.one("SELECT min(nonce) FROM attempt")[0]

    def due_in(*seconds: float) -> None:
        statement = (
            "UPDATE attempt SET resend_at = clock_timestamp() + make_interval(secs => (%s::float8[])[nonce - %s])"
        )
        waits = [float(wait) for wait in seconds]
        line.turn.record(lambda held: held.tx.exec_driver_sql(statement, (waits, first - 1)).rowcount)

    def selected() -> list[int]:
        with line.database.read() as tx:
            due = attempts.select_sendable(tx, line.account_id, 9, False, soon_seconds=600, longest_seconds=1200)
        return [sendable.nonce - first for sendable in due]

    due_in(300, 300, 0, 300)
    assert selected() == [0, 1, 2], "nothing above nonce 3 is due"
    due_in(900, 300, 0, 0)
    assert selected() == [1, 2, 3], "nonce 0 was taken, it waits for long"
    due_in(300, 300, 300, 300)
    assert selected() == [], "nothing is due"
    due_in(0.9, 0.9, 0, 11)
    assert line.broadcast() == 3
    assert [sent["hash"] for sent in line.devnet.rpc("devnet_submissions")[-3:]] == hashes[:3]


def test_a_reorg_takes_a_mined_transaction_back_and_the_same_bytes_go_out(line: Line) -> None:
    execution_id = line.execution("reorg", {})
    line.send()
    line.mine()
    line.settle()
    assert statuses(line) == ["MINED"]
    line.devnet.rpc("anvil_rollback", 1)
    line.devnet.rpc("anvil_dropAllTransactions")
    line.mine()
    line.settle()
    assert statuses(line) == ["SENT"]
    assert line.broadcast() == 1, "due at once after a reorg"
    assert line.finish() == {execution_id: "SUCCEEDED"}
    intervals = line.rows("SELECT orphaned_at IS NULL FROM receipt ORDER BY receipt_id")
    assert [row[0] for row in intervals] == [False, True]
    raws = {
        s["raw"]
        for s in line.devnet.rpc("devnet_submissions")
        if s["hash"] == "0x" + bytes(line.one("SELECT hash FROM attempt")[0]).hex()
    }
    assert len(raws) == 1


def test_a_reverted_transaction_ends_reverted_and_frees_its_once(line: Line) -> None:
    create = {
        "from": line.devnet.rpc("eth_accounts")[5],
        "data": "0x600480600b6000396000f3600080fd",
        "gas": hex(200_000),
    }
    hash_ = line.devnet.rpc("eth_sendTransaction", create)
    line.mine()
    contract = bytes.fromhex(line.devnet.rpc("eth_getTransactionReceipt", hash_)["contractAddress"][2:])
    reverted = line.execution("reverted", {"recipient": contract, "gas": 60_000, "once": "x"})
    line.send()
    assert line.finish() == {reverted: "REVERTED"}
    again = line.execution("again", {"once": "x"})
    line.send()
    assert line.finish() == {again: "SUCCEEDED"}


def test_a_policy_refusal_after_the_reservation_is_closed_by_a_cancel(line: Line) -> None:
    account = line.turn.account
    strict = Policy(max_fee_per_gas_wei=100 * 10**9, max_value_wei=1)
    line.signer = Signer(line.database.engine, line.signer._backends, {(account.chain_id, account.address): strict})
    dear = line.execution("dear", {"value": 2})
    cheap = line.execution("cheap", {"value": 1})
    line.reserve()
    assert line.sign() == 2
    assert statuses(line) == ["REFUSED", "DRAFT", "SIGNED"]
    assert line.broadcast() == 0, "a refused head stops what is behind it"
    line.sign()
    assert line.broadcast() == 2
    assert line.finish() == {dear: "CANCELLED", cheap: "SUCCEEDED"}
    assert line.one("SELECT steps_effective FROM execution WHERE execution_id = %s", dear)[0] == 0


def test_a_halted_account_signs_and_sends_nothing_new_and_still_settles(line: Line) -> None:
    sent = line.execution("sent", {})
    line.send()
    signed = line.execution("signed", {"value": 2})
    line.reserve()
    line.sign()
    drafted = line.execution("drafted", {"value": 3})
    line.reserve()
    with line.database.transaction() as tx:
        tx.exec_driver_sql("UPDATE account SET state = 'halted', reason = 'test'")
    line.execution("planned", {"value": 4})
    assert line.reserve() == 0
    assert line.sign(halted=True) == 0
    assert line.broadcast(halted=True) == 0
    assert line.finish() == {sent: "SUCCEEDED"}
    assert line.state(signed)[0] == line.state(drafted)[0] == "RUNNING"


def test_posts_are_few_whatever_the_size_of_the_batch(line: Line) -> None:
    for i in range(4):
        line.execution(f"posts{i}", {"value": i + 1})
    line.reserve()
    line.sign()
    before = line.client.posts
    assert line.broadcast() == 4
    assert line.client.posts - before == 1
    line.mine()
    view = line.view()
    before = line.client.posts
    from executor.stages import confirm

    confirm.run(line.turn, line.client, view)
    assert line.client.posts - before == 2, "receipts, then block hashes"
