"""The well-known development accounts, and signing with them. Their keys are public: whatever they hold is lost."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from coincurve import PrivateKey

from devnet.codec import rlp_coding
from devnet.codec.keccak import keccak
from devnet.codec.rlp_coding import Item, integer
from devnet.codec.transaction import ACCESS_LIST, BLOB, DYNAMIC_FEE, LEGACY, SET_CODE, Transaction, decode
from devnet.errors import StartError

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
_TAIL = ("gas", "to", "value", "data")
_PRICED = ("nonce", "maxPriorityFeePerGas", "maxFeePerGas", *_TAIL, "accessList")
_FIELDS = {
    LEGACY: ("nonce", "gasPrice", *_TAIL),
    ACCESS_LIST: ("nonce", "gasPrice", *_TAIL, "accessList"),
    DYNAMIC_FEE: _PRICED,
    BLOB: (*_PRICED, "maxFeePerBlobGas", "blobVersionedHashes"),
    SET_CODE: (*_PRICED, "authorizationList"),
}


@dataclass(frozen=True, slots=True)
class Account:
    """A development account and its private key."""

    address: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Wallet:
    """Where development accounts come from: a BIP-39 phrase and the BIP-44 path their index is put behind."""

    mnemonic: str = MNEMONIC
    path: str = DERIVATION_PATH

    def accounts(self, count: int) -> list[Account]:
        """The first `count` accounts. All but the ten well-known ones are derived by eth-account, which takes a second.

        Raises StartError where the phrase or the path is none.
        """
        known = _KEYS[:count] if self == Wallet() else ()
        keys = [bytes.fromhex(key) for key in known]
        if count > len(keys):
            keys += self._derived(range(len(keys), count))
        return [Account(address_of(key), key) for key in keys]

    def _derived(self, indexes: range) -> list[bytes]:
        from eth_account.hdaccount import key_from_seed, seed_from_mnemonic
        from eth_utils.exceptions import ValidationError

        try:
            seed = seed_from_mnemonic(self.mnemonic, "")
        except ValidationError:
            raise StartError("the mnemonic is no BIP-39 phrase: check its words and their order") from None
        path = self.path if self.path.endswith("/") else f"{self.path}/"
        try:
            return [bytes(key_from_seed(seed, f"{path}{index}")) for index in indexes]
        except (ValidationError, ValueError):
            raise StartError(f"{self.path} is no derivation path: write it like {DERIVATION_PATH}") from None


def development_accounts(count: int) -> list[Account]:
    """The first `count` accounts of the well-known mnemonic."""
    return Wallet().accounts(count)


def random_mnemonic(words: int) -> str:
    """A new phrase of 12, 15, 18, 21 or 24 words; raises StartError for another number."""
    from eth_account.hdaccount import generate_mnemonic
    from eth_account.types import Language
    from eth_utils.exceptions import ValidationError

    try:
        return str(generate_mnemonic(words, Language.ENGLISH))
    except ValidationError:
        raise StartError(f"a mnemonic has 12, 15, 18, 21 or 24 words, not {words}") from None


def seeded_mnemonic(seed: int) -> str:
    """A phrase of twelve words that is the same for the same seed (anvil's for that seed is another)."""
    from eth_account.hdaccount.mnemonic import Mnemonic
    from eth_account.types import Language

    return str(Mnemonic(Language.ENGLISH).to_mnemonic(blake2b(str(seed).encode(), digest_size=16).digest()))


def address_of(key: bytes) -> bytes:
    """The address a private key signs for."""
    return keccak(PrivateKey(key).public_key.format(compressed=False)[1:])[12:]


def sign(key: bytes, kind: int, chain_id: int, fields: Mapping[str, Item]) -> Transaction:
    """Sign a transaction of any type; `fields` hold RLP items by their names in the EIPs."""
    body = _body(kind, chain_id, fields)
    digest = keccak(_wrapped(kind, [*body, integer(chain_id), b"", b""] if kind == LEGACY else body))
    signed = sign_digest(key, digest)
    parity, r, s = signed[64] - 27, int.from_bytes(signed[:32], "big"), int.from_bytes(signed[32:64], "big")
    return assemble(kind, chain_id, fields, (35 + 2 * chain_id + parity if kind == LEGACY else parity, r, s))


def unsigned(kind: int, chain_id: int, fields: Mapping[str, Item]) -> Transaction:
    """A transaction with zeros for a signature."""
    return assemble(kind, chain_id, fields, (35 + 2 * chain_id if kind == LEGACY else 0, 0, 0))


def assemble(kind: int, chain_id: int, fields: Mapping[str, Item], signature: tuple[int, int, int]) -> Transaction:
    """The transaction of these fields and the values v (y parity but for type 0), r and s."""
    body = [*_body(kind, chain_id, fields), *(integer(part) for part in signature)]
    return decode(_wrapped(kind, body))


def sent_as(sender: bytes, tx: Transaction) -> Transaction:
    """An unsigned transaction as one of an account whose key is not at hand (impersonation).

    Its hash covers the sender, as anvil's: equal ones of two senders are two.
    """
    body = tx.raw if tx.type == LEGACY else rlp_coding.encode(tx.raw)
    return dataclasses.replace(tx, given_sender=sender, hash=keccak(body + sender))


def _body(kind: int, chain_id: int, fields: Mapping[str, Item]) -> list[Item]:
    body = [fields[name] for name in _FIELDS[kind]]
    return body if kind == LEGACY else [integer(chain_id), *body]


def _wrapped(kind: int, body: Sequence[Item]) -> bytes:
    return rlp_coding.encode(body) if kind == LEGACY else bytes((kind,)) + rlp_coding.encode(body)


def sign_text(key: bytes, text: bytes) -> bytes:
    """The 65 bytes of a signature over a text as people sign it (EIP-191 version 0x45), v being 27 or 28."""
    prefix = b"\x19Ethereum Signed Message:\n" + str(len(text)).encode()
    return sign_digest(key, keccak(prefix + text))


def sign_digest(key: bytes, digest: bytes) -> bytes:
    """The 65 bytes of a signature over a digest: r, s and v, which is 27 or 28."""
    signed = PrivateKey(key).sign_recoverable(digest, hasher=None)
    return signed[:64] + bytes((27 + signed[64],))
