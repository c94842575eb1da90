"""Providers that are behind, in several places at once, too busy or not a node at all (area F of the bug log)."""

import random
from collections.abc import Callable

import pytest

from tests.support.proxy_script import SEND, Rule, on
from tests.support.service import Service

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("node-providers")]
Install = Callable[..., Service]


def wait_paid(service: Service, executions: list[str], seconds: float = 60.0) -> None:
    left = "SELECT count(*) FROM execution WHERE execution_id = ANY(%s) AND state <> 'SUCCEEDED'"
    service.wait(lambda: service.value(left, executions) == 0, "all succeed", seconds)
    assert service.value("SELECT max(seq) FROM attempt") == 0


def test_an_outdated_count_moves_no_nonce(install: Install) -> None:
    """[B51] The provider counts as of ten blocks ago; each run starts when the one before is out."""
    service = install()
    service.account()
    service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.script(
        on("eth_getTransactionCount").where(lambda call: call["params"][1] in ("latest", "pending")).stale(10)
    )
    executions = []
    for i in range(4):
        executions.append(service.trigger("rent", f"run-{i}"))
        service.wait_attempt(executions[-1], "SENT")
        service.wait(lambda i=i: len(service.proxy.raws_by_nonce()) == i + 1, "it is out")
    wait_paid(service, executions)
    assert [service.reservations(e)[0]["nonce"] for e in executions] == [0, 1, 2, 3]
    assert all(len(raws) == 1 for raws in service.proxy.raws_by_nonce().values())


_PENDING: dict[str, tuple[Callable[[Rule], Rule], str | None]] = {
    "below": (lambda rule: rule.answer("0x0"), None),
    "one-below": (lambda rule: rule.answer("0x1"), None),
    "one-above": (lambda rule: rule.answer("0x3"), "pending transactions of unknown origin"),
    "missing": (lambda rule: rule.error(-32601, "the method does not exist"), "does not tell"),
    "null": (lambda rule: rule.answer(None), "does not tell"),
    "empty": (lambda rule: rule.answer("0x"), "does not tell"),
}
"""What a provider says of the pending count of an account with two transactions, and why it is not begun on that."""


def test_no_pending_count_moves_the_next_nonce(install: Install) -> None:
    """[B52] At first an account begins at its latest nonce or not at all; with rows a pending count decides nothing."""
    service = install()
    wallets = {name: service.account(name) for name in _PENDING}
    for name, wallet in wallets.items():
        service.pays(f"pay-{name}", account=name)
        for nonce in (0, 1):
            service.node.rpc("eth_sendRawTransaction", "0x" + wallet.sign(nonce, wallet.address).hex())
    service.wait(lambda: all(service.nonce(w.address) == 2 for w in wallets.values()), "each has a history")
    lies = [
        lie(on("eth_getTransactionCount").param(0, wallets[name].address).param(1, "pending"))
        for name, (lie, _) in _PENDING.items()
    ]
    service.register()
    service.proxy.script(*lies)
    service.start_worker("only")
    first = {name: service.trigger(f"pay-{name}", "first") for name in _PENDING}
    for name, (_, why) in _PENDING.items():
        if why is None:
            service.wait_state(first[name], "SUCCEEDED")
        else:
            service.wait(lambda n=name, w=why: w in (service.account_row(n)["attention"] or ""), f"{name} waits")
            assert service.account_row(name)["first_nonce"] is None
    service.proxy.script()
    wait_paid(service, list(first.values()))
    service.proxy.script(*lies)
    second = {name: service.trigger(f"pay-{name}", "second") for name in _PENDING}
    wait_paid(service, list(second.values()))

    for name in _PENDING:
        assert [service.reservations(runs[name])[0]["nonce"] for runs in (first, second)] == [2, 3]
        assert service.account_row(name)["first_nonce"] == 2


