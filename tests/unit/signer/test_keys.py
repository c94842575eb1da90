"""Keys and their files: what is taken, what is refused and with which words, and that a key shows nowhere."""

import copy
import hashlib
import json
import logging
import os
import pickle
import traceback
from pathlib import Path

import pytest
from eth_account import Account

from chain.transaction import UnsignedTransaction, decode
from chain.types import to_address
from signer.errors import BadSignature, KeyRefused
from signer.key import Key
from signer.keyfile import KeyFileBackend
from signer.keystore import KeystoreBackend
from signer.verify import verify

SECRET = bytes.fromhex("c0ffee5ec2e7c0ffee5ec2e7c0ffee5ec2e7c0ffee5ec2e7c0ffee5ec2e7aaaa")
ADDRESS = Key(SECRET).address
PASSWORD = b"canary-password"
TX = UnsignedTransaction(
    chain_id=1, nonce=0, type=2, to=b"\x11" * 20, value_wei=1, data=b"", gas=21_000, max_fee_wei=2, tip_wei=1
)


def shows_secret(text: str) -> bool:
    forms = (SECRET.hex(), str(int.from_bytes(SECRET, "big")), repr(SECRET), PASSWORD.decode())
    return any(form.lower() in text.lower() for form in forms)


def place(path: Path, content: bytes | str, mode: int = 0o600) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


def refused(make, words: str) -> None:
    """It is refused in one sentence, and neither message, repr, cause nor traceback shows the key or password."""
    with pytest.raises(KeyRefused, match=words) as caught:
        make()
    error = caught.value
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    shown = str(error) + repr(error) + "".join(traceback.format_exception(error))
    assert "\n" not in str(error)
    assert not shows_secret(shown)


@pytest.fixture(scope="module")
def store() -> dict:
    made = Account.encrypt(SECRET, PASSWORD.decode(), kdf="scrypt", iterations=4096)
    return json.loads(json.dumps(made))


def weak(path: Path, password: bytes = PASSWORD, address: bytes = ADDRESS) -> KeystoreBackend:
    return KeystoreBackend(path, password, address, allow_weak_kdf=True)


@pytest.mark.parametrize("spelling", ["{}", "0x{}", "{}\n", "0x{}\r\n"])
def test_a_key_file_is_read(tmp_path: Path, spelling: str) -> None:
    backend = KeyFileBackend(place(tmp_path / "key", spelling.format(SECRET.hex())), ADDRESS)
    assert backend.address == ADDRESS == to_address(Account.from_key(SECRET).address)
    signed = verify(backend.sign(TX), TX, ADDRESS)
    assert signed.sender == ADDRESS
    assert backend.sign(TX) == backend.sign(TX)
    assert not shows_secret(repr(backend))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "0x",
        SECRET.hex()[1:],
        SECRET.hex() + "0",
        SECRET.hex() + "\n\n",
        " " + SECRET.hex(),
        "0X" + SECRET.hex(),
        SECRET,
    ],
)
def test_another_content_is_refused(tmp_path: Path, content: bytes | str) -> None:
    refused(lambda: KeyFileBackend(place(tmp_path / "key", content), ADDRESS), "64 hexadecimal digits")


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32])
def test_a_number_that_is_no_key_is_refused(tmp_path: Path, secret: bytes) -> None:
    refused(lambda: KeyFileBackend(place(tmp_path / "key", secret.hex()), ADDRESS), "order of secp256k1")
    refused(lambda: Key(SECRET[:31]), "32 bytes")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601, 0o660])
def test_an_open_file_is_refused_with_what_to_type(tmp_path: Path, mode: int) -> None:
    path = place(tmp_path / "key", SECRET.hex(), mode)
    refused(lambda: KeyFileBackend(path, ADDRESS), f"chmod 600 {path}")
    refused(lambda: weak(path), "chmod 600")
    path.chmod(0o400)
    assert KeyFileBackend(path, ADDRESS)


def test_what_is_no_plain_file_of_ours_is_refused(tmp_path: Path) -> None:
    path = place(tmp_path / "key", SECRET.hex())
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    refused(lambda: KeyFileBackend(tmp_path / "link", ADDRESS), "symbolic link")
    refused(lambda: KeyFileBackend(tmp_path / "pipe", ADDRESS), "not a regular file")
    refused(lambda: KeyFileBackend(tmp_path, ADDRESS), "not a regular file")
    refused(lambda: KeyFileBackend(tmp_path / "none", ADDRESS), "there is no key file")
    refused(lambda: KeyFileBackend(place(tmp_path / "long", b"0" * 70_000), ADDRESS), "longer than")
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        refused(lambda: KeyFileBackend(path, ADDRESS), "chown 0")


def test_the_key_of_another_account_is_refused(tmp_path: Path, store: dict) -> None:
    refused(lambda: KeyFileBackend(place(tmp_path / "key", SECRET.hex()), b"\x11" * 20), "not of the configured 0x1111")
    refused(lambda: weak(place(tmp_path / "store", json.dumps(store)), address=b"\x11" * 20), "not of the configured")


