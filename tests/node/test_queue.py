"""Gaps, races and stuck queues (area B of the bug log): nonces are consecutive, and nothing is skipped or replaced."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.process.conftest import BOTH
from tests.support.devnet import start_devnet
from tests.support.proxy import RecordingProxy
from tests.support.proxy_script import SEND, nonce_of, on, raw_of
from tests.support.service import ETHER, Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("node-queue")]
Install = Callable[..., Service]
_SIGNER = 'signer = { kind = "keyfile", path = "treasury.key" }\npolicy = { max_fee_per_gas = "50 gwei" }'


def trigger_many(service: Service, count: int, strategy: str = "rent") -> list[str]:
    return [service.trigger(strategy, f"run-{i}") for i in range(count)]


def wait_all(service: Service, executions: list[str], seconds: float = 60.0) -> None:
    """Wait until all succeeded, each with one nonce, one attempt and one payload."""
    left = "SELECT count(*) FROM execution WHERE execution_id = ANY(%s) AND state <> 'SUCCEEDED'"
    service.wait(lambda: service.value(left, executions) == 0, "all succeed", seconds)
    assert service.value("SELECT max(seq) FROM attempt") == 0
    for proxy in service.proxies:
        assert all(len(raws) == 1 for raws in proxy.raws_by_nonce().values())


def nonces(service: Service, account: str = "treasury") -> list[int]:
    found = service.rows(
        "SELECT nonce FROM nonce_reservation JOIN account USING (account_id) WHERE name = %s ORDER BY nonce", account
    )
    return [row["nonce"] for row in found]


def test_a_region_of_bytes_that_never_arrived_is_sent_in_order(service_of_many: Service) -> None:
    """[B14]"""
    service = service_of_many
    service.proxy.refuse_sends()
    executions = trigger_many(service, 50)
    service.wait(lambda: service.value("SELECT count(*) FROM attempt WHERE status = 'SENT'") == 50, "all may be out")
    assert service.value("SELECT count(*) FROM broadcast WHERE verdict = 'ambiguous'") == 50
    service.proxy.allow_sends()

    wait_all(service, executions)
    assert nonces(service) == list(range(50))
    taken = [item.nonce for item in service.proxy.sent if item.forwarded]
    assert [n for i, n in enumerate(taken) if n not in taken[:i]] == list(range(50))


@pytest.fixture
def service_of_many(install: Install) -> Service:
    """Fifty nonces may be under way at once; a worker is there."""
    service = install()
    service.account(max_in_flight=50)
    service.pays("rent")
    service.register()
    service.start_worker("only")
    return service


@pytest.mark.parametrize("node_kind", BOTH, indirect=True)
def test_evicted_transactions_are_sent_again(install: Install) -> None:
    """[B15]"""
    service = install(on_order=True)
    wallet = service.account()
    service.pays("rent")
    service.register()
    service.start_worker("only")
    executions = trigger_many(service, 4)
    for execution in executions:
        service.wait_attempt(execution, "SENT")
    hashes = {row["nonce"]: row["hash"] for row in service.rows("SELECT nonce, hash FROM attempt")}
    before = len(service.proxy.sent)
    for nonce in (0, 1):
        service.node.rpc("anvil_dropTransaction", "0x" + hashes[nonce].hex())
    service.wait(lambda: {item.nonce for item in service.proxy.sent[before:]} >= {0, 1}, "both are sent again")
    service.mine(1)
    assert service.nonce(wallet.address) == 4
    service.mine(2)

    wait_all(service, executions)
    assert nonces(service) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("workers", "runs"), [(4, 25), pytest.param(8, 200, marks=[pytest.mark.chaos, pytest.mark.timeout(600)])]
)
def test_many_workers_two_senders_and_two_chains_do_not_collide(install: Install, workers: int, runs: int) -> None:
    """[B16] One key on two chains, another key beside it, several workers."""
    with start_devnet("--block-time", "0.3", "--chain-id", "1337") as other_node:
        service = install()
        with RecordingProxy(other_node.url, service._uncommitted) as other:
            wallet, second = service.account(max_in_flight=30), service.account("second", max_in_flight=30)
            other_node.rpc("anvil_setBalance", wallet.address, hex(ETHER))
            service._sections += [
                f'[chains.other]\nid = 1337\nendpoints = ["{other.url}"]\nfinal = {{ depth = 2 }}',
                f'[accounts.elsewhere]\nchain = "other"\naddress = "{wallet.address}"\nmax_in_flight = 30\n{_SIGNER}',
            ]
            for name, account in (("rent", "treasury"), ("wages", "second"), ("fees", "elsewhere")):
                service.pays(name, value=1000, account=account)
            service.register()
            for i in range(workers):
                service.start_worker(f"worker-{i}")
            executions = [e for name in ("rent", "wages", "fees") for e in trigger_many(service, runs, name)]

            wait_all(service, executions, 300)
            for account in ("treasury", "second", "elsewhere"):
                assert nonces(service, account) == list(range(runs))
            assert service.nonce(wallet.address) == service.nonce(second.address) == runs
            assert int(other_node.rpc("eth_getTransactionCount", wallet.address, "latest"), 16) == runs
            assert other.complaints == []
            assert all(len(raws) == 1 for raws in other.raws_by_nonce().values())
            for worker in service.workers:
                worker.terminate()
                worker.wait_ended()


def test_a_refusal_that_looks_definite_ends_nothing_and_leaves_no_hole(install: Install) -> None:
    """[B18] The node's words are kept with the nonce; without a bump or cancel by command the bytes go out until it takes them."""
    service = install()
    wallet = service.account()
    service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.script(refused := on(SEND).nonce(0).error(-32000, "exceeds block gas limit"))
    executions = trigger_many(service, 3)
    service.wait(lambda: refused.fired >= 2, "the first is refused again")
    service.wait(lambda: "rejected" in service.verdicts(executions[0]), "it is recorded")
    told = service.rows("SELECT detail FROM broadcast WHERE nonce = 0")
    assert told[0]["detail"] == "exceeds block gas limit"
    assert {service.state(execution) for execution in executions} == {"RUNNING"}
    assert service.nonce(wallet.address) == 0
    service.proxy.script()

    wait_all(service, executions)
    assert nonces(service) == [0, 1, 2]