def test_heads_that_go_back_and_forth(install: Install) -> None:
    """[B53] Every other post is answered by a node two blocks behind, where the call would revert."""
    service = install()
    service.account()
    service.pays("rent")
    service.register()
    service.start_worker("only")
    service.proxy.script(on("eth_estimateGas").every(2).error(3, "execution reverted"), on().every(2).stale(2))
    executions = [service.trigger("rent", f"run-{i}") for i in range(4)]

    wait_paid(service, executions)
    moved = service.rows("SELECT to_state FROM history WHERE kind = 'execution' AND to_state IN ('FAILED', 'SKIPPED')")
    assert moved == []
    assert all(len(raws) == 1 for raws in service.proxy.raws_by_nonce().values())
    assert service.account_row()["state"] == "open"


_BROKEN: dict[str, Callable[[Rule], Rule]] = {
    "html": lambda rule: rule.http(200, b"<html>" + b"x" * 100_000 + b"</html>", "Content-Type: text/html"),
    "a string": lambda rule: rule.http(200, b'"rate limited"'),
    "a list": lambda rule: rule.http(200, b"[]"),
    "null": lambda rule: rule.http(200, b'{"jsonrpc":"2.0","id":1,"result":null}'),
    "502": lambda rule: rule.html(502),
    "429": lambda rule: rule.too_many("1"),
    "truncated": lambda rule: rule.truncate(),
    "another id": lambda rule: rule.wrong_id(),
    "an id as text": lambda rule: rule.wrong_id(str),
    "no gzip": lambda rule: rule.http(200, b"\x1f\x8bnot gzip", "Content-Encoding: gzip"),
    "empty": lambda rule: rule.http(200, b""),
    "reset": lambda rule: rule.reset(forward=True),
    "reset before": lambda rule: rule.reset(forward=False),
    "broken off": lambda rule: rule.break_off(),
}
"""What comes instead of an answer."""


@pytest.mark.parametrize("what", ["sends", "reads"])
def test_what_is_no_answer_is_unknown_for_sends_and_asked_again_for_reads(install: Install, what: str) -> None:
    """[B54]"""
    service = install(on_order=what == "sends")
    service.account()
    to = service.pays("rent")
    service.register()
    only = service.start_worker("only")
    service.wait(lambda: service.account_row()["first_nonce"] is not None, "the account has begun")
    methods = [SEND] if what == "sends" else ["eth_getBlockByNumber", "eth_getTransactionReceipt", "eth_estimateGas"]
    rules = [make(on(*methods).times(1 if what == "sends" else 2)) for make in _BROKEN.values()]
    service.proxy.script(*rules)
    execution = service.trigger("rent", "one")
    if what == "sends":
        service.wait(lambda: all(rule.fired for rule in rules), "every broken answer was given", 90)
        service.wait_attempt(execution, "SENT")
        assert set(service.verdicts(execution)) <= {"ambiguous", "rate limited"}
        assert service.state(execution) == "RUNNING"
        service.proxy.script()
        service.mine(3)

    service.assert_paid_once(execution, to)
    assert all(rule.fired for rule in rules)
    assert only.exit_code is None
    assert max(len(line) for line in only.log.splitlines()) < 4000


def test_rate_limits_leave_no_hole(install: Install) -> None:
    """[B55] Many sends are turned away, under HTTP 429 or one of two codes, while runs come in on four workers."""
    service = install()
    service.account(max_in_flight=20)
    service.pays("rent", value=1000)
    service.register()
    for i in range(4):
        service.start_worker(f"worker-{i}")
    dice = random.Random(55)
    service.proxy.script(
        on(SEND).every(3).too_many(),
        on(SEND).sometimes(1 / 3, dice).error(-32016, "over rate limit"),
        on(SEND).sometimes(1 / 5, dice).error(-32005, "limit"),
    )
    executions = [service.trigger("rent", f"run-{i}") for i in range(60)]

    wait_paid(service, executions, 90)
    assert sorted(service.reservations(e)[0]["nonce"] for e in executions) == list(range(60))
    assert all(len(raws) == 1 for raws in service.proxy.raws_by_nonce().values())
    assert "rate limited" in {row["verdict"] for row in service.rows("SELECT DISTINCT verdict FROM broadcast")}
