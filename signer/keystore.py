"""A key in an encrypted keystore (Web3 Secret Storage, version 3), as geth, eth-account and cast write it."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

from Crypto.Cipher import AES

from chain.keccak import keccak
from signer import secretfile
from signer.errors import KeyRefused
from signer.key import Key, LocalBackend, pinned

STRONG_SCRYPT_N = 1 << 17
MAX_SCRYPT_N = 1 << 20
"""1 GiB of memory; more is an attack or a mistake."""
STRONG_PBKDF2_ROUNDS = 1 << 18
MAX_PBKDF2_ROUNDS = 10_000_000


class KeystoreBackend(LocalBackend):
    """Signs with the key in the keystore `path`, which must be that of `address`.

    Opening it takes 0.7 s and 256 MiB with the usual scrypt parameters. Weak ones, as development tools write them, are
    refused unless `allow_weak_kdf`. Raises KeyRefused, never showing the password or the key.
    """

    def __init__(self, path: Path, password: bytes, address: bytes, *, allow_weak_kdf: bool = False) -> None:
        secret = _decrypt(secretfile.read(path), password, path, allow_weak_kdf=allow_weak_kdf)
        self._key = pinned(Key(secret), address, str(path))


def _decrypt(content: bytes, password: bytes, path: Path, *, allow_weak_kdf: bool) -> bytes:
    try:
        store = json.loads(content)
        crypto = store.get("crypto") or store["Crypto"]
        cipher, kdf, params = crypto["cipher"], crypto["kdf"], crypto["kdfparams"]
        text, mac = bytes.fromhex(crypto["ciphertext"]), bytes.fromhex(crypto["mac"])
        vector, salt = bytes.fromhex(crypto["cipherparams"]["iv"]), bytes.fromhex(params["salt"])
        version = store["version"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise KeyRefused(f"the file {path} is not a keystore of version 3") from None
    if version != 3 or cipher != "aes-128-ctr":
        raise KeyRefused(f"the keystore {path} is not of version 3 with the cipher aes-128-ctr")
    if len(text) != 32 or len(vector) != 16 or len(mac) != 32:
        raise KeyRefused(f"the keystore {path} does not hold a key of 32 bytes")
    derived = _derive(kdf, params, salt, password, path, allow_weak_kdf=allow_weak_kdf)
    if not hmac.compare_digest(keccak(derived[16:] + text), mac):
        raise KeyRefused(f"the password does not open the keystore {path}, or the file was changed")
    return AES.new(derived[:16], AES.MODE_CTR, nonce=b"", initial_value=vector).decrypt(text)


def _derive(kdf: Any, params: Any, salt: bytes, password: bytes, path: Path, *, allow_weak_kdf: bool) -> bytes:
    wrong = KeyRefused(f"the keystore {path} has key derivation parameters that are not accepted")
    if _int(params, "dklen") != 32 or not 8 <= len(salt) <= 64:
        raise wrong
    if kdf == "scrypt":
        n, r, p = _int(params, "n"), _int(params, "r"), _int(params, "p")
        if not 2 <= n <= MAX_SCRYPT_N or n & (n - 1) or r != 8 or not 1 <= p <= 4:
            raise wrong
        _strong(n >= STRONG_SCRYPT_N, path, allow_weak_kdf=allow_weak_kdf)
        return hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, dklen=32, maxmem=256 * n * r + (1 << 20) * p)
    if kdf == "pbkdf2":
        rounds = _int(params, "c")
        if params.get("prf") != "hmac-sha256" or not 1 <= rounds <= MAX_PBKDF2_ROUNDS:
            raise wrong
        _strong(rounds >= STRONG_PBKDF2_ROUNDS, path, allow_weak_kdf=allow_weak_kdf)
        return hashlib.pbkdf2_hmac("sha256", password, salt, rounds, 32)
    raise wrong


def _strong(strong: bool, path: Path, *, allow_weak_kdf: bool) -> None:
    if not strong and not allow_weak_kdf:
        raise KeyRefused(
            f"the keystore {path} is easy to guess (weak key derivation); write it anew with the defaults of geth, "
            f"or allow weak key derivation for this account"
        )


def _int(params: Any, name: str) -> int:
    value = params.get(name)
    return value if type(value) is int else -1
