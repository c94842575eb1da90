"""The well-known development accounts, and signing with them. Their keys are public: whatever they hold is lost."""

from dataclasses import dataclass

from coincurve import PrivateKey

from devnet.codec import rlp_coding
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.transaction import ACCESS_LIST, DYNAMIC_FEE, LEGACY, Transaction, decode

MNEMONIC = "test test test test test test test test test test test junk"
DERIVATION_PATH = "m/44'/60'/0'/0/"
_KEYS = (
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
    "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
    "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
)


@dataclass(frozen=True, slots=True)
class Account:
    """A development account and its private key."""

    address: bytes
    key: bytes


def development_accounts(count: int) -> list[Account]:
    """The first `count` accounts of the mnemonic. More than ten are derived by eth-account, which takes a second."""
    keys = [bytes.fromhex(key) for key in _KEYS[:count]]
    if count > len(_KEYS):
        from eth_account.hdaccount import key_from_seed, seed_from_mnemonic

        seed = seed_from_mnemonic(MNEMONIC, "")
        keys += [bytes(key_from_seed(seed, f"{DERIVATION_PATH}{index}")) for index in range(len(_KEYS), count)]
    return [Account(address_of(key), key) for key in keys]


def address_of(key: bytes) -> bytes:
    """The address a private key signs for."""
    return keccak(PrivateKey(key).public_key.format(compressed=False)[1:])[12:]


def sign(key: bytes, kind: int, chain_id: int, fields: dict[str, Item]) -> Transaction:
    """Sign a transaction of type 0, 1 or 2; `fields` hold RLP items by their names in the EIPs."""
    chain = integer(chain_id)
    tail = ("gas", "to", "value", "data")
    names = {
        LEGACY: ("nonce", "gasPrice", *tail),
        ACCESS_LIST: ("nonce", "gasPrice", *tail, "accessList"),
        DYNAMIC_FEE: ("nonce", "maxPriorityFeePerGas", "maxFeePerGas", *tail, "accessList"),
    }[kind]
    body: list[Item] = [fields[name] for name in names]
    if kind == LEGACY:
        digest = keccak(rlp_coding.encode([*body, chain, b"", b""]))
    else:
        body.insert(0, chain)
        digest = keccak(bytes((kind,)) + rlp_coding.encode(body))
    signature = PrivateKey(key).sign_recoverable(digest, hasher=None)
    r, s = (integer(int.from_bytes(part, "big")) for part in (signature[:32], signature[32:64]))
    v = signature[64] if kind != LEGACY else 35 + 2 * chain_id + signature[64]
    raw = rlp_coding.encode([*body, integer(v), r, s])
    return decode(raw if kind == LEGACY else bytes((kind,)) + raw)
