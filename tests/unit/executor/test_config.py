"""One bad input after another: each is one sentence that begins with the path of the key."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

from chain.types import Depth, Tag
from executor.config import Config, KeystoreSigner, Secret, load, parse, strategy_digest
from executor.errors import ConfigError
from executor.recurrence import Cron, Every

GOOD = """\
[service]
name = "payments-production"
[database]
url = { env = "DATABASE_URL" }
[worker]
lease = "30s"
[chains.base]
id = 8453
endpoints = ["https://base.example", { env = "NODE" }]
final = { depth = 20 }
[accounts.treasury]
chain = "base"
address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
signer = { kind = "keystore", path = "keys/treasury.json", password = { file = "password" } }
max_in_flight = 8
[accounts.treasury.policy]
max_fee_per_gas = "2 gwei"
max_value = "0.5 ether"
allow_to = ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8"]
[strategies.suppliers]
plan = "strategies.suppliers:plan"
account = "treasury"
schedule = "0 10 * * mon-fri"
timezone = "Europe/Berlin"
misfire = "latest"
start_deadline = "24h"
input = { file = "invoices.json" }
params = { currency = "USDC", limit = 3, token = { env = "TOKEN" } }
"""
ENVIRONMENT = {
    "DATABASE_URL": "postgresql://fenced:canary-secret@db/fenced",
    "NODE": "https://node.example/v3/canary-secret-0123456789",
    "TOKEN": "usdc",
    "FRAGMENT": "1 canary",
    "CANARY": "canary-secret-0123456789",
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "password").write_text("canary-secret\n")
    return tmp_path


def changed(directory: Path, old: str, new: str) -> Config:
    assert old in GOOD
    return parse(GOOD.replace(old, new, 1), directory, environment=ENVIRONMENT)


def test_a_good_file_is_values_with_units(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in ENVIRONMENT.items():
        monkeypatch.setenv(name, text)
    (directory / "fenced.toml").write_text(GOOD)
    config = load(directory / "fenced.toml")
    assert config.directory == directory
    assert config.database.url == Secret(ENVIRONMENT["DATABASE_URL"])
    assert (config.worker.lease_seconds, config.worker.plan_timeout_seconds, config.worker.tick_seconds) == (
        30,
        10,
        0.2,
    )
    chain, account, strategy = config.chains["base"], config.accounts["treasury"], config.strategies["suppliers"]
    assert (chain.id, chain.final, chain.is_development) == (8453, Depth(20), False)
    assert [endpoint.name for endpoint in chain.endpoints] == ["base.example", "node.example"]
    assert chain.endpoints[1].url.reveal() == ENVIRONMENT["NODE"]
    assert account.address.hex() == "f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    assert isinstance(account.signer, KeystoreSigner)
    assert account.signer.path == directory / "keys/treasury.json"
    assert account.signer.password.reveal() == "canary-secret"
    assert (account.policy.max_fee_per_gas_wei, account.policy.max_value_wei) == (2 * 10**9, 5 * 10**17)
    assert account.policy.allow_create is False
    assert (account.max_in_flight, strategy.start_deadline_seconds, strategy.overlap) == (8, 86_400, "skip")
    assert strategy.params == {"currency": "USDC", "limit": 3, "token": "usdc"}
    assert isinstance(strategy.recurrence(), Cron)
    assert config.account_of("suppliers") is account
    assert config.chain_of("treasury") is chain


def test_nothing_printed_holds_a_secret(directory: Path) -> None:
    config = parse(GOOD, directory, environment=ENVIRONMENT)
    for shown in (repr(config), str(config), f"{config.database.url}", str(config.model_dump())):
        assert "canary" not in shown
        assert "***" in shown
    secret = Secret("canary")
    for leak in (
        lambda: pickle.dumps(secret),
        lambda: copy.deepcopy(secret),
        lambda: copy.copy(secret),
        lambda: json.dumps(secret),
    ):
        with pytest.raises(TypeError) as caught:
            leak()  # type: ignore[no-untyped-call]
        assert "canary" not in str(caught.value)


DEVELOPMENT = """\
[service]
name = "demo"
[database]
embedded = true
[chains.dev]
id = 31337
endpoints = ["http://127.0.0.1:8545", "http://127.0.0.1:8545/x"]
[accounts.dev]
chain = "dev"
address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
signer = { kind = "keyfile", path = "key" }
policy = { max_fee_per_gas = "100 gwei" }
[strategies.beat]
plan = "beat:plan"
account = "dev"
every = "5s"
misfire = "skip"
[strategies.pay]
plan = "pay:plan"
account = "dev"
"""


def test_a_development_file_may_leave_things_out(directory: Path) -> None:
    config = parse(DEVELOPMENT, directory)
    assert config.database.state_dir == directory / ".fenced"
    assert config.chains["dev"].final == Depth(0)
    assert [endpoint.name for endpoint in config.chains["dev"].endpoints] == ["127.0.0.1:8545", "127.0.0.1:8545#2"]
    assert isinstance(config.strategies["beat"].recurrence(), Every)
    assert config.strategies["pay"].recurrence() is None
    assert parse(DEVELOPMENT.replace("31337", "1337"), directory).chains["dev"].id == 1337


@pytest.mark.parametrize(
    ("text", "rule"), [('"safe"', Tag("safe")), ('"finalized"', Tag("finalized")), ("{ depth = 0 }", Depth(0))]
)
def test_finality_rules(directory: Path, text: str, rule: object) -> None:
    assert changed(directory, "{ depth = 20 }", text).chains["base"].final == rule


ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
FEE, POLICY, PAY = 'max_fee_per_gas = "2 gwei"', "accounts.treasury.policy", "strategies.suppliers"
SIGNER = 'signer = { kind = "keystore", path = "keys/treasury.json", password = { file = "password" } }'
BAD = [
    # unknown keys, missing keys
    (FEE, 'max_fee_pergas = "2 gwei"', f"{POLICY}.max_fee_pergas: is not a known key; did you mean max_fee_per_gas?"),
    ("[service]", "[servce]", "servce: is not a known key; did you mean service?"),
    ("max_in_flight", "nonce", "accounts.treasury.nonce: is not a known key; known keys are chain, address"),
    (FEE, "", f"{POLICY}.max_fee_per_gas: is missing"),
    ('plan = "strategies.suppliers:plan"', "", f"{PAY}.plan: is missing"),
    ("final = { depth = 20 }", "", "chains.base.final: is missing; write"),
    ('misfire = "latest"', "", f"{PAY}.misfire: is missing; say what happens"),
    ('url = { env = "DATABASE_URL" }', "", "database.url: is missing"),
    # amounts and durations
    (FEE, "max_fee_per_gas = 2000000000", f"{POLICY}.max_fee_per_gas: the bare number 2000000000 is not an amount"),
    (FEE, "max_fee_per_gas = 2.5", f"{POLICY}.max_fee_per_gas: the bare number 2.5 is not an amount"),
    (FEE, 'max_fee_per_gas = "2"', f'{POLICY}.max_fee_per_gas: "2" is not an amount'),
    (FEE, 'max_fee_per_gas = "2 gwie"', f'{POLICY}.max_fee_per_gas: "gwie" is not a unit of ether'),
    (FEE, 'max_fee_per_gas = "0 gwei"', f"{POLICY}.max_fee_per_gas: does not fit"),
    (FEE, FEE + '\nmax_priority_fee_per_gas = "3 gwei"', f"{POLICY}.max_priority_fee_per_gas: is above max_fee_per_gas"),
    ('lease = "30s"', "lease = 30", "worker.lease: the bare number 30 is not a duration"),
    ('lease = "30s"', 'lease = "1s"', "worker.lease: does not fit"),
    ('lease = "30s"', 'listen = "9108"', "worker.listen: is not host:port"),
    ('start_deadline = "24h"', 'start_deadline = "24"', f'{PAY}.start_deadline: "24" is not a duration'),
    ("max_in_flight = 8", 'max_in_flight = "8"', "accounts.treasury.max_in_flight: is not a whole number"),
    ("max_in_flight = 8", "max_in_flight = 0", "accounts.treasury.max_in_flight: does not fit"),
    ("id = 8453", "id = true", "chains.base.id: is not a whole number"),
    # addresses
    (ADDRESS, ADDRESS.lower(), f'accounts.treasury.address: "{ADDRESS.lower()}" has a wrong checksum; check every digit, and if they are right write "{ADDRESS}"'),
    (ADDRESS, ADDRESS[:-1], "accounts.treasury.address: "),
    ("0x70997970", "0x70997971", f"{POLICY}.allow_to[0]: "),
    # references between sections
    ('chain = "base"', 'chain = "bass"', 'accounts.treasury.chain: names the unknown chain "bass"; known are: base'),
    ('account = "treasury"', 'account = "tresury"', f'{PAY}.account: names the unknown account "tresury"; known are: treasury'),
    ("[worker]", '[chains.other]\nid = 8453\nendpoints = ["https://x"]\nfinal = "safe"\n[worker]', ".id: is the id of chains."),
    ('url = { env = "DATABASE_URL" }', "embedded = true", "database.embedded: is for development chains only, and chains.base has id 8453"),
    ('url = { env = "DATABASE_URL" }', 'url = { env = "DATABASE_URL" }\nembedded = true', "database.embedded: stands beside url"),
    (SIGNER, 'signer = { kind = "keyfile", path = "k" }', "accounts.treasury.signer.kind: keyfile keeps the key in plain text"),
    # secrets
    ('{ file = "password" }', '"hunter2-canary"', "accounts.treasury.signer.password: must not stand in this file"),
    (', password = { file = "password" }', "", "accounts.treasury.signer.password: is missing"),
    ('{ file = "password" }', '{ file = "none" }', "accounts.treasury.signer.password: the file none cannot be read (No such file or directory)"),
    ('{ file = "password" }', '{ file = "." }', "accounts.treasury.signer.password: the file . cannot be read"),
    ('{ file = "password" }', '{ env = "UNSET" }', "accounts.treasury.signer.password: the environment variable UNSET is not set"),
    (SIGNER, 'signer = { kind = "keyfile", private_key = "0xcanary" }', "accounts.treasury.signer.private_key: is not a known key"),
    (SIGNER, 'signer = { kind = "keystor", path = "k" }', "accounts.treasury.signer.kind: is no known kind of signer"),
    (SIGNER, 'signer = { path = "k" }', "accounts.treasury.signer.kind: is no known kind of signer"),
    ('{ env = "DATABASE_URL" }', '"postgresql://u:canary@h/d"', "database.url: holds a password; move the whole URL"),
    ('{ env = "DATABASE_URL" }', '"postgresql://h/d?password=canary"', "database.url: holds a password"),
    ('{ env = "DATABASE_URL" }', '"mysql://h/d"', "database.url: is not a PostgreSQL URL"),
    ('{ env = "DATABASE_URL" }', '{ env = "CANARY" }', "database.url: is not a PostgreSQL URL"),
    ('"https://base.example"', '"https://u:canary@h"', "chains.base.endpoints[0]: holds a credential"),
    ('"https://base.example"', '"https://h/v3/canary0123456789canary"', "chains.base.endpoints[0]: holds a credential"),
    ('"https://base.example"', '"https://h/?key=canary0123456789canary"', "chains.base.endpoints[0]: holds a credential"),
    ('"https://base.example"', '"ws://h"', "chains.base.endpoints[0]: is not an http or https URL"),
    ('"https://base.example"', '"http://h:port"', "chains.base.endpoints[0]: is not a URL"),
    ('"https://base.example"', '{ env = "CANARY" }', "chains.base.endpoints[0]: is not an http or https URL"),
    ('["https://base.example", { env = "NODE" }]', "[]", "chains.base.endpoints: is not a list of URLs"),
    ('["https://base.example", { env = "NODE" }]', '["http://h", "http://h"]', "chains.base.endpoints: names the same endpoint twice"),
    (FEE, 'max_fee_per_gas = { env = "CANARY" }', f"{POLICY}.max_fee_per_gas: does not fit, and is not shown"),
    (FEE, 'max_fee_per_gas = { env = "FRAGMENT" }', f"{POLICY}.max_fee_per_gas: does not fit, and is not shown"),
    ('"Europe/Berlin"', '{ env = "CANARY" }', f"{PAY}.timezone: does not fit, and is not shown"),
    # schedules
    ('"0 10 * * mon-fri"', '"0 0 30 2 *"', f'{PAY}.schedule: "0 0 30 2 *" is not a cron schedule (bad day-of-month)'),
    ('"0 10 * * mon-fri"', '"0 0 10 * * mon"', f'{PAY}.schedule: "0 0 10 * * mon" has 6 fields'),
    ('schedule = "0 10 * * mon-fri"', 'schedule = "@daily"\nevery = "5s"', f"{PAY}.every: stands beside schedule"),
    ('schedule = "0 10 * * mon-fri"', 'every = "0.5s"', f"{PAY}.every: every must be a whole number of seconds"),
    ('schedule = "0 10 * * mon-fri"', "every = 5", f"{PAY}.every: the bare number 5 is not a duration"),
    ("Europe/Berlin", "Europe/Berln", f'{PAY}.timezone: "Europe/Berln" is not a time zone'),
    ('"latest"', '"newest"', f"{PAY}.misfire: does not fit"),
    ('"strategies.suppliers:plan"', '"strategies/suppliers.py"', f"{PAY}.plan: is not module.path:function"),
    ('"strategies.suppliers:plan"', '"chain.suppliers:plan"', f"{PAY}.plan: names a package of this program"),
    # shapes
    ('"payments-production"', '"Payments Production"', "service.name: is not a name"),
    ("[strategies.suppliers]", '[strategies."a/b"]', "strategies.a/b: is not a name"),
    ("limit = 3", "limit = 2026-01-01", f"{PAY}.params.limit: is neither text, number"),
    ("limit = 3", "limit = [1, nan]", f"{PAY}.params.limit[1]: is neither text, number"),
    ("{ depth = 20 }", "{ depth = -1 }", "chains.base.final: is no finality rule"),
    ("{ depth = 20 }", '"latest"', "chains.base.final: is no finality rule"),
    ('[service]\nname = "payments-production"', "service = 3", "service: is not a table"),
    ("[service]", "[service", "fenced.toml is not TOML: expected ']' at the end of a table declaration (at line 1, column 9)"),
    ("id = 8453", "id = 8453\nid = 1", "fenced.toml is not TOML: cannot overwrite a value (at line 9, column 7)"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sentence"), BAD, ids=range(len(BAD)))
def test_a_mistake_is_one_sentence_with_its_key(directory: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        changed(directory, old, new)
    message = str(caught.value)
    assert sentence in message
    assert message.endswith((".", "?"))
    assert "\n" not in message
    assert "canary" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist; write one with fenced init"):
        load(tmp_path / "fenced.toml")
    (tmp_path / "fenced.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load(tmp_path / "fenced.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)


def test_one_file_may_hold_all_endpoints(directory: Path) -> None:
    (directory / "nodes").write_text("https://a.example\nhttps://b.example/token-token-token-token\n")
    config = changed(directory, '["https://base.example", { env = "NODE" }]', '{ file = "nodes" }')
    assert [endpoint.name for endpoint in config.chains["base"].endpoints] == ["a.example", "b.example"]


def test_the_input_is_read_when_asked(directory: Path) -> None:
    strategy = parse(GOOD, directory, environment=ENVIRONMENT).strategies["suppliers"]
    assert strategy.input is not None
    with pytest.raises(ConfigError, match=r"invoices.json cannot be read \(No such file or directory\)"):
        strategy.input.read()
    for text in ("{", "[NaN]"):
        strategy.input.file.write_text(text)
        with pytest.raises(ConfigError, match=r"invoices.json is not JSON"):
            strategy.input.read()
    strategy.input.file.write_text('[{"id": 8812}]')
    assert strategy.input.read() == [{"id": 8812}]


def test_the_digest_follows_what_a_plan_depends_on(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    def digest(
        old: str = "", new: str = "", source: bytes = b"code", release: str = "1", where: Path = directory
    ) -> str:
        return strategy_digest(
            parse(GOOD.replace(old, new, 1) if old else GOOD, where, environment=ENVIRONMENT),
            "suppliers",
            source,
            release,
        )

    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "password").write_text("other\n")
    assert digest() == digest(where=elsewhere)
    assert digest() == digest('"24h"', '"1d"')
    assert digest() == digest(FEE, 'max_fee_per_gas = "3 gwei"')
    different = [
        digest(source=b"other"), digest(release="2"), digest("limit = 3", "limit = 4"), digest('"latest"', '"skip"'),
        digest("invoices.json", "other.json"), digest("id = 8453", "id = 10"), digest('"24h"', '"23h"'),
        digest(ADDRESS, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
    ]  # fmt: skip
    assert len({digest(), *different}) == len(different) + 1