@pytest.mark.parametrize("kdf", ["scrypt", "pbkdf2"])
def test_a_keystore_of_eth_account_opens(tmp_path: Path, kdf: str) -> None:
    made = Account.encrypt(SECRET, PASSWORD.decode(), kdf=kdf, iterations=8192)
    del made["address"]  # as cast writes it
    backend = weak(place(tmp_path / "store", json.dumps(made)))
    assert decode(backend.sign(TX)).sender == ADDRESS
    assert not shows_secret(repr(backend))


def test_a_keystore_with_usual_strength_needs_no_permission(tmp_path: Path) -> None:
    made = Account.encrypt(SECRET, PASSWORD.decode(), kdf="scrypt", iterations=1 << 17)
    assert KeystoreBackend(place(tmp_path / "store", json.dumps(made)), PASSWORD, ADDRESS).address == ADDRESS


def test_a_weak_keystore_is_refused_unless_allowed(tmp_path: Path, store: dict) -> None:
    path = place(tmp_path / "store", json.dumps(store))
    refused(lambda: KeystoreBackend(path, PASSWORD, ADDRESS), "easy to guess")
    refused(lambda: weak(path, b"wrong"), "the password does not open")
    assert weak(path).address == ADDRESS


def changed(store: dict, *path_and_value) -> dict:
    made = copy.deepcopy(store)
    *path, last, value = path_and_value
    place_ = made
    for name in path:
        place_ = place_[name]
    place_[last] = value
    return made


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("crypto", "kdfparams", "n", 1 << 40), "parameters that are not accepted"),
        (("crypto", "kdfparams", "n", 1 << 21), "not accepted"),
        (("crypto", "kdfparams", "n", 3), "not accepted"),
        (("crypto", "kdfparams", "n", 1), "not accepted"),
        (("crypto", "kdfparams", "n", 4096.0), "not accepted"),
        (("crypto", "kdfparams", "n", True), "not accepted"),
        (("crypto", "kdfparams", "n", None), "not accepted"),
        (("crypto", "kdfparams", "r", 1), "not accepted"),
        (("crypto", "kdfparams", "p", 5), "not accepted"),
        (("crypto", "kdfparams", "dklen", 16), "not accepted"),
        (("crypto", "kdfparams", "salt", ""), "not accepted"),
        (("crypto", "kdfparams", "salt", "zz"), "not a keystore"),
        (("crypto", "kdfparams", []), "not a keystore"),
        (("crypto", "kdf", "argon2"), "not accepted"),
        (("crypto", "kdf", "pbkdf2"), "not accepted"),
        (("crypto", "cipher", "aes-256-gcm"), "aes-128-ctr"),
        (("crypto", "ciphertext", "00" * 16), "32 bytes"),
        (("crypto", "ciphertext", "00" * 32), "or the file was changed"),
        (("crypto", "mac", "00" * 32), "or the file was changed"),
        (("version", 1), "version 3"),
        (("crypto", None), "not a keystore"),
        (("crypto", "x"), "not a keystore"),
    ],
    ids=str,
)
def test_a_changed_keystore_is_refused(tmp_path: Path, store: dict, change: tuple, words: str) -> None:
    refused(lambda: weak(place(tmp_path / "store", json.dumps(changed(store, *change)))), words)


@pytest.mark.parametrize("content", ["", "{}", "[]", "7", "null", "\xff", '{"crypto": {}}'])
def test_what_is_no_keystore_is_refused(tmp_path: Path, content: str) -> None:
    refused(lambda: weak(place(tmp_path / "store", content.encode("latin-1"))), "not a keystore")


def test_a_flipped_vector_decrypts_without_error_to_another_key_and_is_refused(tmp_path: Path, store: dict) -> None:
    vector = bytearray.fromhex(store["crypto"]["cipherparams"]["iv"])
    vector[0] ^= 1
    flipped = changed(store, "crypto", "cipherparams", "iv", vector.hex())
    refused(lambda: weak(place(tmp_path / "store", json.dumps(flipped))), "not of the configured")


def test_a_key_shows_nowhere(caplog) -> None:
    key = Key(SECRET)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").warning("%s %r", key, [key])
    shown = caplog.text + repr(key) + str(key) + f"{key}"
    assert not shows_secret(shown)
    with pytest.raises(TypeError):
        vars(key)
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not copied"):
            leak(key)


def test_the_verifier_tells_what_differs() -> None:
    raw = Key(SECRET).sign(TX)
    from dataclasses import replace

    for fields in (
        {"nonce": 1},
        {"value_wei": 2},
        {"data": b"x"},
        {"gas": 21_001},
        {"max_fee_wei": 3},
        {"chain_id": 2},
        {"to": b"\x12" * 20},
    ):
        with pytest.raises(BadSignature, match=f"another {next(iter(fields))}"):
            verify(raw, replace(TX, **fields), ADDRESS)
    with pytest.raises(BadSignature, match="the signature is of"):
        verify(raw, TX, b"\x11" * 20)
    with pytest.raises(BadSignature, match="no transaction"):
        verify(raw[:-1], TX, ADDRESS)
    assert hashlib.sha256(verify(raw, TX, ADDRESS).raw).digest() == hashlib.sha256(raw).digest()


def test_the_signer_process_needs_no_web3() -> None:
    import subprocess
    import sys

    code = "import sys, signer.service, signer.keystore, signer.keyfile; print([m for m in sys.modules if m.split('.')[0] in ('web3','eth_account','urllib3','aiohttp') or m in ('chain.rpc','chain.client')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.strip() == "[]"
