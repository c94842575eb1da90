"""The transport against a real server that misbehaves: what is posted, how often, and what each answer becomes."""

import contextlib
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from chain.errors import Malformed, RpcError, Unavailable
from chain.rpc import MAX_BATCH, Rpc
from tests.unit.chain.scripted import closed_port, http, methods, node

ECHO = methods({"echo": lambda params: params[0], "bad": ValueError(-32000, "nope")})


def test_a_call_is_one_post() -> None:
    with node(ECHO) as server:
        rpc = Rpc(server.url)
        assert rpc.call("echo", [7]) == 7
        with pytest.raises(RpcError, match="nope") as caught:
            rpc.call("bad")
        assert caught.value.code == -32000
        assert rpc.posts == len(server.posts) == 2
        rpc.close()
        with pytest.raises(Unavailable):
            rpc.call("echo", [8])


def test_a_batch_is_posted_in_chunks_and_answered_in_order() -> None:
    def shuffled(body):
        return list(reversed(ECHO(body))) if isinstance(body, list) else ECHO(body)

    with node(shuffled) as server:
        rpc = Rpc(server.url)
        results = rpc.batch([("echo", [n]) if n % 50 else ("bad", []) for n in range(2 * MAX_BATCH + 1)])
        assert len(server.posts) == 3
        assert [r for r in results if not isinstance(r, RpcError)] == [n for n in range(2 * MAX_BATCH + 1) if n % 50]
        assert [n for n, r in enumerate(results) if isinstance(r, RpcError)] == [0, 50, 100, 150, 200]
        assert rpc.batch([]) == []


def test_a_large_answer_with_brackets_in_strings_is_fine() -> None:
    value = [{"a": ['[[[{{{"[[' * 20, []]} for _ in range(3000)]
    with node(methods({"echo": value})) as server:
        assert Rpc(server.url).call("echo") == value


def test_a_time_out_is_one_post() -> None:
    def slow(body):
        time.sleep(1)
        return ECHO(body)

    with node(slow) as server:
        rpc = Rpc(server.url, timeout_seconds=0.2)
        with pytest.raises(Unavailable, match="ReadTimeout"):
            rpc.call("echo", [1])
        assert rpc.posts == len(server.posts) == 1


def test_a_trickling_answer_is_cut_off_at_the_deadline() -> None:
    """Each byte comes in time, the whole does not."""
    import socket

    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
            try:
                for _ in range(100):
                    connection.sendall(b" ")
                    time.sleep(0.05)
            except OSError:
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    rpc = Rpc(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_seconds=0.3)
    start = time.monotonic()
    with pytest.raises(Unavailable, match="too long"):
        rpc.call("echo", [1])
    assert time.monotonic() - start < 2
    thread.join()
    listener.close()


OK = {"jsonrpc": "2.0", "id": 1, "result": 1}


def encoded(value) -> bytes:
    return http(200, json.dumps(value).encode())


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (b"", Unavailable, "did not answer"),
        (b"not http at all\r\n\r\n", Unavailable, "did not answer"),
        (http(200, b'{"jsonrpc"', length=500), Unavailable, "broke off"),
        (http(502, b"<html>Bad Gateway</html>"), Unavailable, "502"),
        (http(503, json.dumps(OK).encode()), Unavailable, "503"),
        (http(429, b"{}"), Unavailable, "429"),
        (http(401, b"<html>"), Unavailable, "401"),
        (http(404, b""), Unavailable, "404"),
        (http(301, b"", "location: http://127.0.0.1:1/"), Unavailable, "elsewhere"),
        (http(307, b"", "location: http://127.0.0.1:1/"), Unavailable, "elsewhere"),
        (http(200, b"<html>hello</html>"), Malformed, "not JSON-RPC"),
        (http(200, b""), Malformed, "not JSON-RPC"),
        (http(200, b"null"), Malformed, "not JSON-RPC"),
        (http(200, b"[" * 100_000), Malformed, "not JSON-RPC"),
        (http(200, b'{"a":' * 100_000), Malformed, "not JSON-RPC"),
        (encoded(7), Malformed, "not an object"),
        (encoded([OK]), Malformed, "not an object"),
        (encoded(OK | {"id": 2}), Malformed, "another id"),
        (encoded(OK | {"id": "1"}), Malformed, "another id"),
        (encoded(OK | {"id": True}), Malformed, "another id"),
        (encoded({"result": 1}), Malformed, "another id"),
        (encoded({"id": 1}), Malformed, "neither a result nor an error"),
        (encoded({"id": 1, "error": {"code": -32000, "message": "no"}}), RpcError, "no"),
        (encoded({"id": None, "error": {"code": -32700, "message": "parse"}}), RpcError, "parse"),
        (encoded({"id": 9, "error": {"code": -32000, "message": "no"}}), Malformed, "another id"),
        (encoded({"id": 1, "error": "plain text"}), RpcError, "plain text"),
        (encoded({"id": 1, "error": {"code": "x", "message": None}}), RpcError, "error 0"),
        (http(400, json.dumps({"id": 1, "error": {"code": -32100, "message": "no"}}).encode()), RpcError, "-32100"),
    ],
)
def test_each_broken_answer_is_one_post_and_one_error(answer: bytes, error: type, words: str) -> None:
    with node(answer) as server:
        rpc = Rpc(server.url, timeout_seconds=2)
        with pytest.raises(error, match=words):
            rpc.call("echo", [1])
        assert rpc.posts == len(server.posts) == 1


