"""Every kind of fault as a sender meets it: on a bare HTTP connection, in batches, and over WebSocket."""

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import aiohttp
import pytest

from devnet.faults.rule import parse_rule
from devnet.ledger import Origin
from devnet.node import Node
from devnet.server import facts
from devnet.server.faulty_call import ordered_error
from devnet.settings import Settings
from devnet.txpool.profiles import PROFILES
from tests.devnet.sending import Connection, ask, call
from tests.devnet.wallet import ALICE, BOB
from tests.support.devnet import Devnet, RpcFailure, start_devnet

SEND = "eth_sendRawTransaction"
TX = ALICE.sign(0)
SENDING = call(SEND, TX.raw)


def order(devnet: Devnet, kind: str, arg: Any = None, method: Any = SEND, **terms: Any) -> None:
    devnet.rpc(
        "devnet_fault",
        {"kind": kind, "match": {"method": method}, "times": 1, **terms} | ({"arg": arg} if arg is not None else {}),
    )


def known(devnet: Devnet) -> bool:
    return devnet.rpc("eth_getTransactionByHash", TX.hash) is not None


def last(devnet: Devnet) -> dict[str, Any]:
    return dict(devnet.rpc("devnet_submissions")[-1])


def test_drop_before_breaks_the_connection_and_executes_nothing(devnet: Devnet) -> None:
    order(devnet, "drop_before")
    heard = ask(devnet, SENDING)
    assert (heard.head, heard.body) == ("", b"")
    assert heard.end in {"closed", "reset"}
    assert not known(devnet)
    assert (last(devnet)["verdict"], last(devnet)["hash"]) == ("unseen", TX.hash)
    assert last(devnet)["fault"]["kind"] == "drop_before"
    assert ask(devnet, SENDING).json["result"] == TX.hash


def test_drop_after_loses_the_reply_of_an_accepted_transaction(devnet: Devnet) -> None:
    order(devnet, "drop_after")
    heard = ask(devnet, SENDING)
    assert (heard.body, heard.end) in {(b"", "closed"), (b"", "reset")}
    assert known(devnet)
    assert (last(devnet)["verdict"], last(devnet)["fault"]["kind"]) == ("pending", "drop_after")
    assert ask(devnet, SENDING).json["error"]["message"] == "already known"


def test_a_client_library_sees_a_dropped_reply_as_a_broken_connection(devnet: Devnet) -> None:
    order(devnet, "drop_after")
    request = urllib.request.Request(devnet.url, json.dumps(SENDING).encode(), {"Content-Type": "application/json"})
    with pytest.raises((ConnectionError, urllib.error.URLError)):
        urllib.request.urlopen(request, timeout=10)
    assert known(devnet)


def await_decision(devnet: Devnet, rule: str) -> None:
    while not devnet.rpc("devnet_faultLog", {"rule": rule, "outcome": "fired"}):
        pass


@pytest.mark.parametrize("executed", [False, True])
def test_delay_waits_for_the_clock_before_or_after_executing(timeless: Devnet, executed: bool) -> None:
    order(timeless, "delay", {"ms": 60_000, "executed": executed}, id=f"slow {executed}")
    with Connection(timeless) as connection:
        connection.say(SENDING)
        await_decision(timeless, f"slow {executed}")
        assert known(timeless) is executed
        timeless.rpc("devnet_clock", {"advance": 59.9})
        assert known(timeless) is executed
        timeless.rpc("devnet_clock", {"advance": 0.1})
        assert connection.hear().json["result"] == TX.hash
    assert known(timeless)


@pytest.mark.parametrize("executed", [False, True])
def test_hang_never_answers_and_keeps_the_connection(devnet: Devnet, executed: bool) -> None:
    order(devnet, "hang", {"executed": executed})
    with Connection(devnet) as connection:
        connection.say(SENDING)
        assert connection.silent_for(0.1)
    assert known(devnet) is executed


def test_reset_mid_body_sends_a_part_of_what_it_announces(devnet: Devnet) -> None:
    order(devnet, "reset_mid_body", 20)
    heard = ask(devnet, SENDING)
    assert heard.end == "reset"
    assert heard.status == 200
    whole = json.dumps({"jsonrpc": "2.0", "id": 1, "result": TX.hash}, separators=(",", ":")).encode()
    assert int(heard.headers["content-length"]) == len(whole)
    assert heard.body == whole[:20]
    assert known(devnet)


@pytest.mark.parametrize("status", [413, 429, 500, 502, 503])
def test_http_answers_with_a_status_in_place_of_executing(devnet: Devnet, status: int) -> None:
    order(devnet, "http", {"status": status, "retryAfter": 1.5})
    with Connection(devnet) as connection:
        heard = connection.ask(SENDING)
        assert (heard.status, heard.headers["retry-after"], heard.end) == (status, "1.5", None)
        assert not heard.body.startswith(b"{")
        assert not known(devnet)
        assert connection.ask(SENDING).json["result"] == TX.hash


