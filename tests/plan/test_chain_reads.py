"""What a strategy reads of a real node, from its own process: pinned to one block, and nothing but reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from executor.plan_process import PlanPool
from executor.strategy_values import NothingToDo, PlanFailed, PlanOutcome
from tests.support.devnet import Devnet, start_devnet

from .conftest import OTHER, Strategies

NUMBER = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
NUMBER_CODE = "0x4360005260206000f3"  # returns the block's number, whatever it is asked
REVERT = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
ABI = '[{"type": "function", "name": "number", "stateMutability": "view", "inputs": [], "outputs": [{"type": "uint256", "name": ""}]}]'


@pytest.fixture(scope="module")
def node() -> Iterator[Devnet]:
    with start_devnet("--silent") as devnet:
        devnet.rpc("anvil_setCode", NUMBER, NUMBER_CODE)
        devnet.rpc("anvil_setCode", REVERT, "0x60006000fd")
        devnet.rpc("evm_mine")
        yield devnet


def read(pool: PlanPool, strategies: Strategies, node: Devnet, expression: str, block: str = "latest") -> PlanOutcome:
    """What `expression` over `ctx` comes to, as text, at a block that may be older than the head."""
    at = node.rpc("eth_getBlockByNumber", block, False)
    plan = strategies.write(f"import json\nABI = json.loads('{ABI}')\nreturn nothing(str(({expression})))")
    request = strategies.request(plan, endpoint_url=node.url, block_number=int(at["number"], 16), block_hash=at["hash"])
    (result,) = pool.plan([request], 20)
    return result.outcome


def test_balance_code_and_call(pool: PlanPool, strategies: Strategies, node: Devnet) -> None:
    expression = (
        f'ctx.chain.balance(OTHER), ctx.chain.code("{NUMBER}").hex(), int.from_bytes(ctx.chain.call("{NUMBER}", b"x"))'
    )
    head = int(node.rpc("eth_blockNumber"), 16)
    assert read(pool, strategies, node, expression) == NothingToDo(f"({10**22}, '{NUMBER_CODE[2:]}', {head})")


@pytest.mark.parametrize(
    "expression",
    [f'int.from_bytes(ctx.chain.call("{NUMBER}"))', f'ctx.chain.contract("{NUMBER}", ABI).functions.number().call()'],
)
def test_reads_are_pinned_to_the_block_of_the_plan(
    pool: PlanPool, strategies: Strategies, node: Devnet, expression: str
) -> None:
    head = node.rpc("eth_blockNumber")
    node.rpc("evm_mine")
    node.rpc("evm_mine")
    assert read(pool, strategies, node, expression, head) == NothingToDo(str(int(head, 16)))


def test_a_revert_is_the_strategys_to_handle(pool: PlanPool, strategies: Strategies, node: Devnet) -> None:
    for expression in (f'ctx.chain.call("{REVERT}")', f'ctx.chain.contract("{REVERT}", ABI).functions.number().call()'):
        outcome = read(pool, strategies, node, expression)
        assert isinstance(outcome, PlanFailed)
        assert outcome.kind == "raised"
        assert "revert" in outcome.message


def test_it_can_only_read(pool: PlanPool, strategies: Strategies, node: Devnet) -> None:
    send = f'ctx.chain.contract("{NUMBER}", ABI).functions.number().transact({{"from": ACCOUNT, "gas": 50000, "gasPrice": 10**10}})'
    for expression in (send, 'ctx.chain.request("anvil_setBalance", [OTHER, "0x0"])'):
        outcome = read(pool, strategies, node, expression)
        assert isinstance(outcome, PlanFailed)
        assert "is no read a strategy may do" in outcome.message


def test_a_mistyped_address_is_told_the_right_one(pool: PlanPool, strategies: Strategies, node: Devnet) -> None:
    outcome = read(pool, strategies, node, "ctx.chain.balance(OTHER.lower())")
    assert isinstance(outcome, PlanFailed)
    assert OTHER in outcome.message


def test_a_block_that_is_gone_is_not_the_strategys_fault(strategies: Strategies, node: Devnet) -> None:
    for expression in ("ctx.chain.balance(OTHER)", f'ctx.chain.contract("{NUMBER}", []).w3.eth.get_balance(OTHER)'):
        plan = strategies.write(f"return nothing(str({expression}))")
        with PlanPool(strategies.directory) as fresh:
            (result,) = fresh.plan([strategies.request(plan, endpoint_url=node.url)], 20)
        assert isinstance(result.outcome, PlanFailed)
        assert result.outcome.kind == "unreachable"
        assert "does not know the block of this plan (7)" in result.outcome.message
