"""The questions of the client, over nodes that are right, late, wrong or lying."""

from contextlib import ExitStack

import pytest
from eth_hash.auto import keccak

from chain.client import ChainClient
from chain.errors import Inconsistent, RpcError, Unavailable, WrongChain
from chain.submission import Verdict
from chain.types import BlockRef, Depth, Receipt, Tag
from tests.unit.chain.scripted import closed_port, http, methods, node

ME = b"\x11" * 20
DEPTH = Depth(4)
HASH = "0x" + "ab" * 32


def block(number: int, salt: int = 0, **fields):
    return {
        "number": hex(number),
        "hash": "0x" + (number * 256 + salt).to_bytes(32, "big").hex(),
        "parentHash": "0x" + ((number - 1) % 2**64 * 256 + salt).to_bytes(32, "big").hex(),
        "timestamp": hex(1000 + number),
        "baseFeePerGas": "0x7",
        "gasLimit": "0x1c9c380",
    } | fields


class Ledger:
    """A small honest chain, whose parts a test may change."""

    def __init__(self, chain_id: int = 31337, salt: int = 0) -> None:
        self.chain_id, self.salt, self.head, self.tags = chain_id, salt, 10, {}
        self.table = {
            "eth_chainId": lambda _: hex(self.chain_id),
            "eth_getBlockByNumber": self.block,
            "eth_getTransactionCount": self.count,
            "eth_getBalance": "0xde0b6b3a7640000",
            "eth_maxPriorityFeePerGas": "0x3b9aca00",
            "eth_gasPrice": "0x10",
        }

    def number(self, tag: str) -> int | None:
        return self.head if tag in ("latest", "pending") else self.tags.get(tag) if tag[:2] != "0x" else int(tag, 16)

    def block(self, params):
        number = self.number(params[0])
        return None if number is None or number > self.head else block(number, self.salt)

    def count(self, params):
        return hex(self.number(params[1]) + (2 if params[1] == "pending" else 0))

    def __call__(self, body):
        return methods(self.table)(body)


def client(*urls: str, finality=DEPTH, **kwargs) -> ChainClient:
    return ChainClient("dev", 31337, urls, finality, **{"timeout_seconds": 2} | kwargs)


def test_a_view_belongs_together_and_costs_one_post_while_the_final_block_stands() -> None:
    ledger = Ledger()
    with node(ledger) as server:
        chain = client(server.url)
        assert chain.check_identity() == bytes.fromhex(block(0)["hash"][2:])
        view = chain.view(ME)
        assert (view.head.number, view.head.base_fee_wei, view.head.timestamp) == (10, 7, 1010)
        assert view.head.ref == BlockRef(10, view.head.hash)
        assert (view.nonce_latest, view.nonce_pending, view.nonce_final) == (10, 12, 6)
        assert view.final == BlockRef(6, bytes.fromhex(block(6)["hash"][2:]))
        assert (view.balance_wei, view.tip_wei) == (10**18, 10**9)
        posts = chain.posts
        chain.view(ME)
        assert chain.posts == posts + 1
        ledger.head = 12
        assert (chain.view(ME).final.number, chain.view(ME).nonce_final) == (8, 8)
        assert chain.posts == posts + 4
        ledger.head = 2
        assert (chain.view(ME).final.number, chain.view(ME).nonce_final) == (0, 0)
        chain.close()


def test_a_tag_may_name_nothing_yet() -> None:
    ledger = Ledger()
    with node(ledger) as server:
        chain = client(server.url, finality=Tag("finalized"))
        assert (chain.view(ME).final, chain.view(ME).nonce_final) == (None, None)
        ledger.table["eth_getBlockByNumber"] = lambda p: (
            ValueError(-39001, "finalized block not found") if p[0] == "finalized" else ledger.block(p)
        )
        assert chain.view(ME).final is None
        ledger.table["eth_getBlockByNumber"] = ledger.block
        ledger.tags["finalized"] = 7
        assert (chain.view(ME).final.number, chain.view(ME).nonce_final) == (7, 7)


