"""Each thing a person can get wrong: one sentence that names it, the exit code, and nothing left behind."""

import json

import pytest
from eth_account import Account

from tests.cli.desk import ADDRESS, CANARY, KEY, Desk
from tests.support.devnet import start_devnet

MISTAKES = {
    "unknown key": ('listen = ""', 'listne = ""', "worker.listne: is not a known key; did you mean listen?"),
    "no unit": ('max_fee_per_gas = "100 gwei"', "max_fee_per_gas = 100", "bare number 100"),
    "bad cron": ('schedule = "0 10 * * *"', 'schedule = "0 25 * * *"', "strategies.payroll.schedule"),
    "unknown zone": (
        'misfire = "latest"',
        'misfire = "latest"\ntimezone = "Europe/Berlln"',
        "strategies.payroll.timezone",
    ),
    "no misfire": ('misfire = "latest"', "", "strategies.payroll.misfire: is missing"),
    "unknown account": ('account = "treasury"', 'account = "tresury"', "strategies.payroll.account"),
    "wrong checksum": (
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "0xf39fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "checksum",
    ),
    "embedded with mainnet": ('[database]\nurl = { file = "database_url" }', "[database]\nembedded = true", ""),
    "inline password": (
        'url = { file = "database_url" }',
        f'url = "postgresql://a:{CANARY}@b/c"',
        "database.url: holds a password",
    ),
    "not TOML": ("[service]", "[service", "fenced.toml"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_file_is_one_sentence(bare: Desk, mistake: str) -> None:
    old, new, named = MISTAKES[mistake]
    bare.edit(old, new)
    if mistake == "embedded with mainnet":
        bare.edit("id = 31337", 'id = 1\nfinal = "finalized"')
        named = "database.embedded: is for development chains only"
    for command in (["validate"], ["migrate"], ["apply"], ["status"], ["trigger", "payroll"], ["run"]):
        assert named in bare.fails(2, *command)


def test_a_missing_file_is_named(bare: Desk) -> None:
    assert "other.toml does not exist" in bare.fails(2, "status", "--config", "other.toml")
    assert "other.toml" in bare.run("status", FENCED_CONFIG="other.toml").err


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("raise RuntimeError('no')", "RuntimeError"),
        ("import not_there_at_all", "not_there_at_all"),
        ("def plan(): ...", "plan"),
        ("x = 1", "plan"),
    ],
)
def test_a_strategy_that_cannot_be_imported(bare: Desk, module: str, told: str) -> None:
    bare.write("payroll.py", module)
    bare.edit('[strategies.refunds]\nplan = "payroll:plan"\naccount = "treasury"\n', "")
    sentence = bare.fails(2, "validate", "--offline")
    assert sentence.startswith("fenced: strategies.payroll.plan: ")
    assert told in sentence


def test_a_key_file_that_others_can_read(bare: Desk) -> None:
    bare.write("treasury.key", KEY, 0o644)
    sentence = bare.fails(2, "validate", "--offline")
    assert "accounts.treasury.signer" in sentence
    assert "chmod 600" in sentence


def test_a_key_of_another_address(bare: Desk) -> None:
    bare.write("treasury.key", "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d", 0o600)
    assert ADDRESS in bare.fails(2, "validate", "--offline")


def test_a_wrong_keystore_password(bare: Desk) -> None:
    store = Account.encrypt(KEY, "right", kdf="pbkdf2", iterations=10)
    bare.write("treasury.json", json.dumps(store), 0o600)
    bare.write("password", CANARY, 0o600)
    bare.edit(
        'signer = { kind = "keyfile", path = "treasury.key" }',
        'signer = { kind = "keystore", path = "treasury.json", password = { file = "password" }, allow_weak_kdf = true }',
    )
    assert "the password does not open the keystore" in bare.fails(2, "validate", "--offline")
    bare.write("password", "right", 0o600)
    bare.fine("validate", "--offline")


def test_an_endpoint_of_another_chain(bare: Desk) -> None:
    with start_devnet("--chain-id", "5") as node:
        bare.edit("http://127.0.0.1:9", node.url)
        assert "serves chain 5" in bare.fails(2, "validate")


def test_an_endpoint_that_does_not_answer(bare: Desk) -> None:
    assert "did not answer" in bare.fails(3, "validate")


def test_wrong_usage(bare: Desk) -> None:
    assert "No such command" in bare.fails(2, "bogus")
    assert "STRATEGY" in bare.fails(2, "trigger")
    assert "--why" in bare.fails(2, "pause", "payroll")
    assert "--why takes a reason" in bare.fails(2, "halt", "treasury", "--why", " ")
    assert "fenced db is for the embedded database only" in bare.fails(2, "db", "start")


def test_an_unexpected_error_shows_its_kind_only(bare: Desk) -> None:
    (bare.directory / "payroll.py").unlink()
    (bare.directory / "fenced.toml").unlink()
    (bare.directory / "fenced.toml").mkdir()
    assert "Is a directory" in bare.fails(2, "validate")