REFUSAL = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "nonce too low"}}


@pytest.mark.parametrize("status", [200, 400, 500, 503])
def test_a_refusal_is_the_nodes_own_under_any_status(status: int) -> None:
    """[B28]"""
    with node(http(status, json.dumps(REFUSAL).encode())) as server, pytest.raises(RpcError, match="nonce too low"):
        Rpc(server.url).call("echo")
    batch = [REFUSAL, REFUSAL | {"id": 2}]
    with node(http(status, json.dumps(batch).encode())) as server:
        assert [type(found) for found in Rpc(server.url).batch([("echo", [])] * 2)] == [RpcError] * 2


@pytest.mark.parametrize("body", [b'{"error": "overloaded"}', b'{"error": {"message": "x"}}', b"[]", b"<html>", b"{}"])
def test_a_gateways_error_is_no_answer_of_the_node(body: bytes) -> None:
    with node(http(503, body)) as server, pytest.raises(Unavailable, match="503"):
        Rpc(server.url).call("echo")


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("asked", "rests"),
    [
        ("7", True),
        (format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True), True),
        (format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True), False),
        ("0", False),
        ("-3", False),
        ("soon", False),
        ("1e9", False),
        ("Mon, 99 Foo 2026", False),
    ],
    ids=["seconds", "a date to come", "a date that passed", "zero", "negative", "words", "a float", "no date"],
)
def test_retry_after_is_respected_by_every_caller_of_the_endpoint(status: int, asked: str, rests: bool) -> None:
    """[B54]"""
    with node(http(status, b"slow down", f"Retry-After: {asked}")) as server:
        rpc = Rpc(server.url)
        for _ in range(3):
            with pytest.raises(Unavailable) as caught:
                rpc.call("echo")
            assert caught.value.status in (status, 429)
        assert ("asked us to wait" in str(caught.value)) is rests
        assert rpc.posts == len(server.posts) == (1 if rests else 3)


def test_an_endpoint_that_asked_to_wait_is_asked_again_afterwards(monkeypatch) -> None:
    monkeypatch.setattr("chain.transport.MAX_REST_SECONDS", 0.2)
    with node(http(429, b"", "Retry-After: 999999999"), encoded(OK)) as server:
        rpc = Rpc(server.url)
        with pytest.raises(Unavailable):
            rpc.call("echo")
        with pytest.raises(Unavailable, match="asked us to wait"):
            rpc.call("echo")
        deadline = time.monotonic() + 30
        while rpc.posts == 1 and time.monotonic() < deadline:
            with contextlib.suppress(Unavailable, Malformed):
                rpc.call("echo")
        assert rpc.posts == 2


def test_a_status_is_kept() -> None:
    with node(http(429, b"")) as server, pytest.raises(Unavailable) as caught:
        Rpc(server.url).call("echo")
    assert caught.value.status == 429


def test_a_refused_connection_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="did not answer"):
        Rpc(f"http://127.0.0.1:{closed_port()}").call("echo")


def test_a_body_over_the_cap_is_not_read(monkeypatch) -> None:
    monkeypatch.setattr("chain.transport.MAX_BODY", 1 << 20)
    with node(http(200, b" " * (1 << 21))) as server, pytest.raises(Unavailable, match="larger than 1 MiB"):
        Rpc(server.url).call("echo")


def one_object(code: int, message: str):
    return lambda body: (
        ECHO(body) if isinstance(body, dict) else {"id": None, "error": {"code": code, "message": message}}
    )


