"""anvil's flags mean here what they mean there; what is not to be had is one sentence and exit code 2."""

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from devnet.__main__ import main
from devnet.command_line import hosts_of, parse, settings_of
from devnet.errors import RpcError
from devnet.node import Node
from devnet.server.listener import Listener
from tests.devnet.bytecode import deploying
from tests.devnet.in_process import InProcess
from tests.devnet.wallet import ALICE, BOB, ETHER, GWEI
from tests.support.anvil import anvil_binary, start_anvil
from tests.support.devnet import Devnet, start_devnet

PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--fork-url", "http://localhost:1"], "--fork-url is not supported: this devnet does not fork another chain"),
        (["--number", "5"], "--number is not supported: genesis is block 0 here"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["--block-time", "0"], "argument -b/--block-time/--blockTime: must be above 0"),
        (["--block-time", "1", "--no-mining"], "--block-time and --no-mining exclude each other"),
        (["--mixed-mining"], "--mixed-mining needs --block-time"),
        (
            ["--mnemonic", "a", "--mnemonic-random"],
            "argument --mnemonic-random: not allowed with argument -m/--mnemonic",
        ),
        (["--state-interval", "1"], "--state-interval needs --state or --dump-state"),
        (["--state", "a", "--load-state", "b"], "--state stands for --load-state and --dump-state"),
    ],
)
def test_flags_that_cannot_be_followed_are_one_sentence(
    flags: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(flags)
    told = capsys.readouterr().err
    assert caught.value.code == 2
    assert told.startswith(f"devnet: {text}")
    assert told.count("\n") == 1


def test_a_bad_mnemonic_ends_the_start_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mnemonic", "a b c"]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "devnet: the mnemonic is no BIP-39 phrase: check its words and their order\n")


def test_anvils_flags_without_a_meaning_here_are_taken() -> None:
    parse(
        [
            "--steps-tracing",
            "--preserve-historical-states",
            "--prune-history",
            "--prune-history",
            "5",
            "-vvv",
            "--gas-price",
            "7",
            "-j",
            "2",
            "--transaction-block-keeper",
            "64",
            "--disable-console-log",
            "--color",
            "never",
        ]
    )


def test_accounts_follow_from_mnemonic_and_path() -> None:
    def first(*flags: str) -> str:
        return Node(settings_of(parse(["--accounts", "1", *flags]))).accounts[0].address.hex()

    assert first() == first("--mnemonic", "test test test test test test test test test test test junk")
    # Recorded from anvil 1.7.1 with the same flags.
    assert first("--derivation-path", "m/44'/60'/0'/1") == "4b39f7b0624b9db86ad293686bc38b903142dbbc"
    assert first("--mnemonic", PHRASE) == "58a57ed9d8d624cbd12e2c467d34787555bb1b25"
    assert first("--mnemonic-seed-unsafe", "7") == first("--mnemonic-seed-unsafe", "7") != first()
    assert first("--mnemonic-random") != first("--mnemonic-random", "24")


def test_addresses_to_listen_on_may_be_named_several_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANVIL_IP_ADDR", raising=False)
    assert hosts_of(parse([])) == ["127.0.0.1"]
    assert hosts_of(parse(["--host", "127.0.0.1,::1", "--host", "127.0.0.2"])) == ["127.0.0.1", "::1", "127.0.0.2"]
    monkeypatch.setenv("ANVIL_IP_ADDR", "0.0.0.0")
    assert hosts_of(parse([])) == ["0.0.0.0"]


def sections(output: str) -> dict[str, list[str]]:
    """A banner's lines by their headings."""
    found: dict[str, list[str]] = {}
    lines = output.splitlines()
    for at, line in enumerate(lines):
        if line == "==================":
            rest = lines[at + 1 :]
            end = next((index for index, item in enumerate(rest) if item == "=================="), len(rest) + 1)
            found[lines[at - 1]] = [item for item in rest[: end - 1] if item and not item.startswith("Listening")]
    return found


@pytest.mark.anvil
def test_banner_and_configuration_are_those_of_anvil(tmp_path: Path) -> None:
    path, trouble = anvil_binary()
    if path is None:
        pytest.skip(trouble)
    flags = ["--accounts", "2", "--balance", "7", "--base-fee", "5", "--gas-limit", "9000000", "--chain-id", "99"]
    flags += ["--timestamp", "1700000000", "--mnemonic", PHRASE, "--derivation-path", "m/44'/60'/0'/1"]
    told, written = [], []
    for start in (start_devnet, start_anvil):
        file = tmp_path / start.__name__
        with start(*flags, "--config-out", str(file)) as node:
            told.append(sections(node.output()))
            written.append(json.loads(file.read_text()))
    assert told[0] == told[1]
    assert len(told[0]["Private Keys"]) == 2
    differing = {name for name in written[1] if written[0][name] != written[1][name]}
    assert written[0].keys() == written[1].keys()
    assert differing <= {"gas_price"}


def test_mixed_mining_makes_blocks_both_ways() -> None:
    with start_devnet("--silent", "--mixed-mining", "--block-time", "1", "--clock", "manual") as devnet:
        sent = devnet.rpc("eth_sendRawTransaction", ALICE.sign(0).raw)
        assert devnet.rpc("eth_getTransactionReceipt", sent)["blockNumber"] == "0x1"
        devnet.rpc("devnet_clock", {"advance": 2})
        assert devnet.rpc("eth_blockNumber") == "0x3"


def test_the_chain_can_be_shaped() -> None:
    flags = "--no-mining --slots-in-an-epoch 2 --order fifo --max-transactions 1 --disable-block-gas-limit"
    flags += " --gas-limit 30000 --disable-code-size-limit --no-priority-fee --no-create2 --client-version me/v1"
    rpc = InProcess(*flags.split()).rpc
    assert rpc("web3_clientVersion") == "me/v1"
    assert rpc("eth_maxPriorityFeePerGas") == "0x1"  # the least geth's pool takes
    assert rpc("eth_getCode", "0x4e59b44847b379578588920ca78fbf26c0b4956c", "latest") == "0x"
    big = rpc("eth_sendRawTransaction", ALICE.create(0, deploying(b"\0" * 30_000), gas=9_000_000).raw)
    eager = rpc("eth_sendRawTransaction", BOB.sign(0, maxPriorityFeePerGas=5 * GWEI).raw)
    rpc("evm_mine")
    receipt = rpc("eth_getTransactionReceipt", big)
    assert receipt["status"] == "0x1"
    assert len(rpc("eth_getCode", receipt["contractAddress"], "latest")) == 2 + 60_000
    assert rpc("eth_getTransactionReceipt", eager) is None
    rpc("anvil_mine", "0x5")
    heights = [int(rpc("eth_getBlockByNumber", tag, False)["number"], 16) for tag in ("safe", "finalized")]
    assert heights == [4, 2]


def test_a_smaller_limit_on_code_holds() -> None:
    rpc = InProcess("--code-size-limit", "100").rpc
    small = rpc("eth_sendRawTransaction", ALICE.create(0, deploying(b"\0" * 100)).raw)
    large = rpc("eth_sendRawTransaction", ALICE.create(1, deploying(b"\0" * 101)).raw)
    assert [rpc("eth_getTransactionReceipt", item)["status"] for item in (small, large)] == ["0x1", "0x0"]
    with pytest.raises(RpcError, match="max initcode size exceeded: code size 213 limit 200"):
        rpc("eth_sendRawTransaction", ALICE.create(2, deploying(b"\0" * 200)).raw)


CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}).encode()
LARGE = CALL.ljust(5 * 1024 * 1024 + 1)