def test_http_carries_a_body_and_may_execute(devnet: Devnet) -> None:
    body = json.dumps({"jsonrpc": "2.0", "error": {"code": -32016, "message": "over rate limit"}, "id": None})
    order(devnet, "http", {"status": 502, "body": body, "executed": True})
    heard = ask(devnet, SENDING)
    assert (heard.status, heard.headers["content-type"].split(";")[0]) == (502, "application/json")
    assert heard.json["error"]["code"] == -32016
    assert "retry-after" not in heard.headers
    assert known(devnet)


def test_html_is_a_page_with_a_good_status(devnet: Devnet) -> None:
    order(devnet, "html")
    heard = ask(devnet, SENDING)
    assert (heard.status, heard.headers["content-type"].split(";")[0]) == (200, "text/html")
    assert heard.body.startswith(b"<html>")
    assert not known(devnet)


def test_truncated_json_is_whole_for_http(devnet: Devnet) -> None:
    order(devnet, "truncate_json")
    heard = ask(devnet, SENDING)
    assert (heard.status, heard.end) == (200, None)
    with pytest.raises(json.JSONDecodeError):
        _ = heard.json
    assert heard.body.startswith(b'{"jsonrpc"')
    assert known(devnet)


def test_empty_body_is_status_200_with_nothing(devnet: Devnet) -> None:
    order(devnet, "empty_body")
    heard = ask(devnet, SENDING)
    assert (heard.status, heard.body, heard.end) == (200, b"", None)
    assert known(devnet)


def test_wrong_id_belongs_to_no_call(devnet: Devnet) -> None:
    order(devnet, "wrong_id", method="eth_chainId", times=2)
    assert ask(devnet, call("eth_chainId", call_id=7)).json == {"jsonrpc": "2.0", "id": 8, "result": "0x7a69"}
    assert ask(devnet, call("eth_chainId", call_id="a")).json["id"] != "a"
    order(devnet, "wrong_id", {"id": None}, method="net_version")
    assert ask(devnet, call("net_version")).json["id"] is not None


def test_duplicate_executes_a_call_several_times(devnet: Devnet) -> None:
    order(devnet, "duplicate", 3)
    assert ask(devnet, SENDING).json["result"] == TX.hash
    rows = devnet.rpc("devnet_submissions")[-3:]
    assert [row["hash"] for row in rows] == [TX.hash] * 3
    assert [row["verdict"] for row in rows] == ["pending", "rejected", "rejected"]


def test_error_is_any_error_and_executes_nothing(devnet: Devnet) -> None:
    order(devnet, "error", {"code": -32005, "message": "limit exceeded", "data": "0x01"})
    assert ask(devnet, SENDING).json["error"] == {"code": -32005, "message": "limit exceeded", "data": "0x01"}
    assert not known(devnet)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("besu.nonce_too_low", {"code": -32001, "message": "Nonce too low"}),
        ("geth.already_known", {"code": -32000, "message": "already known"}),
        ("geth.nonce_too_low", {"code": -32000, "message": "nonce too low: next nonce 0, tx nonce 0"}),
        ("anvil.already_known", {"code": -32003, "message": "transaction already imported"}),
    ],
)
def test_error_speaks_like_a_client_by_name(devnet: Devnet, name: str, error: dict[str, Any]) -> None:
    order(devnet, "error", name)
    assert ask(devnet, SENDING).json["error"] == error


def test_every_error_of_every_client_can_be_ordered() -> None:
    node = Node(Settings(timestamp=1_700_000_000))
    item = facts.read(SENDING, Origin(), None, in_batch=False)
    assert item is not None
    names = [f"{client}.{reason}" for client, profile in PROFILES.items() for reason in profile.texts]
    assert len(names) > 200
    for name in names:
        rule = parse_rule({"kind": "error", "arg": name}, name)
        error = ordered_error(node, item, rule.arg)
        assert error.code < 0
        assert error.message
        assert "{" not in error.message


def test_lie_accept_returns_the_hash_of_what_it_forgets(devnet: Devnet) -> None:
    order(devnet, "lie_accept")
    assert ask(devnet, SENDING).json["result"] == TX.hash
    assert not known(devnet)
    assert devnet.rpc("txpool_status") == {"pending": "0x0", "queued": "0x0"}
    assert last(devnet)["verdict"] == "forgotten"


def test_accept_as_error_keeps_what_it_seems_to_refuse(devnet: Devnet) -> None:
    order(devnet, "accept_as_error", "geth.replacement_underpriced")
    assert ask(devnet, SENDING).json["error"]["message"] == "replacement transaction underpriced"
    assert known(devnet)
    assert (last(devnet)["verdict"], last(devnet)["error"]) == ("pending", None)