def test_a_node_without_a_tip_method_is_asked_for_its_gas_price() -> None:
    ledger = Ledger()
    del ledger.table["eth_maxPriorityFeePerGas"]
    with node(ledger) as server:
        chain = client(server.url)
        assert [chain.view(ME).tip_wei for _ in range(2)] == [9, 9]


@pytest.mark.parametrize(
    "lie", [{"head": 3, "tags": {"safe": 7}}, {"count": lambda p: "0x9" if p[1] == "0x5" else "0x1"}]
)
def test_in_answers_from_different_heights_nothing_is_final(lie: dict) -> None:
    """[B53] What a load balancer mixes up is enough to send and not enough to conclude; another endpoint may know more."""
    ledger, honest = Ledger(), Ledger()
    ledger.tags = honest.tags = {"safe": 5}
    if "count" in lie:
        ledger.table["eth_getTransactionCount"] = lie["count"]
    else:
        ledger.head = 3
        ledger.table["eth_getBlockByNumber"] = lambda p: block(7 if p[0] == "safe" else ledger.number(p[0]))
    with node(ledger) as server, node(honest) as other:
        alone = client(server.url, finality=Tag("safe")).view(ME)
        assert (alone.final, alone.nonce_final) == (None, None)
        assert alone.nonce_latest == (1 if "count" in lie else 3)
        assert client(server.url, other.url, finality=Tag("safe")).view(ME).nonce_final == 5


@pytest.mark.parametrize(
    ("pending", "told"),
    [
        ("0x8", 10),
        ("0x0", 10),
        ("0xb", 11),
        (None, None),
        ("0x", None),
        (ValueError(-32601, "the method does not exist"), None),
    ],
)
def test_a_pending_count_that_says_nothing_holds_nothing_up(pending: object, told: int | None) -> None:
    """[B52]"""
    ledger = Ledger()

    ledger.table["eth_getTransactionCount"] = lambda p: pending if p[1] == "pending" else ledger.count(p)
    with node(ledger) as server:
        view = client(server.url).view(ME)
    assert (view.nonce_latest, view.nonce_pending, view.nonce_final) == (10, told, 6)


def test_another_chain_behind_a_known_endpoint_is_noticed_by_the_next_view() -> None:
    ledger = Ledger()
    with node(ledger) as server:
        chain = client(server.url)
        chain.view(ME)
        ledger.chain_id = 1
        with pytest.raises(WrongChain, match="serves chain 1 now, it is configured as chain 31337"):
            chain.view(ME)


def test_a_wrong_chain_is_named_with_both_ids_and_without_secrets() -> None:
    with node(Ledger()) as good, node(Ledger(chain_id=1)) as bad:
        chain = client(good.url, bad.url.replace("//", "//user:pw@") + "/KEY")
        with pytest.raises(WrongChain, match=r"serves chain 1, .* chain 31337") as caught:
            chain.check_identity()
        assert bad.label in str(caught.value)
        assert not any(secret in str(caught.value) + repr(chain) for secret in ("KEY", "pw@"))
        assert chain.view(ME).head.number == 10


def test_an_endpoint_is_checked_before_it_is_first_read_from() -> None:
    with node(Ledger(chain_id=1)) as bad:
        with pytest.raises(WrongChain):
            client(bad.url).view(ME)
        assert len(bad.posts) == 1


def test_another_genesis_stops() -> None:
    first, second = Ledger(), Ledger(salt=5)
    with node(first) as one, node(second) as two:
        with pytest.raises(Inconsistent, match="genesis"):
            client(one.url, two.url).check_identity()
        chain = client(one.url)
        chain.check_identity()
        first.salt = 9
        with pytest.raises(Inconsistent, match="started anew"):
            chain.check_identity()


def test_reads_go_on_to_the_next_endpoint_and_stay_there() -> None:
    ledger = Ledger()
    with node(http(502, b"")) as dead, node(ledger) as alive:
        chain = client(f"http://127.0.0.1:{closed_port()}", dead.url, alive.url)
        assert len(chain.check_identity()) == 32
        assert chain.view(ME).head.number == 10
        assert chain.retries == 2
        posts = len(dead.posts)
        chain.view(ME)
        assert (chain.retries, len(dead.posts)) == (2, posts)