def test_a_node_that_answers_a_batch_with_one_object_is_asked_one_by_one() -> None:
    with node(one_object(-32600, "Invalid Request")) as server:
        rpc = Rpc(server.url)
        assert rpc.batch([("echo", [n]) for n in range(5)]) == list(range(5))
        assert len(server.posts) == 6
        assert rpc.batch([("echo", [n]) for n in range(5)]) == list(range(5))
        assert len(server.posts) == 11
        assert rpc.chunk == 1


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_node_that_takes_small_batches_gets_small_batches(wrapped: bool) -> None:
    def up_to_ten(body):
        if isinstance(body, list) and len(body) > 10:
            refusal = {"id": None, "error": {"code": -32600, "message": "batch too large"}}
            return [refusal] if wrapped else refusal
        return ECHO(body)

    with node(up_to_ten) as server:
        rpc = Rpc(server.url)
        assert rpc.batch([("echo", [n]) for n in range(100)]) == list(range(100))
        assert rpc.chunk == 6
        assert len(server.posts) == 4 + 17


def test_one_odd_answer_does_not_end_batches_for_ever(monkeypatch) -> None:
    """Of the kind of [B26]: one answer must not disable what a provider can do."""
    monkeypatch.setattr("chain.rpc.POSTS_UNTIL_LARGER", 4)
    calls = [("echo", [n]) for n in range(4)]
    with node(lambda _: {"id": None, "error": {"code": -32603, "message": "internal"}}, ECHO) as server:
        rpc = Rpc(server.url)
        assert rpc.batch(calls) == [0, 1, 2, 3]
        assert (rpc.chunk, rpc.posts) == (1, 5)
        for _ in range(8):
            assert rpc.batch(calls) == [0, 1, 2, 3]
        assert rpc.chunk >= 8
        assert isinstance(server.posts[-1], list)
        assert len(server.posts[-1]) == 4


def test_a_rate_limited_batch_is_not_repeated() -> None:
    with node(one_object(-32016, "over rate limit")) as server:
        results = Rpc(server.url).batch([("echo", [n]) for n in range(5)])
        assert [type(result) for result in results] == [RpcError] * 5
        assert len(server.posts) == 1


def test_an_answer_left_out_of_a_batch_fails_alone() -> None:
    with node(lambda body: ECHO(body)[:-1]) as server:
        *rest, last = Rpc(server.url).batch([("echo", [n]) for n in range(3)])
        assert rest == [0, 1]
        assert isinstance(last, Malformed)


@pytest.mark.parametrize(
    "answer",
    [lambda b: [*ECHO(b), ECHO(b)[0]], lambda b: [*ECHO(b), {"id": 99, "result": 1}], lambda b: [1, 2], lambda b: 5],
)
def test_a_batch_with_foreign_items_is_malformed(answer) -> None:
    with node(answer) as server, pytest.raises(Malformed):
        Rpc(server.url).batch([("echo", [1]), ("echo", [2])])


def test_credentials_are_sent_and_never_shown() -> None:
    with node(ECHO, http(502, b"")) as server:
        url = server.url.replace("http://", "http://user:s3cret@") + "/v3/APIKEY?token=HIDDEN"
        rpc = Rpc(url)
        assert rpc.call("echo", [1]) == 1
        assert server.headers[0]["authorization"].startswith("Basic ")
        with pytest.raises(Unavailable) as caught:
            rpc.call("echo", [1])
        shown = [str(caught.value), repr(caught.value), repr(rpc), repr(rpc._transport), rpc.label]
        with pytest.raises(Unavailable) as caught:
            Rpc(f"http://user:s3cret@127.0.0.1:{closed_port()}/APIKEY").call("echo")
        shown += [str(caught.value), repr(caught.value)]
        assert caught.value.__cause__ is None
        assert not [text for text in shown for secret in ("s3cret", "APIKEY", "HIDDEN", "user") if secret in text]


def test_the_environment_sets_no_proxy(monkeypatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    with node(ECHO) as server:
        assert Rpc(server.url).call("echo", [1]) == 1


@pytest.mark.parametrize(
    "url", ["", "localhost:8545", "ftp://x/", "http://", "http://[::1", "file:///etc/SECRET", "/SECRET"]
)
def test_what_is_no_endpoint_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="an endpoint is") as caught:
        Rpc(url)
    assert "SECRET" not in str(caught.value)


def test_posts_are_counted_across_threads() -> None:
    with node(ECHO) as server:
        rpc = Rpc(server.url)
        threads = [threading.Thread(target=lambda: [rpc.call("echo", [1]) for _ in range(20)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert rpc.posts == len(server.posts) == 160