def test_null_result_hides_an_answer(devnet: Devnet) -> None:
    order(devnet, "null_result", method="eth_getBlockByNumber")
    assert devnet.rpc("eth_getBlockByNumber", "latest", False) is None
    assert devnet.rpc("eth_getBlockByNumber", "latest", False) is not None


def test_stale_answers_from_an_earlier_block(devnet: Devnet) -> None:
    ask(devnet, SENDING)
    devnet.rpc("anvil_mine", 3)
    rule = {"kind": "stale", "arg": 3, "match": {"method": "eth_*"}}
    devnet.rpc("devnet_fault", rule)
    assert devnet.rpc("eth_blockNumber") == "0x0"
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, "latest") == "0x0"
    assert devnet.rpc("eth_getTransactionCount", ALICE.address, "pending") == "0x1"
    assert devnet.rpc("eth_getTransactionReceipt", TX.hash) is None
    assert devnet.rpc("eth_getTransactionByHash", TX.hash)["blockHash"] is None
    devnet.rpc("devnet_clearFaults")
    assert devnet.rpc("eth_getTransactionReceipt", TX.hash)["blockNumber"] == "0x1"


READS = [
    call(method, call_id=at)
    for at, method in enumerate(("eth_chainId", "net_version", "eth_blockNumber", "eth_gasPrice"))
]


def test_reorder_batch_answers_in_another_order(devnet: Devnet) -> None:
    order(devnet, "reorder_batch", method="net_version")
    ids = [answer["id"] for answer in ask(devnet, READS).json]
    assert sorted(ids) == [0, 1, 2, 3]
    assert ids != [0, 1, 2, 3]
    assert [answer["id"] for answer in ask(devnet, READS).json] == [0, 1, 2, 3]


def test_partial_batch_lacks_the_matched_answer_though_it_was_executed(devnet: Devnet) -> None:
    order(devnet, "partial_batch")
    assert [answer["id"] for answer in ask(devnet, [READS[0], call(SEND, TX.raw, call_id=9), READS[1]]).json] == [0, 1]
    assert known(devnet)


def test_faults_of_a_call_leave_the_rest_of_its_batch_alone(devnet: Devnet) -> None:
    order(devnet, "error", {"code": -1, "message": "no"}, method="net_version")
    answers = ask(devnet, READS).json
    assert [("error" in answer, answer["id"]) for answer in answers] == [(False, 0), (True, 1), (False, 2), (False, 3)]


@pytest.mark.parametrize(("kind", "executed"), [("drop_before", False), ("drop_after", True), ("http", False)])
def test_faults_of_a_request_strike_its_whole_batch(devnet: Devnet, kind: str, executed: bool) -> None:
    order(devnet, kind, method="net_version")
    heard = ask(devnet, [SENDING, *READS])
    assert heard.end is not None or heard.status == 503
    assert known(devnet) is executed
    assert last(devnet)["fault"]["kind"] == kind


def test_rules_match_by_connection(devnet: Devnet) -> None:
    with Connection(devnet) as first, Connection(devnet) as second:
        first.ask(SENDING)
        connection = last(devnet)["connection"]
        order(devnet, "http", method="eth_chainId", times=10)
        devnet.rpc("devnet_clearFaults")
        devnet.rpc("devnet_fault", {"kind": "http", "match": {"method": "eth_chainId", "connection": connection}})
        assert [each.ask(call("eth_chainId")).status for each in (second, first, second, first)] == [200, 503, 200, 503]


def test_faults_reach_calls_over_websocket(devnet: Devnet) -> None:
    async def meet(kind: str, arg: Any = None) -> tuple[str, Any]:
        order(devnet, kind, arg, method="eth_chainId")
        async with aiohttp.ClientSession() as session, session.ws_connect(devnet.url) as socket:
            await socket.send_str(json.dumps(call("eth_chainId")))
            message = await socket.receive(timeout=20)
            if message.type is aiohttp.WSMsgType.TEXT:
                return "text", message.data
            return message.type.name, message.data

    def met(kind: str, arg: Any = None) -> tuple[str, Any]:
        return asyncio.run(meet(kind, arg))

    assert json.loads(met("error", {"code": -5, "message": "x"})[1])["error"] == {"code": -5, "message": "x"}
    assert json.loads(met("wrong_id")[1])["id"] == 2
    assert met("truncate_json", 9) == ("text", '{"jsonrpc')
    assert met("html")[1].startswith("<html>")
    assert met("empty_body") == ("text", "")
    assert met("drop_after")[0] != "text"
    assert met("reset_mid_body")[0] != "text"
    assert met("http", 429) == ("CLOSE", 1013)