def reply(
    url: str, body: bytes | None, kind: str = "application/json", method: str = "POST"
) -> tuple[int, str, dict[str, str]]:
    request = urllib.request.Request(url, body, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode(), dict(problem.headers)


def test_requests_that_carry_no_call_are_refused_as_by_geth(devnet: Devnet) -> None:
    for body, kind, method, status, text in (
        (LARGE, "application/json", "POST", 413, "content length too large (5242881>5242880)\n"),
        (CALL, "text/plain", "POST", 415, "invalid content type, only application/json is supported\n"),
        (CALL, "application/json", "PUT", 405, "method not allowed\n"),
        (None, "application/json", "GET", 200, ""),
        (None, "application/json", "OPTIONS", 204, ""),
    ):
        answer = reply(devnet.url, body, kind, method)
        assert answer[:2] == (status, text)
        assert answer[2]["Access-Control-Allow-Origin"] == "*"
    assert reply(devnet.url, CALL, "application/json; charset=utf-8")[0] == 200
    assert reply(devnet.url + "/nowhere", CALL)[:2] == (404, "404 page not found\n")


def test_it_listens_on_every_address_and_as_told() -> None:
    flags = ("--host", "127.0.0.1", "--host", "127.0.0.2", "--no-cors", "--no-request-size-limit", "--auto-impersonate")
    with start_devnet("--silent", *flags) as devnet:
        told = re.fullmatch(r"Listening on (127\.0\.0\.1:\d+), (127\.0\.0\.2:\d+)\n", devnet.output())
        assert told
        first, second = (f"http://{address}" for address in told.groups())
        status, text, headers = reply(second, LARGE)
        assert (status, json.loads(text)["result"]) == (200, "0x7a69")
        assert not [name for name in headers if name.lower().startswith("access-control")]
        anyone = "0x" + "77" * 20
        calls = [("anvil_setBalance", [anyone, hex(ETHER)]), ("eth_sendTransaction", [{"from": anyone, "to": anyone}])]
        batch = [{"jsonrpc": "2.0", "id": 1, "method": method, "params": params} for method, params in calls]
        answers = json.loads(reply(first, json.dumps(batch).encode())[1])
        assert [sorted(answer) for answer in answers] == [["id", "jsonrpc", "result"]] * 2


def test_cors_allows_whom_it_is_told_to() -> None:
    assert Listener(allow_origin="http://me").headers()["Access-Control-Allow-Origin"] == "http://me"
    assert Listener(allow_origin=None).headers() == {}