def test_reads_are_bounded_when_nobody_answers() -> None:
    with node(http(500, b"")) as dead:
        chain = client(dead.url, dead.url)
        with pytest.raises(Unavailable, match="no endpoint of dev"):
            chain.view(ME)
        assert len(dead.posts) == chain.retries == 4
        with pytest.raises(Unavailable):
            chain.check_identity()


def receipt(**fields):
    return {
        "transactionHash": HASH,
        "blockNumber": "0x5",
        "blockHash": block(5)["hash"],
        "status": "0x1",
        "gasUsed": "0x5208",
        "effectiveGasPrice": "0x7",
    } | fields


def test_receipts_and_blocks() -> None:
    ledger = Ledger()
    wanted = bytes.fromhex(HASH[2:])
    ledger.table["eth_getTransactionReceipt"] = lambda p: receipt(l1Fee="0x9") if p[0] == HASH else None
    with node(ledger) as server:
        chain = client(server.url)
        place = BlockRef(5, bytes.fromhex(block(5)["hash"][2:]))
        assert chain.receipts([wanted, bytes(32)]) == [Receipt(wanted, place, 1, 21000, 7, 9), None]
        assert chain.canonical_hashes([5, 11, 5]) == {5: place.hash, 11: None}
        assert chain.receipts([]) == []
        ledger.table["eth_getTransactionReceipt"] = receipt(blockHash=None)
        assert chain.receipts([wanted]) == [None]


@pytest.mark.parametrize(
    "fields",
    [
        {"transactionHash": "0x" + "cd" * 32},
        {"status": None},
        {"status": "0x2"},
        {"gasUsed": "21000"},
        {"blockHash": "0x1"},
        {"blockNumber": 5},
    ],
    ids=str,
)
def test_a_receipt_of_another_shape_is_malformed_not_believed(fields: dict) -> None:
    ledger = Ledger()
    ledger.table["eth_getTransactionReceipt"] = receipt(**fields)
    with node(ledger) as server, pytest.raises(Unavailable):
        client(server.url).receipts([bytes.fromhex(HASH[2:])])


def test_a_block_of_another_number_is_not_believed() -> None:
    ledger = Ledger()
    with node(ledger) as server:
        chain = client(server.url)
        chain.check_identity()
        ledger.table["eth_getBlockByNumber"] = block(6)
        with pytest.raises(Unavailable, match="block 5 was asked for and block 6 came"):
            chain.canonical_hashes([5])


def test_estimates_are_values() -> None:
    ledger = Ledger()
    outcomes = iter(
        ["0x5208", ValueError(3, "execution reverted: boom"), ValueError(-32000, "insufficient funds for transfer")]
    )
    ledger.table["eth_estimateGas"] = lambda _: next(outcomes)
    call = (ME, b"\x22" * 20, 5, b"\x01", ((b"\x33" * 20, (bytes(32),)),))
    with node(ledger) as server:
        gas, reverted, poor = client(server.url).estimate([call, (ME, None, 0, b"", ()), call])
        assert (gas.gas, gas.error, gas.reverted) == (21000, None, False)
        assert (reverted.gas, reverted.reverted) == (None, True)
        assert "boom" in reverted.error
        assert (poor.gas, poor.reverted) == (None, False)
        sent = server.posts[-1]
        assert sent[0]["params"][0]["accessList"][0]["storageKeys"] == ["0x" + "00" * 32]
        assert "to" not in sent[1]["params"][0]


def test_code_and_transactions() -> None:
    ledger = Ledger()
    ledger.table |= {"eth_getCode": "0xef0100", "eth_getTransactionByHash": {"hash": HASH}}
    with node(ledger) as server:
        chain = client(server.url)
        assert chain.code(ME) == b"\xef\x01\x00"
        assert chain.transaction(bytes(32)) == {"hash": HASH}
        ledger.table |= {"eth_getCode": ValueError(-32000, "missing trie node"), "eth_getTransactionByHash": "x"}
        with pytest.raises(RpcError, match="missing trie"):
            chain.code(ME)
        with pytest.raises(Unavailable, match="a transaction was expected"):
            chain.transaction(bytes(32))