def play(devnet: Devnet) -> tuple[str, list[dict[str, Any]]]:
    for kind, arg in (("drop_after", {}), ("http", {"arg": 429}), ("accept_as_error", {"arg": "besu.nonce_too_low"})):
        devnet.rpc("devnet_fault", {"id": kind, "kind": kind, "p": 0.3, "match": {"method": SEND}} | arg)
    for nonce in range(10):
        for wallet in (ALICE, BOB):
            ask(devnet, call(SEND, wallet.sign(nonce).raw))
    return devnet.rpc("eth_getBlockByNumber", "latest", False)["hash"], devnet.rpc("devnet_faultLog")


def test_equal_seeds_give_equal_blocks_and_equal_fault_logs_in_two_processes() -> None:
    with start_devnet("--silent", "--seed", "7") as one, start_devnet("--silent", "--seed", "7") as same:
        first = play(one)
        assert first == play(same)
    assert {entry["outcome"] for entry in first[1]} >= {"fired", "passed"}


def when_back(devnet: Devnet, method: str, *params: Any) -> Any:
    """The result of a call, once the node listens again."""
    while True:
        try:
            return devnet.rpc(method, *params)
        except (ConnectionError, urllib.error.URLError):
            continue


def test_a_restart_drops_connections_pool_and_filters_and_listens_again(devnet: Devnet) -> None:
    with Connection(devnet) as bystander:
        bystander.ask(call("eth_chainId"))
        devnet.rpc("anvil_mine", 2)
        devnet.rpc(SEND, BOB.sign(0).raw)
        name = devnet.rpc("eth_newBlockFilter")
        with Connection(devnet) as orderer:
            assert orderer.ask(call("devnet_restart", {"downtimeMs": 50})).json["result"] is True
            assert orderer.hear().end in {"closed", "reset"}
        assert bystander.hear().end in {"closed", "reset"}
    assert when_back(devnet, "txpool_status") == {"pending": "0x0", "queued": "0x0"}
    assert devnet.rpc("eth_blockNumber") == "0x2"
    with pytest.raises(RpcFailure, match="filter not found"):
        devnet.rpc("eth_getFilterChanges", name)
    assert last(devnet)["events"][-1]["event"] == "lost"
    assert devnet.rpc("devnet_invariants", {"sender": BOB.address, "since": last(devnet)["index"]})["ok"] is True


def test_a_restart_ordered_over_websocket_is_answered_before_the_connection_dies(devnet: Devnet) -> None:
    async def restart() -> tuple[Any, bool]:
        async with aiohttp.ClientSession() as session, session.ws_connect(devnet.url) as socket:
            await socket.send_json(call("devnet_restart"))
            answer = await socket.receive_json(timeout=20)
            return answer["result"], (await socket.receive(timeout=20)).type is aiohttp.WSMsgType.TEXT

    assert asyncio.run(restart()) == (True, False)
    assert when_back(devnet, "eth_blockNumber") == "0x0"


def test_a_restart_may_keep_the_pool_and_lose_the_chain() -> None:
    with start_devnet("--silent", "--no-mining", "--nodes", "2") as devnet:
        genesis = devnet.rpc("eth_getBlockByNumber", "0x0", False)["hash"]
        devnet.rpc("devnet_nodes", {"lag": 1})
        devnet.rpc("anvil_mine", 3)
        devnet.rpc(SEND, BOB.sign(0).raw)
        devnet.rpc("devnet_fault", {"id": "stays", "kind": "hang", "match": {"method": "net_version"}})
        assert devnet.rpc("devnet_restart", {"losePool": False, "keepChain": False, "dropConnections": False})
        assert when_back(devnet, "eth_blockNumber") == "0x0"
        assert devnet.rpc("eth_getBlockByNumber", "latest", False)["hash"] == genesis
        assert devnet.rpc("txpool_status") == {"pending": "0x1", "queued": "0x0"}
        assert [rule["id"] for rule in devnet.rpc("devnet_faults")] == ["stays"]
        devnet.rpc("anvil_mine", 2)
        assert devnet.rpc("devnet_nodes")["heads"] == [1, 1]
        assert devnet.rpc("devnet_invariants")["ok"] is True


def test_a_call_that_a_restart_finds_waiting_is_never_executed(timeless: Devnet) -> None:
    order(timeless, "delay", 1000, id="slow")
    with Connection(timeless) as connection:
        connection.say(SENDING)
        await_decision(timeless, "slow")
        timeless.rpc("devnet_restart", {"dropConnections": False})
        when_back(timeless, "devnet_clock", {"advance": 2})
        assert connection.hear().end in {"closed", "reset"}
    assert not known(timeless)
