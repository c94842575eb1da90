"""pytest fixtures of the devnet; pytest finds them by itself where this distribution is installed.

    def test_my_sender(devnet):                      # a chain of its own for each test
        pay(devnet.url, devnet.accounts[0].key)
        devnet.mine()
        devnet.advance(3600)
        assert len(devnet.submissions()) == 1

    @pytest.mark.devnet("--no-mining", "--profile", "besu")     # another node
    def test_besu(devnet): ...

    def test_my_sender_endures(faulted_devnet): ...  # replies lost, 429, 503, resets; the ledger is judged at the end

`devnet_node` starts further ones: `devnet_node("--block-time", "2")`. A process serves the tests with the same flags one
after the other: chain, pool, clock and faults are put back between them, and one that cannot be put back is replaced.

Only pytest and the standard library are imported here, the latter's heavier parts with the first node: this module is
loaded in every session.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from devnet.testing import Devnet

_FAULTED: pytest.StashKey["Devnet"] = pytest.StashKey()  # what a test was lent by `faulted_devnet`
DEFAULT_FLAGS = ("--timestamp", "1700000000")

# What a sender meets in a bad hour. Nothing here loses a transaction that was accepted, or answers nothing for ever.
_ASKED = ["eth_*", "net_*", "web3_*"]  # orders (anvil_, evm_, devnet_ …) always get through
_SENT = ["eth_sendRawTransaction", "eth_sendTransaction"]
BAD_HOUR: tuple[dict[str, Any], ...] = (
    {"kind": "drop_after", "match": {"method": _SENT}, "p": 0.2},
    {"kind": "accept_as_error", "match": {"method": _SENT}, "p": 0.1, "arg": "geth.already_known"},
    {"kind": "drop_before", "match": {"method": _ASKED}, "p": 0.05},
    {"kind": "http", "match": {"method": _ASKED}, "p": 0.05, "arg": {"status": 429, "retryAfter": 0}},
    {"kind": "http", "match": {"method": _ASKED}, "p": 0.05, "arg": {"status": 503}},
    {"kind": "reset_mid_body", "match": {"method": _ASKED}, "p": 0.05},
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--devnet-seed`: which calls `faulted_devnet` meets with which fault."""
    parser.getgroup("devnet").addoption(
        "--devnet-seed", type=int, default=7, metavar="N", help="seed of faulted_devnet's faults (7)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "devnet(*flags): command line flags of this test's devnet")


class DevnetPool:
    """Running devnets by their flags; each serves one test at a time."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, ...], list[Devnet]] = {}

    def take(self, flags: tuple[str, ...]) -> "Devnet":
        """A running one with these flags, or a new one."""
        from devnet.testing import Devnet

        idle = self._idle.get(flags)
        return idle.pop() if idle else Devnet(*flags)

    def give_back(self, flags: tuple[str, ...], node: "Devnet") -> None:
        """Keep one for the next test."""
        self._idle.setdefault(flags, []).append(node)

    def close(self) -> None:
        """End them all."""
        for nodes in self._idle.values():
            for node in nodes:
                node.stop()


@pytest.fixture(scope="session")
def devnet_pool() -> Iterator[DevnetPool]:
    """The processes of this session."""
    pool = DevnetPool()
    yield pool
    pool.close()


@pytest.fixture
def devnet_node(devnet_pool: DevnetPool) -> Iterator[Callable[..., "Devnet"]]:
    """Call it with command line flags for a devnet that this test alone uses, as often as wanted."""
    lent: list[tuple[tuple[str, ...], Devnet, Callable[[], bool]]] = []

    def lend(*flags: str) -> "Devnet":
        node = devnet_pool.take(flags)
        lent.append((flags, node, node.remember()))
        return node

    yield lend
    for flags, node, put_back in reversed(lent):
        clean = False
        with suppress(Exception):  # whatever the test did to it: a new one is started then
            clean = put_back()
        if clean:
            devnet_pool.give_back(flags, node)
        else:
            node.stop()


@pytest.fixture
def devnet(request: pytest.FixtureRequest, devnet_node: Callable[..., "Devnet"]) -> "Devnet":
    """A devnet with funded accounts that mines each submission at once, or as `@pytest.mark.devnet(*flags)` says."""
    mark = request.node.get_closest_marker("devnet")
    return devnet_node(*(mark.args if mark else DEFAULT_FLAGS))


@pytest.fixture
def faulted_devnet(request: pytest.FixtureRequest, devnet: "Devnet") -> "Devnet":
    """A devnet in a bad hour, by `--devnet-seed`: replies lost after acceptance, 429, 503, resets (BAD_HOUR).

    A test that passes is failed when the ledger shows a violation: two intents on one nonce, a payload signed twice, a
    nonce left out.
    """
    seed = request.config.getoption("--devnet-seed")
    for number, rule in enumerate(BAD_HOUR, 1):
        devnet.rpc("devnet_fault", {"id": f"bad hour {number}", **rule, "seed": seed})
    request.node.stash[_FAULTED] = devnet
    return devnet


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Judge what a test sent to `faulted_devnet`."""
    outcome = yield
    node = item.stash.get(_FAULTED, None)
    if node is not None and (violations := node.violations()):
        seed = item.config.getoption("--devnet-seed")
        told = "\n".join(_told(violation) for violation in violations)
        pytest.fail(f"the devnet's ledger shows what no sender may do (--devnet-seed {seed}):\n{told}", pytrace=False)
    return outcome


def _told(violation: dict[str, Any]) -> str:
    """A violation and the submissions that show it, for people."""
    rows = [
        f"    #{row['index']} {row['hash']} {row['verdict']}"
        + (f", met {row['fault']['kind']}" if row["fault"] else "")
        + (f": {row['error']['message']}" if row["error"] else "")
        for row in violation["evidence"]
    ]
    return "\n".join([f"  {violation['kind']} by {violation['sender']}, {violation['text']}", *rows])