@pytest.mark.parametrize(("queue", "runs"), [(8, 40), pytest.param(64, 150, marks=pytest.mark.chaos)])
def test_what_a_full_queue_of_the_node_dropped_is_sent_again(
    database_url: str, tmp_path: Path, queue: int, runs: int
) -> None:
    """[B21] The node keeps a few future nonces of a sender and drops the others without a word."""
    with (
        start_devnet("--block-time", "0.3", "--txpool.accountqueue", str(queue)) as node,
        Service(tmp_path, node, database_url) as service,
    ):
        service.account(max_in_flight=runs)
        service.pays("rent")
        service.register()
        service.start_worker("only")
        service.proxy.script(on(SEND).nonce(0).times(1).hold(released := threading.Event()))
        executions = trigger_many(service, runs)
        service.wait(lambda: len(service.proxy.raws_by_nonce()) > queue + 1, "later nonces are on their way")
        released.set()

        wait_all(service, executions)
        assert nonces(service) == list(range(runs))


@pytest.mark.parametrize(
    ("message", "entry"),
    [
        pytest.param("in-flight transaction limit reached for delegated accounts", "B22", id="B22"),
        pytest.param("address already reserved", "B23", id="B23"),
    ],
)
def test_not_now_keeps_bytes_nonce_and_provider(install: Install, message: str, entry: str) -> None:
    """[B22] [B23] Later ones wait for the first to be mined; the same bytes go out, with the fees they had."""
    service = install(on_order=True)
    service.account()
    service.pays("rent")
    service.register()
    service.start_worker("only")
    later = on(SEND).where(lambda call: nonce_of(raw_of(call)) > 0).error(-32000, message)
    service.proxy.script(later)
    executions = trigger_many(service, 3)
    service.wait(lambda: later.fired >= 4, "later ones are refused, again")
    fees = service.rows("SELECT nonce, max_fee, tip, raw FROM attempt ORDER BY nonce")
    service.mine(1)
    service.wait_attempt(executions[0], "MINED")
    assert {service.attempts(execution)[0]["status"] for execution in executions[1:]} == {"SENT"}
    service.proxy.script()
    given = len(service.proxy.sent)
    service.wait(lambda: {item.nonce for item in service.proxy.sent[given:]} >= {1, 2}, "they are taken")
    service.mine(3)

    wait_all(service, executions)
    assert service.rows("SELECT nonce, max_fee, tip, raw FROM attempt ORDER BY nonce") == fees
    assert nonces(service) == [0, 1, 2]
