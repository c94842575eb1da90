"""What is believed of several endpoints: one contradiction stands against it, one that lags or fails has no say (G10, P5)."""

from contextlib import ExitStack

import pytest

from chain.agreement import Claim
from chain.client import ChainClient
from chain.errors import Unavailable
from chain.types import BlockRef
from tests.unit.chain.scripted import closed_port, node
from tests.unit.chain.test_client import ME, Ledger, block, client

HASH = b"\xab" * 32
FINAL = BlockRef(8, bytes.fromhex(block(8)["hash"][2:]))
CLAIM = Claim(HASH, BlockRef(6, bytes.fromhex(block(6)["hash"][2:])), 1)
RECEIPT = {
    "transactionHash": "0x" + HASH.hex(),
    "blockNumber": "0x6",
    "blockHash": block(6)["hash"],
    "status": "0x1",
    "gasUsed": "0x5208",
    "effectiveGasPrice": "0x7",
}


def ledger(receipt: object = RECEIPT, *, head: int = 10, salt: int = 0, count: object = None) -> Ledger:
    made = Ledger(salt=salt)
    made.head = head
    made.table["eth_getTransactionReceipt"] = receipt
    genesis = block(0)
    made.table["eth_getBlockByNumber"] = lambda p: genesis if p[0] == "0x0" else made.block(p)
    if count is not None:
        made.table["eth_getTransactionCount"] = count
    return made


TELLS = ledger()
NULL = ledger(None)
BEHIND = ledger(None, head=7)
INDEXING = ledger(ValueError(-32000, "transaction indexing is in progress"))
OTHER_STATUS = ledger(RECEIPT | {"status": "0x0"})
OTHER_BLOCK = ledger(RECEIPT | {"blockHash": block(6, salt=9)["hash"]})
OTHER_HEIGHT = ledger(RECEIPT | {"blockNumber": "0x5"})
OTHER_FORK = ledger(salt=3)
MALFORMED = ledger({"transactionHash": "0x01", "blockHash": "0x"})


def over(stack: ExitStack, *ledgers: Ledger | None) -> ChainClient:
    urls = [
        f"http://127.0.0.1:{closed_port()}" if one is None else stack.enter_context(node(one)).url for one in ledgers
    ]
    return client(*urls)


@pytest.mark.parametrize(
    ("ledgers", "proved", "denied", "telling", "contradicting"),
    [
        ([TELLS], True, False, {0}, set()),
        ([NULL], False, True, set(), set()),
        ([OTHER_STATUS], False, True, set(), set()),
        ([OTHER_BLOCK], False, True, set(), set()),
        ([OTHER_HEIGHT], False, True, set(), set()),
        ([OTHER_FORK], False, True, set(), set()),
        ([BEHIND], False, False, set(), set()),
        ([INDEXING], False, False, set(), set()),
        ([TELLS, TELLS], True, False, {0, 1}, set()),
        ([TELLS, BEHIND], True, False, {0}, set()),
        ([INDEXING, TELLS], True, False, {1}, set()),
        ([None, TELLS], True, False, {1}, set()),
        ([TELLS, MALFORMED], True, False, {0}, set()),
        ([TELLS, NULL], False, False, {0}, {1}),
        ([OTHER_STATUS, TELLS], False, False, {1}, {0}),
        ([TELLS, TELLS, OTHER_FORK], False, False, {0, 1}, {2}),
    ],
)
def test_one_contradiction_keeps_a_receipt_from_being_final(
    ledgers: list, proved: bool, denied: bool, telling: set[int], contradicting: set[int]
) -> None:
    with ExitStack() as stack:
        chain = over(stack, *ledgers)
        found = chain.proofs([CLAIM], FINAL)
    assert found.proved == [proved]
    assert found.denied == [denied]
    assert set(found.endpoints) == {chain.labels[i] for i in telling}
    assert set(found.contradicting) == {chain.labels[i] for i in contradicting}


def test_a_claim_above_the_final_block_is_not_proved() -> None:
    with ExitStack() as stack:
        chain = over(stack, TELLS)
        lower = BlockRef(5, bytes.fromhex(block(5)["hash"][2:]))
        assert chain.proofs([CLAIM], lower).proved == [False]


def test_when_nobody_answers_nothing_is_concluded() -> None:
    with ExitStack() as stack, pytest.raises(Unavailable, match="no endpoint of dev told"):
        over(stack, None, None).proofs([CLAIM], FINAL)


@pytest.mark.parametrize(
    ("ledgers", "agreeing"),
    [
        ([NULL], {0}),
        ([NULL, NULL], {0, 1}),
        ([NULL, BEHIND], {0}),
        ([NULL, INDEXING], {0}),
        ([NULL, None], {0}),
        ([BEHIND], set()),
        ([INDEXING], set()),
        ([NULL, TELLS], set()),
        ([NULL, ledger(RECEIPT, head=7)], set()),
        ([NULL, OTHER_FORK], set()),
        ([NULL, ledger(None, count="0x4")], set()),
        ([NULL, ledger(None, count=ValueError(-32000, "missing trie node"))], {0}),
    ],
)
def test_one_contradiction_keeps_a_nonce_from_being_foreign(ledgers: list, agreeing: set[int]) -> None:
    """The ledgers count as many transactions as blocks: nonce 4 is used at block 8."""
    with ExitStack() as stack:
        chain = over(stack, *ledgers)
        found = chain.without_receipt([HASH], ME, 4, FINAL)
    assert set(found) == {chain.labels[i] for i in agreeing}


def test_too_fast_is_no_evidence_that_nothing_was_found() -> None:
    with ExitStack() as stack:
        chain = over(stack, ledger(count=ValueError(-32005, "limit exceeded")))
        with pytest.raises(Exception, match="limit exceeded"):
            chain.find_spending(ME, 4, 0, 8)
        assert over(stack, ledger(count=ValueError(-32000, "missing trie node"))).find_spending(ME, 4, 0, 8) is None
