"""The proxy does what a rule says, and only that: seen over the wire, before a real devnet."""

from collections.abc import Callable, Iterator

import pytest

from chain.errors import Malformed, RpcError, Unavailable
from chain.rpc import Rpc
from devnet.testing import NodeProcess
from tests.support.devnet import start_devnet
from tests.support.proxy import RecordingProxy
from tests.support.proxy_script import Rule, on

NUMBER = "eth_blockNumber"
ID = "eth_chainId"


@pytest.fixture(scope="module")
def node() -> Iterator[NodeProcess]:
    with start_devnet("--no-mining") as started:
        started.rpc("anvil_mine", "0x5")
        yield started


@pytest.fixture
def proxy(node: NodeProcess) -> Iterator[RecordingProxy]:
    with RecordingProxy(node.url) as started:
        yield started


@pytest.fixture
def rpc(proxy: RecordingProxy) -> Iterator[Rpc]:
    made = Rpc(proxy.url, timeout_seconds=2)
    yield made
    made.close()


def test_without_a_script_it_is_honest(rpc: Rpc) -> None:
    assert rpc.call(NUMBER) == "0x5"
    assert rpc.batch([(NUMBER, []), (ID, [])]) == ["0x5", "0x7a69"]


@pytest.mark.parametrize(
    ("rule", "answers"),
    [
        (lambda: on(NUMBER).times(2).answer("lie"), ["lie", "lie", "0x5", "0x5", "0x5", "0x5"]),
        (lambda: on(NUMBER).after(4).answer("lie"), ["0x5", "0x5", "0x5", "0x5", "lie", "lie"]),
        (lambda: on(NUMBER).every(3).answer("lie"), ["0x5", "0x5", "lie", "0x5", "0x5", "lie"]),
        (lambda: on(NUMBER).after(1).every(2).times(1).answer("lie"), ["0x5", "0x5", "lie", "0x5", "0x5", "0x5"]),
        (lambda: on(ID).answer("lie"), ["0x5"] * 6),
        (lambda: on(NUMBER).where(lambda call: call["id"] % 2 == 0).answer("lie"), ["0x5", "lie"] * 3),
        (lambda: on(NUMBER).forge(lambda true: true + "0"), ["0x50"] * 6),
        (lambda: on().stale(2), ["0x3"] * 6),
        (lambda: on(NUMBER).duplicate(), ["0x5"] * 6),
        (lambda: on(NUMBER).reorder(), ["0x5"] * 6),
    ],
)
def test_which_calls_a_rule_takes(
    proxy: RecordingProxy, rpc: Rpc, rule: Callable[[], Rule], answers: list[str]
) -> None:
    proxy.script(made := rule())
    assert [rpc.call(NUMBER) for _ in range(6)] == answers
    assert made.fired == (6 if answers[0] != "0x5" and len(set(answers)) == 1 else made.fired)


def test_a_lie_about_one_call_leaves_the_rest_of_a_batch_alone(proxy: RecordingProxy, rpc: Rpc) -> None:
    proxy.script(on(ID).error(-32000, "no"), on(NUMBER).after(1).answer("lie"))
    number, chain_id, again = rpc.batch([(NUMBER, []), (ID, []), (NUMBER, [])])
    assert (number, again) == ("0x5", "lie")
    assert isinstance(chain_id, RpcError)


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (lambda: on(NUMBER).hide_reply(), Unavailable),
        (lambda: on(NUMBER).refuse(), Unavailable),
        (lambda: on(NUMBER).silence(), Unavailable),
        (lambda: on(NUMBER).reset(forward=True), Unavailable),
        (lambda: on(NUMBER).reset(forward=False), Unavailable),
        (lambda: on(NUMBER).break_off(), Unavailable),
        (lambda: on(NUMBER).too_many(), Unavailable),
        (lambda: on(NUMBER).status(500), Unavailable),
        (lambda: on(NUMBER).html(502), Unavailable),
        (lambda: on(NUMBER).html(), Malformed),
        (lambda: on(NUMBER).truncate(), Malformed),
        (lambda: on(NUMBER).wrong_id(), Malformed),
        (lambda: on(NUMBER).wrong_id(str), Malformed),
        (lambda: on(NUMBER).error_object("words"), RpcError),
    ],
)
def test_what_comes_instead_of_an_answer(
    proxy: RecordingProxy, rpc: Rpc, rule: Callable[[], Rule], error: type[Exception]
) -> None:
    proxy.script(made := rule().times(1))
    with pytest.raises(error):
        rpc.call(NUMBER)
    assert made.fired == 1
    assert rpc.call(NUMBER) == "0x5"


def test_a_rule_for_posts_counts_posts(proxy: RecordingProxy, rpc: Rpc) -> None:
    proxy.script(on(NUMBER).every(2).too_many())
    calls = [(NUMBER, [])] * 5
    assert rpc.batch(calls) == ["0x5"] * 5
    with pytest.raises(Unavailable, match="429"):
        rpc.batch(calls)
    assert rpc.batch(calls) == ["0x5"] * 5
