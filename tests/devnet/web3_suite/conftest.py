"""What web3.py's module suite asks its host for: a node, web3 objects, contracts, accounts, blocks of known content.

The suite ships in the web3 wheel without the fixtures; the names below are the ones its tests take.
FENCED_WEB3_SUITE_NODE chooses the node: `devnet` (default), `devnet:FLAGS` with flags of its own, or `anvil`.
"""

import asyncio
import inspect
import os
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from web3 import AsyncHTTPProvider, AsyncWeb3, Web3
from web3._utils.module_testing.utils import RequestMocker

from tests.devnet.wallet import ALICE, BOB, Wallet
from tests.devnet.web3_suite.chain import CONTRACTS, PreparedChain, prepare
from tests.devnet.web3_suite.expected_failures import EXPECTED_FAILURES
from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import NodeProcess, start_devnet

CHAIN_ID = 131277322940537  # the suite asserts it
INTERVAL = 1  # seconds
NODE = os.environ.get("FENCED_WEB3_SUITE_NODE", "devnet")
# These need their transaction to be still waiting when they look again, whatever the machine does meanwhile.
HELD = ("modify_transaction", "replace_transaction", "receipt_unmined")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if NODE != "devnet":
        return
    for item in items:
        name = item.nodeid.partition("::")[2].partition("@")[0]  # xdist appends its group
        reason = EXPECTED_FAILURES.get(name)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    pyfuncitem.funcargs["loop_runner"].run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="session")
def suite_node() -> Iterator[NodeProcess]:
    flags = ["--block-time", str(INTERVAL), "--chain-id", str(CHAIN_ID)]
    kind, _, own = NODE.partition(":")
    if kind == "anvil":
        path, trouble = anvil_binary()
        if path is None:
            pytest.skip(trouble)
        with start_anvil(*flags, *shlex.split(own)) as anvil:
            yield anvil
    else:
        with start_devnet("--silent", *flags, *shlex.split(own)) as devnet:
            yield devnet


@pytest.fixture(scope="session")
def chain(suite_node: NodeProcess) -> PreparedChain:
    return prepare(suite_node, INTERVAL)


@pytest.fixture(scope="session", autouse=True)
def loop_runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(autouse=True)
def mining(request: pytest.FixtureRequest, suite_node: NodeProcess, chain: PreparedChain) -> Iterator[None]:
    """Blocks stand still for the tests that look at waiting transactions; set-code ones start with none waiting."""
    name = request.node.originalname
    held = any(word in name for word in HELD) and not name.endswith("already_mined")
    if held:
        suite_node.rpc("evm_setIntervalMining", 0)
    if "set_code" in name:
        suite_node.rpc("evm_mine")
    yield
    if held:
        suite_node.rpc("evm_setIntervalMining", INTERVAL)


@pytest.fixture
def w3(suite_node: NodeProcess) -> Web3:
    return Web3(Web3.HTTPProvider(suite_node.url))


@pytest.fixture
def async_w3(suite_node: NodeProcess, loop_runner: asyncio.Runner) -> Iterator[AsyncWeb3[Any]]:
    provider = AsyncHTTPProvider(suite_node.url)
    yield AsyncWeb3(provider)
    loop_runner.run(provider.disconnect())


@pytest.fixture
def request_mocker() -> type[RequestMocker]:
    return RequestMocker


@pytest.fixture
def skip_if_testrpc() -> Callable[[Web3], None]:
    return lambda _w3: None


@pytest.fixture
def async_skip_if_testrpc() -> Callable[[AsyncWeb3[Any]], None]:
    return lambda _w3: None


@pytest.fixture
def keyfile_account(request: pytest.FixtureRequest) -> Wallet:
    """One for the synchronous tests, one for the others, which the suite's authors run against a node of their own."""
    return BOB if request.cls.__name__.startswith("TestAsync") else ALICE


@pytest.fixture
def keyfile_account_pkey(keyfile_account: Wallet) -> str:
    return keyfile_account.key


@pytest.fixture
def keyfile_account_address(keyfile_account: Wallet) -> Any:
    return Web3.to_checksum_address(keyfile_account.address)


@pytest.fixture
def mined_txn_hash(chain: PreparedChain) -> str:
    return chain.plain_hash


@pytest.fixture
def txn_hash_with_log(chain: PreparedChain) -> str:
    return chain.log_hash


@pytest.fixture
def math_contract_deploy_txn_hash(chain: PreparedChain) -> str:
    return chain.deploy_hash


@pytest.fixture
def empty_block(w3: Web3, chain: PreparedChain) -> Any:
    return w3.eth.get_block(chain.empty_block)


@pytest.fixture
def block_with_txn(w3: Web3, chain: PreparedChain) -> Any:
    return w3.eth.get_block(chain.plain_block)


@pytest.fixture
def block_with_txn_with_log(w3: Web3, chain: PreparedChain) -> Any:
    return w3.eth.get_block(chain.log_block)


def _same_as(fixture: str) -> Any:
    @pytest.fixture
    def copy(request: pytest.FixtureRequest) -> Any:
        return request.getfixturevalue(fixture)

    return copy


def _contract(name: str, web3: str) -> Any:
    @pytest.fixture
    def contract(request: pytest.FixtureRequest, chain: PreparedChain) -> Any:
        return request.getfixturevalue(web3).eth.contract(address=chain.addresses[name], abi=CONTRACTS[name]["abi"])

    return contract


def _contract_address(name: str) -> Any:
    @pytest.fixture
    def address(chain: PreparedChain) -> Any:
        return chain.addresses[name]

    return address


keyfile_account_address_dual_type = _same_as("keyfile_account_address")
async_keyfile_account_address = _same_as("keyfile_account_address")
async_keyfile_account_address_dual_type = _same_as("keyfile_account_address")
async_empty_block = _same_as("empty_block")
async_block_with_txn = _same_as("block_with_txn")
async_block_with_txn_with_log = _same_as("block_with_txn_with_log")
for _name in CONTRACTS:
    globals()[f"{_name}_contract"] = _contract(_name, "w3")
    globals()[f"async_{_name}_contract"] = _contract(_name, "async_w3")
    globals()[f"{_name}_contract_address"] = _contract_address(_name)
    globals()[f"async_{_name}_contract_address"] = _contract_address(_name)