RAWS = [b"\x02" + bytes([n]) for n in range(3)]


def accepting(body):
    return methods({"eth_sendRawTransaction": lambda p: "0x" + keccak(bytes.fromhex(p[0][2:])).hex()})(body)


def verdicts(answers) -> list[Verdict]:
    return [answer.verdict for answer in answers]


def test_sends_go_to_every_endpoint_in_order_in_one_post_each() -> None:
    with ExitStack() as stack:
        nodes = [stack.enter_context(node(accepting)) for _ in range(3)]
        chain = client(*(server.url for server in nodes))
        answers = chain.send(RAWS)
        assert list(answers) == [server.label for server in nodes]
        for server in nodes:
            assert verdicts(answers[server.label]) == [Verdict.ACCEPTED] * 3
            assert [item["params"][0] for item in server.posts[0]] == ["0x" + raw.hex() for raw in RAWS]
            assert len(server.posts) == 1
        assert chain.send([]) == {server.label: [] for server in nodes}
        chain.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"", Verdict.AMBIGUOUS),
        (http(502, b"<html>"), Verdict.AMBIGUOUS),
        (http(429, b""), Verdict.RATE_LIMITED),
        (http(200, b"<html>"), Verdict.AMBIGUOUS),
        (http(200, b'[{"id"', length=99), Verdict.AMBIGUOUS),
        (http(302, b"", "location: http://127.0.0.1:1"), Verdict.AMBIGUOUS),
        (methods({"eth_sendRawTransaction": "0x" + "00" * 32}), Verdict.AMBIGUOUS),
        (methods({"eth_sendRawTransaction": None}), Verdict.AMBIGUOUS),
        (methods({"eth_sendRawTransaction": [1]}), Verdict.AMBIGUOUS),
        (methods({"eth_sendRawTransaction": ValueError(-32000, "already known")}), Verdict.ALREADY_KNOWN),
        (methods({"eth_sendRawTransaction": ValueError(-32000, "nonce too low: next nonce 1")}), Verdict.NONCE_TOO_LOW),
        (methods({"eth_sendRawTransaction": ValueError(-32000, "who knows")}), Verdict.AMBIGUOUS),
        (lambda body: [{"id": item["id"]} for item in body], Verdict.AMBIGUOUS),
        (lambda body: [], Verdict.AMBIGUOUS),
    ],
)
def test_every_answer_to_a_send_is_a_verdict_after_one_post(answer, expected: Verdict) -> None:
    with node(answer) as server:
        chain = client(server.url)
        (given,) = chain.send(RAWS).values()
        assert verdicts(given) == [expected] * 3
        assert all(len(item.detail) <= 300 for item in given)
        assert chain.posts == len(server.posts) == 1


def test_a_send_without_an_answer_is_not_repeated_and_the_rest_waits(monkeypatch) -> None:
    import time

    def slow(body):
        time.sleep(1)

    with node(slow) as server:
        chain = client(server.url, timeout_seconds=0.2)
        (given,) = chain.send([bytes([2, n]) for n in range(250)]).values()
        assert verdicts(given) == [Verdict.AMBIGUOUS] * 250
        assert "not sent in this round" in given[-1].detail
        assert chain.posts == len(server.posts) == 1


def test_one_dead_endpoint_does_not_spoil_the_others() -> None:
    with node(accepting) as alive:
        dead = closed_port()
        answers = client(f"http://127.0.0.1:{dead}", alive.url).send(RAWS)
        assert verdicts(answers[f"127.0.0.1:{dead}"]) == [Verdict.AMBIGUOUS] * 3
        assert verdicts(answers[alive.label]) == [Verdict.ACCEPTED] * 3


def test_two_endpoints_of_one_host_have_two_names() -> None:
    chain = client("http://node.example/a", "http://node.example/b", "http://other.example")
    assert chain.labels == ["node.example", "node.example#2", "other.example"]
    with pytest.raises(ValueError, match="no endpoint"):
        client()
